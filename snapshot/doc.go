// Package snapshot is the read side of a Delta table: which versions exist
// and when they were committed, what a version holds, and what a data file
// looks like as seen at a version.
//
// A [Table] follows one log directory. A [Snapshot] is an immutable value: one
// version with its protocol, metadata, schema and files. No method returns all
// files; they come through iterators, directory by directory, from an index
// (metacache) that was filled from the log.
//
// Invariants:
//   - a version is either shown exactly or refused by name: an unknown reader
//     feature, a gap or a corrupt line is an error, never a guess;
//   - checkpoints are optional, commits decide; but a checkpoint that reads and
//     lacks the protocol or the metadata is corruption, not a reason to guess;
//   - a commit file that is not the one listed belongs to another table;
//   - nothing outside the table's root is opened unless a caller allowed it.
//
// One life of a table, from its creation to its deletion, is an incarnation:
// a listing of the log, the headers (protocol, metadata, transactions and
// domains) of the versions at hand, and the index of their files. A version is
// built from the nearest start there is: a covered version of the index, a
// checkpoint, or version 0. _last_checkpoint is not read, as the listing says
// all that it could and is never stale.
//
// The package knows nothing of FUSE and never writes to the table. Locks, in
// this order: Table.refreshing (held while the log is listed or probed),
// incarnation.loading (held while it is replayed), both of which a waiter can
// give up; Table.mu and then incarnation.mu guard fields only and are never
// held during I/O; they come before any lock of the index.
package snapshot
