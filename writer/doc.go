// Package writer is the write side of a Delta table: what may be written, what
// the files dropped into current/ become, and how a commit is made.
//
// [Table.Commit] is the only way to commit a [TxnSpec]. [Live] is the tree under current/: the
// newest snapshot overlaid with what this mount has not committed yet (staged
// files, unlinked names, made directories). [Staged] is one file being
// written; its bytes decide when it is complete.
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
// The package knows nothing of FUSE and errno. Locks, outer to inner:
// Live.mu, Staged.mu, the commit turn; the turn alone is held while storage
// works, and waiting for it can be cancelled.
package writer
