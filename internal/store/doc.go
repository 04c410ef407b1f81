// Package store is the storage that tables live on, behind one small
// interface: local disk now, object stores later.
//
// Names are slash-separated and relative to the table root; a [Store] never
// reads or writes outside that root, whatever a name or a symbolic link says.
// The interface promises what the commit protocol needs and no more: ordered
// listing, whole-object put-if-absent with a third answer for "cannot know",
// and publishing of a large staged file under a name that did not exist.
//
// [Local] is the implementation for local and network file systems. Temporary
// files start with ".deltafs-" and lie beside their target; a crash may leave
// one, which nothing reads. A few directories that are worked in stay open
// between calls, as long as their paths lead to them. Local.mu guards the opened
// root, and keptDirs.mu those; neither is held during I/O on what is in them.
//
// The package knows nothing of Delta. It imports internal/fault only.
package store
