package main

import (
	"fmt"
	"io"
	"math/rand"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	megabyte  = 1 << 20
	blockSize = 4096
)

// target is one way to the same bytes.
type target struct{ name, path string }

// measurement is a way of reading, with its result in unit.
type measurement struct {
	name, unit string
	cold       bool
	read       func(path string) (float64, error)
}

func (c *config) reading(targets []target) error {
	cold := os.Geteuid() == 0
	if !cold {
		fmt.Println("(not root: the page cache cannot be dropped, no cold numbers)")
	}
	measurements := []measurement{
		{"sequential, cold", "MB/s", true, sequential},
		{"sequential, warm", "MB/s", false, sequential},
		{"random 4 KiB, cold", "reads/s", true, c.random},
		{"random 4 KiB, warm", "reads/s", false, c.random},
	}
	fmt.Printf("%-20s", "reading")
	for _, t := range targets {
		fmt.Printf(" %22s", t.name)
	}
	fmt.Println()
	for _, m := range measurements {
		if m.cold && !cold {
			continue
		}
		results, err := c.measure(m, targets)
		if err != nil {
			return err
		}
		fmt.Printf("%-20s", m.name)
		for _, r := range results {
			fmt.Printf(" %9.0f %-7s x%.2f", r, m.unit, r/results[0])
		}
		fmt.Println()
	}
	fmt.Println()
	return nil
}

// measure reads every target in turn, run by run, so that what disturbs the
// machine disturbs them all.
func (c *config) measure(m measurement, targets []target) ([]float64, error) {
	all := make([][]float64, len(targets))
	for range c.runs {
		for i, t := range targets {
			if err := prepare(m.cold, t.path); err != nil {
				return nil, err
			}
			v, err := m.read(t.path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			all[i] = append(all[i], v)
		}
	}
	out := make([]float64, len(targets))
	for i, values := range all {
		out[i] = median(values)
	}
	return out, nil
}

// prepare empties the page cache, or fills it with the file.
func prepare(cold bool, path string) error {
	if cold {
		unix.Sync()
		return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
	}
	_, err := sequential(path)
	return err
}

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

func (c *config) random(path string) (float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return 0, err
	}
	r := rand.New(rand.NewSource(1))
	blocks := int64(c.megabytes) * megabyte / blockSize
	buf := make([]byte, blockSize)
	start := time.Now()
	for range c.reads {
		if _, err := f.ReadAt(buf, r.Int63n(blocks)*blockSize); err != nil {
			return 0, err
		}
	}
	return float64(c.reads) / time.Since(start).Seconds(), nil
}

// fill makes a file of noise.
func fill(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := rand.New(rand.NewSource(2))
	if _, err := io.CopyN(f, r, size); err != nil {
		return err
	}
	return f.Sync()
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
