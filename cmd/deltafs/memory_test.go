package main

import (
	"runtime/debug"
	"testing"
)

func TestMountCollectsGarbageEarlyUnlessTold(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "300")
	if ballast := saveMemory(); ballast != nil {
		t.Error("ballast beside the GOGC of the user")
	}
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("GOGC of the user was replaced by %d", got)
	}
	t.Setenv("GOGC", "")
	ballast := saveMemory()
	if len(ballast) != ballastSize {
		t.Errorf("ballast of %d bytes", len(ballast))
	}
	if got := debug.SetGCPercent(100); got != mountGCPercent {
		t.Errorf("%d", got)
	}
}
