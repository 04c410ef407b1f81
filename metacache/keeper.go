package metacache

import "context"

// keeper keeps runs beyond the life of an index, and their bases off the heap.
//
// One goroutine of the index makes all calls but restore, one after the other;
// the context ends when the result is no longer wanted. A keeper logs its
// failures itself. After one it may know less of a run than the index does,
// but never something else: a run without its last versions is still right.
type keeper interface {
	// restore returns what was kept. It is called once, before everything else.
	restore(ctx context.Context) (kept, error)
	// wants reports whether a run with so many versions, and so many files in
	// its last, is worth keeping. It is asked again as the run grows.
	wants(versions int, files int64) bool
	// keep keeps a run. Its base is that of the heap; the one returned has the
	// same files with the same IDs at the same ranks, and takes its place.
	keep(ctx context.Context, r keptRun) (base, error)
	// applied adds the next version to a run that was kept or restored. After
	// an error there are no more for this run.
	applied(ctx context.Context, serial uint64, v keptVersion) error
	// forget gives up a run that was kept or restored, or whose keeping
	// failed. Its base was closed.
	forget(ctx context.Context, serial uint64) error
	// close waits for what was begun. All bases were closed.
	close() error
}

// kept is what a keeper has.
type kept struct {
	// runs ascend by serial and share no versions, but that the last of one may
	// be the first of another.
	runs []keptRun
	// lastID is not less than the ID of any file of the runs, lastSerial not
	// less than the serial of any run of which something may be left.
	lastID     FileID
	lastSerial uint64
}

// keptRun is a run as it is handed to and from a keeper.
type keptRun struct {
	// serial names the run, and is not used again while something may be left
	// of it.
	serial uint64
	base   base
	// firstID is the ID of the file with rank 0; the others follow rank by
	// rank, unless ownIDs is set: then each file of the base says its ID, in
	// no order.
	firstID FileID
	ownIDs  bool
	// versions begins with that of the base, which has no changes.
	first    int64
	versions []keptVersion
}

// keptVersion is one version of a run.
type keptVersion struct {
	version int64
	note    []byte
	totals  Totals
	// changes lead to this version from the one before, at most one for each
	// key. Where a path moves to another key its end comes first.
	changes []change
}

// change is a file that a version of a run has and the one before had not, or
// had otherwise; or one that it no longer has.
type change struct {
	file File
	// ended says that the version no longer has the file.
	ended bool
	// rank is that of the first file of the base whose key is not less than
	// that of this one, the number of files if there is none; or unranked.
	rank int
	// inBase says that the key of that file is this one.
	inBase bool
}

// unranked stands for a rank that was not looked for: to add a file is no reason
// to order those that are there, or to read them from a disk. A listing finds the
// place of the file among those of the base by its key.
const unranked = -1
