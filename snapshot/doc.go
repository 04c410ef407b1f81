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
//   - whether a checkpoint has sidecars its content says, not its name; without
//     one of them it does not read;
//   - a commit file that is not the one listed belongs to another table;
//   - nothing outside the table's root is opened unless a caller allowed it.
//
// One life of a table, from its creation to its deletion, is an incarnation:
// a listing of the log, the headers (protocol, metadata, transactions and
// domains) of the versions at hand, and the index of their files. A version is
// built from the start that costs least: a covered version of the index, a
// checkpoint, or version 0. _last_checkpoint is not read, as the listing says
// all that it could and is never stale.
//
// The index holds what a listing shows, and for each file the origin of its add
// action in the log, from where it is read when asked for. Checkpoints are read
// by column and page: a listing decodes no statistics, and what is asked of few
// rows decodes few pages. What is decoded borrows the memory of its pages; a
// batch of files holds on to them until it was taken over.
//
// An index from a cache covers versions already, each with a note: the part of
// the header that its commit said, and which files of the log it was read from.
// Headers are made of notes when needed, and the files prove that the cache is
// of the log at hand.
//
// A data file is shown under a rendition: the columns of the table, which follow
// from its metadata alone. The ordinal of a rendition is part of each [File], so
// that versions which show a file alike give the same one. How a file is served is
// a plan of package parquetview, made of its footer when its size is asked for or
// it is opened; plans and sizes are kept within bounds and made again, for they
// come out the same. Chunks that the plan leaves to be rendered are when they are
// read (package rendercache). What goes wrong there is said with a sentinel of
// this package.
//
// Whoever makes the next checkpoint reads the one before through [Checkpoint],
// complete and a row group at a time. Log cleanup, by whomever, is noticed when
// a file of the log is missed: then the log is listed again.
//
// A version as it is shown can be described as a table of its own, a [ServedTable],
// whose log other engines read.
//
// The package knows nothing of FUSE and never writes to the table. Locks, in
// this order: Table.refreshing (held while the log is listed or probed),
// incarnation.loading (held while it is replayed), both of which a waiter can
// give up; Table.mu and then incarnation.mu guard fields only and are never
// held during I/O; they come before any lock of the index. Sizes and plans have
// locks of their own, which are leaves.
package snapshot
