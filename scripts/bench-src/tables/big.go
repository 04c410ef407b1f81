package tables

import (
	"bufio"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/deltafs/deltafs/integration/fixture"
)

// BigFile is the one file of the table that MakeBig makes, at version 1.
const BigFile = "big.parquet"

// MakeBig makes a table of one file of noise in dir. Nothing decodes it.
func MakeBig(dir string, size int64) error {
	_, err := making(dir, func(dir string) (struct{}, error) {
		t, err := fixture.Create(dir, fixture.Spec{})
		if err != nil {
			return struct{}{}, err
		}
		if err := noise(filepath.Join(dir, BigFile), size); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, t.Commit("WRITE", addLine(BigFile, size, 1))
	})
	return err
}

func noise(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := io.CopyN(w, rand.NewChaCha8([32]byte{2}), size); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Sync()
}
