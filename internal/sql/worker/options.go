package worker

// Options are what the parent decides.
type Options struct {
	// MemoryLimit is in bytes; Threads of 0 is one a core.
	MemoryLimit int64
	Threads     int
	// Spill is a directory for what does not fit into memory.
	Spill string
}
