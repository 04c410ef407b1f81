package writer

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// dropColumnIndexes takes the column indexes of some columns out of the footer
// of a Parquet file, whose bounds are wrong: without, readers read the pages.
func dropColumnIndexes(f *os.File, columns [][]string) error {
	if len(columns) == 0 {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// The file ends with the footer, its length and the magic number.
	const tailLength = 8
	var tail [tailLength]byte
	if _, err := f.ReadAt(tail[:], info.Size()-tailLength); err != nil {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	start := info.Size() - tailLength - length
	if start < 0 {
		return errors.New("the footer is longer than the file")
	}
	raw := make([]byte, length)
	if _, err := f.ReadAt(raw, start); err != nil {
		return err
	}
	var meta format.FileMetaData
	protocol := &thrift.CompactProtocol{}
	if err := thrift.Unmarshal(protocol, raw, &meta); err != nil {
		return err
	}
	for i := range meta.RowGroups {
		for j := range meta.RowGroups[i].Columns {
			c := &meta.RowGroups[i].Columns[j]
			if slices.ContainsFunc(columns, func(path []string) bool { return slices.Equal(path, c.MetaData.PathInSchema) }) {
				c.ColumnIndexOffset, c.ColumnIndexLength = 0, 0
			}
		}
	}
	if raw, err = thrift.Marshal(protocol, meta); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(tail[:], uint32(len(raw)))
	if _, err := f.WriteAt(raw, start); err != nil {
		return err
	}
	if _, err := f.WriteAt(tail[:], start+int64(len(raw))); err != nil {
		return err
	}
	return f.Truncate(start + int64(len(raw)) + tailLength)
}
