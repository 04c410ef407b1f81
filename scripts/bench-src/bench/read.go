package main

import (
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

const megabyte = 1 << 20

func (b *bench) bigSize() int64 {
	if b.full {
		return 2048 * megabyte
	}
	return 512 * megabyte
}

func (b *bench) big() string {
	return filepath.Join(b.keep, fmt.Sprintf("big-%d", b.bigSize()/megabyte))
}

func (b *bench) makeBig() error {
	sayMaking(b.big(), "the table of one large file")
	return tables.MakeBig(b.big(), b.bigSize())
}

// read compares reading one large file of a snapshot with reading the plain
// file and the same file through a bare go-fuse file system.
func (b *bench) read() error {
	ours, err := b.mountTable(b.big(), "")
	if err != nil {
		return err
	}
	defer ours.stop()
	bare, err := b.startMount(filepath.Join(b.bin, "barefuse"), b.big())
	if err != nil {
		return err
	}
	defer bare.stop()
	paths := []string{
		filepath.Join(ours.point, "@v1", tables.BigFile),
		filepath.Join(bare.point, tables.BigFile),
		filepath.Join(b.big(), tables.BigFile),
	}
	for _, cold := range []bool{true, false} {
		// Reads from the page cache are so short that a few say nothing.
		more := int64(1)
		if !cold {
			more = 50
		}
		for _, m := range []struct {
			what string
			unit unit
			read func(path string) (float64, error)
		}{
			{"sequential", mbPerSecond, sequential},
			{"random 64 KiB", perSecond, random(64<<10, 1000*more)},
			{"random 4 KiB", perSecond, random(4<<10, 4000*more)},
		} {
			what := m.what + ", warm"
			if cold {
				what = m.what + ", cold"
			}
			medians, err := alternately(b.runs, contenders(paths, prepared(cold, m.read))...)
			if err != nil {
				return err
			}
			b.report.add(what, m.unit, medians[0], bareGoFuse, medians[1])
			b.report.add(what, m.unit, medians[0], plainFile, medians[2])
		}
	}
	return nil
}

const (
	bareGoFuse = "bare go-fuse"
	plainFile  = "plain file"
)

// contenders are the ways to the same bytes, measured by the same function.
func contenders(paths []string, measure func(path string) (float64, error)) []contender {
	var out []contender
	for _, p := range paths {
		out = append(out, contender{p, func() (float64, error) { return measure(p) }})
	}
	return out
}

// prepared empties the page cache before reading, or fills it with the file.
func prepared(cold bool, read func(string) (float64, error)) func(string) (float64, error) {
	return func(path string) (float64, error) {
		if cold {
			if err := dropCaches(); err != nil {
				return 0, err
			}
		} else if _, err := sequential(path); err != nil {
			return 0, err
		}
		return read(path)
	}
}

func dropCaches() error {
	unix.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// sequential reads a file and returns MB/s.
func sequential(path string) (float64, error) {
	start := time.Now()
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := make([]byte, megabyte)
	var total int64
	for {
		n, err := f.Read(buf)
		total += int64(n)
		if err == io.EOF {
			return float64(total) / 1e6 / time.Since(start).Seconds(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// random reads so many blocks at random places, the same ones every time, and
// returns reads per second.
func random(block, reads int64) func(path string) (float64, error) {
	return func(path string) (float64, error) {
		f, err := os.Open(path)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
			return 0, err
		}
		st, err := f.Stat()
		if err != nil {
			return 0, err
		}
		r := rand.New(rand.NewSource(1))
		buf := make([]byte, block)
		start := time.Now()
		for range reads {
			if _, err := f.ReadAt(buf, r.Int63n(st.Size()/block)*block); err != nil {
				return 0, err
			}
		}
		return float64(reads) / time.Since(start).Seconds(), nil
	}
}
