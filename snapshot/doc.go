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
//   - _last_checkpoint is a hint, checkpoints are optional, commits decide;
//   - nothing outside the table's root is opened unless a caller allowed it.
//
// The package knows nothing of FUSE and never writes to the table. Locks:
// Table.mu guards the version bookkeeping and is never held during I/O of an
// unbounded length; it comes before any lock of the index.
package snapshot
