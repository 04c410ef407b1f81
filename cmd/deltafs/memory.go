package main

import (
	"os"
	"runtime/debug"
)

// mountGCPercent is how much garbage a mount may pile up, in percent of what
// lives. Most of what lives in a mount is the index, large pieces without
// pointers that cost the collector next to nothing to look at, so collecting
// twice as often as the default is cheap, and the memory is worth more to what
// runs beside a mount that mostly waits.
const mountGCPercent = 50

// ballastSize makes the collector wait for half of it, in bytes, however little
// lives: the heap of a small table would be collected after every few appends,
// and each time costs more than what it finds.
const ballastSize = 16 << 20

// saveMemory makes the process collect garbage as a mount should, unless the
// user knows better. The ballast that it returns must be kept for as long as
// that is to last; it is never touched, and so takes no memory.
func saveMemory() (ballast []byte) {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(mountGCPercent)
	return make([]byte, ballastSize)
}
