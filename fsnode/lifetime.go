package fsnode

import "time"

// How long the kernel may keep a name or the attributes of a node. Nodes and
// directories choose one of these and nothing else; a negative answer has the
// lifetime of a name too.
const (
	// forever is for what cannot change: everything in a snapshot, and the
	// names of versions, which are invalidated if the table is made again. The
	// kernel clamps it.
	forever = 365 * 24 * time.Hour
	// liveTTL is for directories in current/ and in a lake. It bounds what is
	// shown of the past if a notification was lost.
	liveTTL = time.Second
	// never is for what may change at any time or means something else to
	// another process: files in current/, the link to the latest version,
	// timestamps not long past, generated text, missing names outside of
	// snapshots. Invalidating such names one by one instead would need the lock
	// of their directory, see notifier.
	never = time.Duration(0)
)
