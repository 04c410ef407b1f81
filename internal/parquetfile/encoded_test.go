package parquetfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
)

func TestReadFooterFindsWhatCheckFinds(t *testing.T) {
	n := 0
	eachFile(t, func(name string, r io.ReaderAt, size int64) {
		f, err := Check(r, size)
		if err != nil {
			return
		}
		n++
		foot, err := ReadFooter(r, size)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if foot.NumRows != f.NumRows || foot.CreatedBy != f.CreatedBy || len(foot.Columns()) != len(f.Columns()) ||
			len(foot.RowGroups) != len(f.RowGroups) || len(foot.KeyValues) < len(f.KeyValues) {
			t.Errorf("%s: %+v", name, foot)
		}
		for i, c := range foot.Columns() {
			if pathOf(c) != pathOf(f.Columns()[i]) || !bytes.Contains(foot.Elements[c.Place], []byte(c.Name)) {
				t.Errorf("%s: column %d is %s, element %q", name, i, pathOf(c), foot.Elements[c.Place])
			}
		}
	})
	if n < 1000 {
		t.Errorf("only %d files", n)
	}
}

func TestReadFooterOfMoreThanATail(t *testing.T) {
	b := encode(t, makeRows(3), 2, parquet.KeyValueMetadata("long", strings.Repeat("x", 2*tailRead)))
	foot, err := ReadFooter(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if foot.NumRows != 3 || foot.Start != int64(footerStart(b)) || len(foot.KeyValues[0].Value) != 2*tailRead {
		t.Errorf("%d rows, begins at %d", foot.NumRows, foot.Start)
	}
}

func TestReadFooterReadsOnce(t *testing.T) {
	r := &readCounter{b: sample(t)}
	if _, err := ReadFooter(r, int64(len(r.b))); err != nil || r.reads != 1 {
		t.Errorf("%d reads: %v", r.reads, err)
	}
}

type readCounter struct {
	b     []byte
	reads int
}

func (c *readCounter) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return bytes.NewReader(c.b).ReadAt(p, off)
}

func TestReadFooterOfDamagedFiles(t *testing.T) {
	b := sample(t)
	for n := range 200 {
		if _, err := ReadFooter(bytes.NewReader(b), int64(len(b)-1-n)); !errors.Is(err, ErrNotYet) {
			t.Errorf("%d bytes less: %v", n+1, err)
		}
	}
	// A list of 2^31-1 elements that are not there.
	claim := append([]byte("PAR1"), 0x19|0x10, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 5, 0, 0, 0)
	claim = append(claim, magic...)
	if _, err := ReadFooter(bytes.NewReader(claim), int64(len(claim))); err == nil {
		t.Error("elements that are not there were decoded")
	}
	encrypted := append(bytes.Clone(b[:len(b)-4]), encryptedMagic...)
	if f, err := ReadFooter(bytes.NewReader(encrypted), int64(len(encrypted))); err != nil || !f.Encrypted {
		t.Errorf("an encrypted footer: %v", err)
	}
}

func TestFieldsOfAStruct(t *testing.T) {
	b := []byte{0x15, 0x04, 0x18, 0x02, 'h', 'i', 0x11, 0x29, 0x25, 0x02, 0x03, 0x00}
	fields, err := Fields(b)
	if err != nil || len(fields) != 4 {
		t.Fatalf("%v, %v", fields, err)
	}
	if fields[0].Int() != 2 || string(fields[1].Bytes()) != "hi" || fields[2].Type != thrift.TRUE || fields[3].ID != 5 {
		t.Errorf("%v", fields)
	}
	if ints := fields[3].Ints(); len(ints) != 2 || ints[0] != 1 || ints[1] != -2 {
		t.Errorf("%v", ints)
	}
	if fields[1].Int() != 0 || fields[0].Bytes() != nil {
		t.Error("a value of another type was read")
	}
	for n := range b {
		if _, err := Fields(b[:n]); !errors.Is(err, ErrBroken) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := Fields(append(b, 0)); !errors.Is(err, ErrBroken) {
		t.Error("bytes are left over", err)
	}
}
