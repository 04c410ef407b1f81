package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

const openedFiles = 20_000

// smallFiles compares opening, reading and closing many small files. Their
// bytes are in the page cache; names are new to a mount the first time.
func (b *bench) smallFiles() error {
	if err := openAll(b.wide()); err != nil {
		return err
	}
	ours := tree{"deltafs", "@v1", func() (*mount, error) { return b.mountTable(b.wide(), "") }}
	bare := tree{bareGoFuse, "", func() (*mount, error) { return b.startMount(filepath.Join(b.bin, "barefuse"), b.wide()) }}
	trees := []tree{ours, bare, {plainFile, "", nil}}
	var again [3][]float64
	var contenders []contender
	for i, t := range trees {
		contenders = append(contenders, contender{t.name, func() (float64, error) {
			first, second, err := b.twice(t, openAll)
			again[i] = append(again[i], second)
			return first, err
		}})
	}
	first, err := alternately(b.runs, contenders...)
	if err != nil {
		return err
	}
	for i := 1; i < len(trees); i++ {
		b.report.add("20,000 files, first time", milliseconds, first[0], trees[i].name, first[i])
	}
	for i := 1; i < len(trees); i++ {
		b.report.add("20,000 files, again", milliseconds, median(again[0]), trees[i].name, median(again[i]))
	}
	return nil
}

// openAll opens, reads and closes the files, one after another.
func openAll(dir string) error {
	buf := make([]byte, tables.WideSize)
	for i := range openedFiles {
		f, err := os.Open(filepath.Join(dir, tables.WideFile(i)))
		if err != nil {
			return err
		}
		_, err = io.ReadFull(f, buf)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
