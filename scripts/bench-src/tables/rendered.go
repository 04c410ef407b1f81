package tables

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/integration/fixture"
)

// RenderedRows is the number of rows of the tables whose files a mount does not
// serve as they lie, before any is deleted, and RenderedFiles that of the files
// that they are in.
const (
	RenderedRows  = 10_000_000
	RenderedFiles = 4
)

// renderedDeleted is the part of the rows that a deletion vector removes: one in
// so many.
const renderedDeleted = 100

// renderedColumn is a column of these tables: its name, its type, and its name
// in the files of the table with column mapping.
type renderedColumn struct{ name, delta, physical string }

var renderedColumns = []renderedColumn{
	{"id", "long", "id"}, {"store", "integer", "store"}, {"amount", "double", "price"},
	{"name", "string", "name"}, {"day", "date", "day"},
}

func renderedSchema(mapped bool) string {
	var fields []string
	for i, c := range renderedColumns {
		metadata := "{}"
		if mapped {
			metadata = fmt.Sprintf(`{"delta.columnMapping.id":%d,"delta.columnMapping.physicalName":%q}`, i+1, c.physical)
		}
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":%q,"nullable":true,"metadata":%s}`, c.name, c.delta, metadata))
	}
	return `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`
}

// MakeMapped makes a table with column mapping whose column amount is named
// price in the files, in version 1.
func MakeMapped(dir string, write func(dir, shape string) error) error {
	return makeRendered(dir, fixture.Spec{
		Schema:     renderedSchema(true),
		Protocol:   `{"minReaderVersion":2,"minWriterVersion":5}`,
		Properties: map[string]string{"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "5"},
	}, func(dir string) error { return write(dir, "mapped") }, nil)
}

// MakeDeleted makes a table that lost rows at random by deletion vectors, one a
// file, in version 1. perFile is the number of rows of a file.
func MakeDeleted(dir string, perFile int, write func(dir, shape string) error) error {
	random := rand.New(rand.NewPCG(1, 2))
	return makeRendered(dir, fixture.Spec{
		Schema: renderedSchema(false),
		Protocol: `{"minReaderVersion":3,"minWriterVersion":7,` +
			`"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}`,
		Properties: map[string]string{"delta.enableDeletionVectors": "true"},
	}, func(dir string) error { return write(dir, "deleted") }, func() *roaring64.Bitmap {
		rows := roaring64.New()
		for range perFile / renderedDeleted {
			rows.Add(random.Uint64N(uint64(perFile)))
		}
		return rows
	})
}

// makeRendered makes a table of the files that write writes. deleted makes a
// deletion vector for each of them.
func makeRendered(dir string, spec fixture.Spec, write func(string) error, deleted func() *roaring64.Bitmap) error {
	_, err := making(dir, func(dir string) (struct{}, error) {
		var none struct{}
		t, err := fixture.Create(dir, spec)
		if err != nil {
			return none, err
		}
		if err := write(dir); err != nil {
			return none, err
		}
		paths, err := filepath.Glob(filepath.Join(dir, "*.parquet"))
		if err != nil {
			return none, err
		}
		vectors := &vectorFile{uuid: [16]byte{1, 2, 3}, bytes: []byte{1}}
		var lines []string
		for _, p := range paths {
			line, err := vectors.add(p, deleted)
			if err != nil {
				return none, err
			}
			lines = append(lines, line)
		}
		if err := vectors.write(dir); err != nil {
			return none, err
		}
		return none, t.Commit("WRITE", lines...)
	})
	return err
}

// vectorFile is the file of a table's deletion vectors (protocol section
// "Deletion Vector File Storage Format").
type vectorFile struct {
	uuid  [16]byte
	bytes []byte
}

func (f *vectorFile) add(path string, deleted func() *roaring64.Bitmap) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	rows, err := rowsOf(path)
	if err != nil {
		return "", err
	}
	add := map[string]any{
		"path": filepath.Base(path), "partitionValues": map[string]string{}, "size": st.Size(),
		"modificationTime": commitTime(1).UnixMilli(), "dataChange": true,
		"stats": fmt.Sprintf(`{"numRecords":%d,"tightBounds":false}`, rows),
	}
	if deleted != nil {
		bitmap := deleted()
		offset := len(f.bytes)
		data, err := f.append(bitmap)
		if err != nil {
			return "", err
		}
		add["deletionVector"] = map[string]any{
			"storageType": "u", "pathOrInlineDv": z85(f.uuid[:]), "offset": offset,
			"sizeInBytes": data, "cardinality": bitmap.GetCardinality(),
		}
	}
	line, err := json.Marshal(map[string]any{"add": add})
	return string(line), err
}

// append adds a vector and returns its length in bytes.
func (f *vectorFile) append(bitmap *roaring64.Bitmap) (int, error) {
	const magic = 1681511377
	data := bytes.NewBuffer(binary.LittleEndian.AppendUint32(nil, magic))
	if _, err := bitmap.WriteTo(data); err != nil {
		return 0, err
	}
	f.bytes = binary.BigEndian.AppendUint32(f.bytes, uint32(data.Len()))
	f.bytes = append(f.bytes, data.Bytes()...)
	f.bytes = binary.BigEndian.AppendUint32(f.bytes, crc32.ChecksumIEEE(data.Bytes()))
	return data.Len(), nil
}

func (f *vectorFile) write(dir string) error {
	u := f.uuid
	name := fmt.Sprintf("deletion_vector_%x-%x-%x-%x-%x.bin", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	return os.WriteFile(filepath.Join(dir, name), f.bytes, 0o644)
}

// z85 encodes bytes, a multiple of four of them.
func z85(b []byte) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
	var out []byte
	for ; len(b) > 0; b = b[4:] {
		word := binary.BigEndian.Uint32(b)
		group := [5]byte{}
		for i := 4; i >= 0; i-- {
			group[i] = digits[word%85]
			word /= 85
		}
		out = append(out, group[:]...)
	}
	return string(out)
}
