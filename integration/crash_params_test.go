package integration

import (
	"os"
	"strconv"
	"testing"
)

func crashRounds(t *testing.T) int {
	if os.Getenv("DELTAFS_FULL") != "" {
		return int(envNumber(t, "DELTAFS_CRASH_ROUNDS", 1000))
	}
	return int(envNumber(t, "DELTAFS_CRASH_ROUNDS", 200))
}

func crashSeed(t *testing.T) int64 { return envNumber(t, "DELTAFS_CRASH_SEED", 1) }

func envNumber(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
