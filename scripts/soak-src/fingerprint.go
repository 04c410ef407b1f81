package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// fingerprint stands for the files and rows of a version. Files can be added
// and taken out in any order.
type fingerprint struct {
	a, b  uint64
	files int64
}

// add adds a file that is shown under a name ("day=1/x.parquet").
func (p *fingerprint) add(name string, size, file int64) { p.change(name, size, file, 1) }

// remove takes it out.
func (p *fingerprint) remove(name string, size, file int64) { p.change(name, size, file, ^uint64(0)) }

func (p *fingerprint) change(name string, size, file int64, times uint64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%d", name, size, file))
	p.a += times * binary.LittleEndian.Uint64(sum[:])
	p.b += times * binary.LittleEndian.Uint64(sum[8:])
	p.files += int64(times)
}

func (p *fingerprint) String() string { return fmt.Sprintf("%d files %016x%016x", p.files, p.a, p.b) }
