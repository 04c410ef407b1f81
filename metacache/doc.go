// Package metacache keeps the live files of a table's versions in order, so
// that listing one directory of any version is a range scan and never a
// replay.
//
// An [Index] is a multi-version ordered map: the key is (directory, visible
// name, path), an entry lives in the versions from its add to its remove, and
// a read names the version it wants. An index knows which versions it covers;
// a read outside them is [ErrNotCovered], never an answer.
//
// [Memory] holds everything on the heap: persistent trees, one root a version.
// The suite in indextest states what every implementation must do.
//
// The package stores what it is given and knows no protocol rule. Locks: an
// index locks itself; iterators hold no lock between two steps, and see one
// version whatever is applied meanwhile.
package metacache
