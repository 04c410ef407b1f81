// Package writer is the write side of a Delta table: what may be written, what
// the files dropped into current/ become, and how a commit is made.
//
// [Txn] is the only way to commit. [Live] is the tree under current/: the
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
// The package knows nothing of FUSE and errno. Locks, outer to inner:
// Live.mu, Staged.mu, Table.commitMu; none is held while waiting for another
// process.
package writer
