package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// peerResult is what a peer's program prints.
type peerResult struct {
	// Milliseconds is the time of what is measured, without starting Python.
	Milliseconds float64 `json:"ms"`
	// Count is the number of names or rows found, to compare.
	Count int `json:"count"`
	// Memory are fields of /proc/self/status, in MB.
	Memory map[string]float64 `json:"memory"`
	// Whole is the time of the whole process.
	Whole float64 `json:"-"`
}

// peer runs a peer's program of scripts/bench-src/peers.
func (b *bench) peer(program string, args ...any) (peerResult, error) {
	var r peerResult
	words := []string{"-W", "ignore", filepath.Join(b.peers, program)}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	cmd := exec.Command(b.python, words...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("%s: %w", program, err)
	}
	r.Whole = inMilliseconds(time.Since(start))
	return r, json.Unmarshal(out, &r)
}
