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
// read merges the two, which is cheap, because each entry knows where in the
// base it belongs. A delta that has grown is folded: its newest version becomes
// the base of a new run. Runs that are too many or too large are dropped.
//
// A base is on the heap first: columns of numbers in few bytes and texts in
// large pieces, hashed by path, and put in order one directory at a time, when
// it is first read. An index may have a keeper, which in the background puts
// bases elsewhere and knows the runs of the process before.
//
// The suite in indextest states what every implementation must do.
//
// The package stores what it is given and knows no protocol rule.
//
// Locks: Runs.writing (whoever covers a version) before Runs.mu (the list of
// runs) before those of a delta and of a heapBase. Iterators hold no lock
// between two steps, and see one version whatever is applied meanwhile: the
// base they read is pinned until they end, and entries are never changed.
package metacache
