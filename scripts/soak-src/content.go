package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/deltafs/deltafs/integration/fixture"
)

// Rows of a file: its ids start at a thousand times its number, and how many
// there are follows from the number too.
const idsPerFile = 1000

func rowsOf(file int64) []fixture.Row {
	return fixture.Rows(file*idsPerFile, 1+int(uint64(file)*2654435761%200))
}

// contentOf is the whole file with the number.
func contentOf(file int64) []byte { return fixture.Parquet(rowsOf(file)) }

// fileOf reads a file and returns its number. It is an error if the file is
// not exactly what its number says.
func fileOf(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rows, err := decode(f)
	if err == nil && len(rows) > 0 {
		file := rows[0].ID / idsPerFile
		if slices.Equal(rows, rowsOf(file)) {
			return file, nil
		}
		err = fmt.Errorf("its %d rows from id %d on are not those of file %d", len(rows), rows[0].ID, file)
	}
	return 0, fmt.Errorf("%s: %w; %s", path, err, evidence(f))
}

// decode is fixture.DecodeParquet for bytes that may be anything.
func decode(f *os.File) (rows []fixture.Row, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoding panics: %v", r)
		}
	}()
	if rows, err = fixture.DecodeParquet(f); err == nil && len(rows) == 0 {
		err = errors.New("it has no rows")
	}
	return rows, err
}

// evidence says what an open file that did not read well looks like.
func evidence(f *os.File) string {
	st, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	return fmt.Sprintf("inode %d, size %d, read %d bytes (%v), %.8q … %q", st.Sys().(*syscall.Stat_t).Ino, st.Size(),
		len(data), err, data, data[max(0, len(data)-8):])
}
