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

// saveMemory makes the process collect garbage as a mount should, unless the
// user knows better.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(mountGCPercent)
	}
}
