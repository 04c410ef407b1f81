// Package writer is the write side of a Delta table: what may be written, what
// the files dropped into current/ become, and how a commit is made.
//
// [Table.Commit] is the only way to commit a [TxnSpec]. [Live] is the tree
// under current/: the newest snapshot overlaid with what this mount has not
// committed yet (staged files, unlinked names, made directories). [Staged] is
// one file being written; its bytes decide when it is complete.
//
// Invariants:
//   - data is durable before the log entry exists, and the log entry is made
//     with put-if-absent;
//   - a committed data file is never written again, whatever handles are open;
//   - a failure deletes nothing that a user wrote: refused and interrupted
//     files are kept under .deltafs/rejected in the table;
//   - a commit, once begun, runs to its end even if the caller is gone.
//
// A commit takes the table's turn, checks the transaction against the header
// of its base (gate, invariants), moves it behind every commit that came first
// (conflict check, a pure function of the two), and creates the next commit
// file. When the storage lost one of its answers, the file is read back and its
// txnId compared; if even that fails the error is [ErrUnsure], and any other
// error means that nothing was committed.
//
// Blind appends that wait for the turn share one commit: whoever gets the turn
// checks each of them alone, moves them behind the same version and lands them
// as one transaction. Each gets its own result. When the shared commit fails, in
// any way but one of which nobody knows whether it did, they are committed one
// by one. Nothing else shares. Who commits waits for durability alone: the tree
// moves on to the new version when somebody next looks at it.
//
// The write that completes a file, if no other is being written, makes its append
// ready: it publishes the bytes, and writes the commit file of the next version,
// without a name yet. If file and table are the same when the file is closed, all
// it takes is to give that its name; else it is thrown away, and the file goes the
// usual way.
//
// A staged file is open until every byte of it was written and they are a
// Parquet file that fits the table; then it is complete, checked and durable.
// It is committed at the next flush, sync, rename or link under a data name,
// and sealed. A replacement is bound to the add.path that it replaces when it
// is opened, and until it commits only the process that writes it sees it. A
// refused file loses its name and moves to the rejected ones, and so does, in the
// end, one that was closed and is not committed: see unfinished. Unlinks of
// committed files are collected and committed as one; those of a process that
// is writing a file go into the commit of that file.
//
// What a mount that died left in .deltafs is sorted out when the table is
// opened: a staged file is committed if the log says so, and rejected if not.
// The name of a staged file carries the unique id of its data file and a version
// that its commit comes after, so that the log answers whatever else is known.
// Under which name a file was dropped stands in notes that outlive the process.
// They are not durable: after a power failure a rejected file may have lost its
// name, and a data file that was not committed may stay for VACUUM to find.
//
// Behind the commits, and never in their way, a checkpointer writes the
// checkpoints that they make due: from the newest checkpoint there is, whose row
// groups are copied as they are where nothing changed, and the commits since. A
// checkpoint is read back and compared before it gets its name, and a table of
// which it would lose something gets none. After a checkpoint, what has expired
// of the log is deleted from its beginning, up to a checkpoint that reads.
//
// The package knows nothing of FUSE and errno. Locks, outer to inner:
//
//   - unfinished.sweeping: one move of what nobody goes on with at a time;
//   - Staged.op: one write, check, rename or commit of a file at a time;
//   - the lock of a name (Live.keys): one commit under a name at a time, and
//     nobody makes, takes or unlinks the name meanwhile;
//   - burst.flushing: one commit that has unlinks at a time;
//   - the commit turn, whose wait can be cancelled, then queue.mu for moments;
//   - Live.syncing: one move to a newer version at a time;
//   - Live.mu, then Staged.mu, burst.mu, unfinished.mu, area.mu, notes.mu and
//     checkpointer.mu, which are held for moments and, but for opening a file and
//     adding a note, never during I/O.
//
// So a write or commit of one file never makes a lookup, a listing or another
// file wait.
package writer
