// Package fsnode is the FUSE server: it shows Delta tables as a tree of
// versions and turns file operations into calls of the packages snapshot and
// writer. It is the only package that knows errno, and it knows nothing of
// JSON logs or Parquet.
//
// # Nodes
//
// The server implements go-fuse's [fuse.RawFileSystem]. A data file has no
// object here: its node id is computed from (table slot, schema ordinal,
// FileID), see nodeid.go, so a million known inodes cost the process nothing,
// and one data file is one inode in every version that shows it alike. Its size
// may have to be read from the file, so a listing gives attributes only where it
// is known, or where the kernel asks for one after the other anyway. Everything
// else (directories, symbolic links, text files, staged files) is a [node] in
// the node table, which counts the kernel's lookups and forgets a node when
// the kernel does. A slot is one incarnation of a table: when the table is
// deleted and made again, or released and opened again, a new slot makes every
// old node id stale. A slot is not used again as long as the kernel knows a node
// of its incarnation. It knows no data file without the directory that holds it,
// so counting directories is enough.
//
// # New commits
//
// Where every change of the log is made by this machine, the watcher hears of it
// through inotify, see [watcher]: an operation empties the queue, and looks at
// the log only when something was heard of it; meanwhile the refresher of the
// table takes in what is new, and ends. Elsewhere the refresher probes at
// intervals as long as the table is in use. A table that nobody has used for
// [Options.Idle] rests (rest.go): nothing runs for it, its caches are given up,
// and it is closed when the kernel knows no node of it, unless somebody could
// miss what it holds. What failed in it stays in its error log.
//
// # Lifetimes
//
// How long the kernel may cache what is decided in lifetime.go alone: without
// limit for what is immutable (snapshots), one second for directories of
// current/, not at all for what may change at any time.
//
// # Generated files
//
// Short texts are made in memory and kept there, within bounds (textcache.go).
// What may be as long as the table has files is made on disk, in a file without a
// name, when its size is first asked for (spool.go). Files of the log are shown as
// they are (logfile.go).
//
// # Rules
//
//   - An operation resolves its nodes, calls the domain and maps the error;
//     the mapping is errno.go and nothing else.
//   - A committed inode is never opened for writing: open answers ESTALE after
//     the writer bound a staged file to the name, and the kernel looks again.
//   - An inode is open in one mode at a time, passthrough or cached; mixing the
//     two makes the kernel fail with EIO.
//   - The kernel is never notified with a lock held, nor by the goroutine that
//     serves an operation, because the kernel may hold for it the lock that the
//     notification needs: the notifier has a goroutine of its own. No
//     notification about a name is part of ordinary work, see notifier.
//   - A signal to the caller ends an operation that lasts (request.go), but
//     never a change: those run on the context of the mount.
//
// # Locks
//
// table.openMu, table.pollMu, the watcher's, FS.tablesMu, table.mu, then the
// leaves: the node table, handles, open files, the epochs of an
// incarnation, the error log, the gate, the keeper, the spool and the notifier. A
// dirHandle's lock and those of the generated texts and files (spooled.turn) and
// of rows (rowsHandle.turn) come before all of them. Only openMu, pollMu,
// openFile.ready and the locks of directory handles, texts, generated files and
// rows are held during I/O; no lock is held while waiting for the kernel.
package fsnode
