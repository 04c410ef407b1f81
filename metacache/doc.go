// Package metacache keeps the live files of a table's versions in order, so
// that listing one directory of any version is a range scan and never a
// replay.
//
// An [Index] is a multi-version ordered map: the key is (directory, visible
// name, path), an entry lives in the versions from its add to its remove, and
// a read names the version it wants. An index knows which versions it covers;
// a read outside them is [ErrNotCovered], never an answer.
//
// [Runs] is that index. A run covers versions in a row: its base is the complete
// set of files of the first, compact and immutable, and its delta is what the
// versions after it changed, entry by entry with the version that made it. A
// read merges the two, which is cheap, because both are in order, and most
// entries know where in the base they belong. A delta that would grow too large
// is folded: the next version becomes the base of a new run. Runs that are too
// many or too large are dropped, the latter before another is loaded, and those
// that nobody has read between two folds.
//
// A base is on the heap first: columns of numbers in few bytes and texts in
// large pieces, hashed by path, and put in order one directory at a time, when
// it is first read. To look for a name that it does not have, or to add one, is
// not to read it: a filter knows most such names, and the place of an added file
// in the base is left to the listing that merges the two. Nor does an added file
// read from a base on disk more than whether it has its path.
//
// An index may have a keeper, which in the background puts bases elsewhere and
// knows the runs of the process before.
//
// [Cache] is where such keepers keep runs on disk, one directory for each
// table. What is on disk may be damaged, gone or another's at any time: a read
// that does not find what must be there gives the run up. The layout is in
// disk.go, what processes may do with it in cache_slot.go.
//
// The suite in indextest states what every implementation must do.
//
// The package stores what it is given and knows no protocol rule.
//
// Locks: Runs.writing (whoever covers a version) before Runs.mu (the list of
// runs) before those of a delta, a heapBase, a diskBase and the lru; apart from
// these, diskKeeper.writing before diskKeeper.mu. Iterators hold no lock
// between two steps, and see one version whatever is applied meanwhile: the
// base they read is pinned until they end, and entries are never changed.
package metacache
