package main

import (
	"bytes"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

// shapes are the tables whose files are not served as they lie: what they are
// called, and what makes them.
var shapes = []struct {
	name, about string
	make        func(dir string, write func(dir, shape string) error) error
}{
	{"deleted", "1% deleted", func(dir string, write func(dir, shape string) error) error {
		return tables.MakeDeleted(dir, tables.RenderedRows/tables.RenderedFiles, write)
	}},
	{"mapped", "renamed column", tables.MakeMapped},
}

const (
	smallDeletedFiles = 1000
	smallDeletedRows  = 1000
)

func (b *bench) rendered(shape string) string { return filepath.Join(b.keep, "rendered-"+shape) }

func (b *bench) makeRendered() error {
	for _, s := range shapes {
		dir := b.rendered(s.name)
		sayMaking(dir, "the table of %d rows, %s", tables.RenderedRows, s.about)
		if err := s.make(dir, b.writeRendered(tables.RenderedFiles, tables.RenderedRows/tables.RenderedFiles)); err != nil {
			return err
		}
	}
	dir := b.rendered("small")
	sayMaking(dir, "the table of %d files with deletion vectors", smallDeletedFiles)
	return tables.MakeDeleted(dir, smallDeletedRows, b.writeRendered(smallDeletedFiles, smallDeletedRows))
}

func (b *bench) writeRendered(files, rows int) func(dir, shape string) error {
	return func(dir, shape string) error {
		_, err := b.peer("make_rendered.py", dir, files, rows, shape)
		return err
	}
}

// renderedFiles compares DuckDB over the files of a snapshot, at their first and
// second reading, with engines that read the table themselves and with the same
// rows in plain files.
func (b *bench) renderedFiles() error {
	for _, s := range shapes {
		plain, err := b.plainCopy(s.name)
		if err != nil {
			return err
		}
		for _, columns := range []string{"one", "all"} {
			if err := b.compareRendered(s.name, s.about, columns, plain); err != nil {
				return err
			}
		}
	}
	return b.listDeleted()
}

// plainCopy writes the rows of the table as the mount shows them into plain
// files.
func (b *bench) plainCopy(shape string) (string, error) {
	dir, err := b.newDir("plain-" + shape)
	if err != nil {
		return "", err
	}
	m, err := b.mountTable(b.rendered(shape), "")
	if err != nil {
		return "", err
	}
	defer m.stop()
	_, err = b.peer("copy_rendered.py", filepath.Join(m.point, "@v1"), dir)
	return dir, err
}

// reading is what was measured of a query.
type reading struct {
	name            string
	times, memories []float64
	refused         bool
}

func (b *bench) compareRendered(shape, about, columns, plain string) error {
	table := b.rendered(shape)
	first, second := &reading{name: "first"}, &reading{name: "second"}
	others := []*reading{{name: "the same rows in plain files"}, {name: "delta_scan"}, {name: "delta-rs"}, {name: "polars"}}
	for range b.runs {
		want, err := b.query(others[0], "duckdb", plain, columns, 0)
		if err != nil {
			return err
		}
		for _, o := range others[1:] {
			if _, err := b.query(o, o.name, table, columns, want); err != nil {
				return err
			}
		}
		if err := b.readTwice(first, second, table, columns, want); err != nil {
			return err
		}
	}
	for _, ours := range []*reading{first, second} {
		what := fmt.Sprintf("%s, %s, %s read", about, map[string]string{"one": "one column", "all": "all columns"}[columns], ours.name)
		for _, o := range others {
			if o.refused {
				b.report.note("%s does not read the table (%s), or reads it wrong", o.name, about)
				continue
			}
			b.report.add(what, milliseconds, median(ours.times), o.name, median(o.times))
			b.report.inform(what+", memory", megabytes, median(ours.memories), o.name, median(o.memories))
		}
	}
	return nil
}

// readTwice queries the files of a snapshot through a new mount that has
// rendered nothing, and again.
func (b *bench) readTwice(first, second *reading, table, columns string, want int) error {
	cache, err := b.newDir("rendered-cache")
	if err != nil {
		return err
	}
	m, err := b.mountTable(table, cache)
	if err != nil {
		return err
	}
	defer m.stop()
	for _, r := range []*reading{first, second} {
		if _, err := b.query(r, "duckdb", filepath.Join(m.point, "@v1"), columns, want); err != nil {
			return err
		}
		if r.refused {
			return fmt.Errorf("%s: other rows through the mount than in plain files", table)
		}
	}
	return nil
}

// query adds one measurement to a reading. An engine that finds another sum
// than is wanted does not read the table.
func (b *bench) query(r *reading, engine, path, columns string, want int) (int, error) {
	if r.refused {
		return 0, nil
	}
	result, err := b.peer("query_rendered.py", engine, path, columns)
	if err != nil {
		return 0, err
	}
	// Sums of floating-point numbers depend a little on their order.
	off := math.Abs(float64(result.Count - want))
	r.refused = result.Count < 0 || want != 0 && off > float64(want)/1e9
	r.times = append(r.times, result.Milliseconds)
	r.memories = append(r.memories, result.Memory["VmHWM"])
	return result.Count, nil
}

// listDeleted measures ls -l of a directory whose files have deletion vectors.
func (b *bench) listDeleted() error {
	var times, again []float64
	for range b.runs {
		m, err := b.mountTable(b.rendered("small"), "")
		if err != nil {
			return err
		}
		for _, into := range []*[]float64{&times, &again} {
			ms, err := took(func() error { return listLong(filepath.Join(m.point, "@v1")) })
			if err != nil {
				return err
			}
			*into = append(*into, ms)
		}
		if err := m.stop(); err != nil {
			return err
		}
	}
	plain, err := took(func() error { return listLong(b.rendered("small")) })
	if err != nil {
		return err
	}
	what := fmt.Sprintf("ls -l of %d files with deletion vectors", smallDeletedFiles)
	b.report.inform(what+", first", milliseconds, median(times), "the table's directory", plain)
	b.report.inform(what+", again", milliseconds, median(again), "the table's directory", plain)
	return nil
}

func listLong(dir string) error {
	out, err := exec.Command("ls", "-l", dir).Output()
	if lines := bytes.Count(out, []byte("\n")); err == nil && lines < smallDeletedFiles {
		err = fmt.Errorf("ls -l shows %d lines of %s", lines, dir)
	}
	return err
}
