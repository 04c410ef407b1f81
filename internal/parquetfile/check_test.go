package parquetfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// brokenInputs are the files of the corpus that contradict themselves.
var brokenInputs = map[string]string{
	"parquet-inputs/hyparquet/repeated_no_annotation.parquet":       "the row groups have 6 rows, the file 0",
	"parquet-inputs/spark-rapids/nested-unsigned-malformed.parquet": "row group 0 has 2 rows and 4 values",
}

func TestCheckAcceptsFilesOfRealWriters(t *testing.T) {
	n := 0
	eachFile(t, func(name string, r io.ReaderAt, size int64) {
		n++
		f, err := Check(r, size)
		if reason, broken := brokenInputs[name]; broken {
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, expected %q", name, err, reason)
			}
			return
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		lib, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
		if err != nil {
			return // the library refuses some files that are whole
		}
		if f.NumRows != lib.NumRows() || len(f.Columns()) != len(lib.Schema().Columns()) {
			t.Errorf("%s: %d rows and %d columns, the library finds %d and %d",
				name, f.NumRows, len(f.Columns()), lib.NumRows(), len(lib.Schema().Columns()))
		}
		for i, path := range lib.Schema().Columns() {
			leaf, _ := lib.Schema().Lookup(path...)
			c := f.Columns()[i]
			if strings.Join(path, "/") != strings.Join(c.Path, "/") || leaf.MaxDefinitionLevel != c.MaxDefinition ||
				leaf.MaxRepetitionLevel != c.MaxRepetition {
				t.Errorf("%s: column %v has levels %d, %d, the library finds %d, %d for %v",
					name, c.Path, c.MaxDefinition, c.MaxRepetition, leaf.MaxDefinitionLevel, leaf.MaxRepetitionLevel, path)
			}
		}
	})
	if n < 1000 {
		t.Errorf("only %d files", n)
	}
}

func TestCheckAcceptsEveryWayOfWriting(t *testing.T) {
	rows := makeRows(500)
	tests := map[string][]parquet.WriterOption{
		"plain":     nil,
		"gzip":      {parquet.Compression(&parquet.Gzip)},
		"zstd":      {parquet.Compression(&parquet.Zstd)},
		"brotli":    {parquet.Compression(&parquet.Brotli)},
		"lz4":       {parquet.Compression(&parquet.Lz4Raw)},
		"pages v1":  {parquet.DataPageVersion(1), parquet.PageBufferSize(256)},
		"pages v2":  {parquet.DataPageVersion(2), parquet.PageBufferSize(256)},
		"bloom":     {parquet.BloomFilters(parquet.SplitBlockFilter(10, "id"), parquet.SplitBlockFilter(10, "name"))},
		"key value": {parquet.KeyValueMetadata("k", "v")},
		"page stat": {parquet.DataPageStatistics(true)},
	}
	for name, options := range tests {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 500} {
				f, err := checkBytes(encode(t, rows[:n], 200, options...))
				if err != nil {
					t.Fatalf("%d rows: %v", n, err)
				}
				if f.NumRows != int64(n) {
					t.Errorf("%d rows instead of %d", f.NumRows, n)
				}
			}
		})
	}
}

func TestCheckTruncatedFileIsNotYet(t *testing.T) {
	b := sample(t)
	for i := range 50 {
		n := len(b) * i / 50
		if _, err := checkBytes(b[:n]); !errors.Is(err, ErrNotYet) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	for n := len(b) - 300; n < len(b); n++ {
		if _, err := checkBytes(b[:n]); !errors.Is(err, ErrNotYet) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestCheckOtherBytesAreNotYet(t *testing.T) {
	for name, b := range map[string]string{
		"empty":             "",
		"text":              "id,name\n1,a\n2,b\n",
		"text with an end":  "once upon a time, there was PAR1",
		"only the magic":    "PAR1",
		"both magics":       "PAR1PAR1",
		"no footer":         "PAR1\x00\x00\x00\x00PAR1",
		"footer too long":   "PAR1\xff\xff\xff\x7fPAR1",
		"footer is rubbish": "PAR1\x19\x2a\x19\x08\x08\x00\x00\x00PAR1",
		"encrypted half":    "PAREsecretsecret\x05\x00\x00\x00",
	} {
		if _, err := checkBytes([]byte(b)); !errors.Is(err, ErrNotYet) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefusesEncryptedByName(t *testing.T) {
	b := []byte("PAREsecretsecret\x05\x00\x00\x00PARE")
	if _, err := checkBytes(b); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "encrypted") {
		t.Error(err)
	}
}

func TestCheckRefusesJoinedFiles(t *testing.T) {
	a, b := sample(t), encode(t, makeRows(70), 30)
	plain := encode(t, []struct{ X int32 }{{1}, {2}, {3}}, 10)
	for name, pair := range map[string][2][]byte{
		"a file and itself": {a, a}, "long and short": {a, b}, "short and long": {b, a},
		"other schema first": {plain, a}, "other schema last": {a, plain}, "tiny twice": {plain, plain},
		"three": {append(bytes.Clone(a), b...), plain},
	} {
		joinedBytes := append(bytes.Clone(pair[0]), pair[1]...)
		_, err := checkBytes(joinedBytes)
		if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "two Parquet files joined") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefusesJoinedFilesOfRealWriters(t *testing.T) {
	other := encode(t, makeRows(70), 30)
	n := 0
	eachFile(t, func(name string, r io.ReaderAt, size int64) {
		if size > 1<<20 || brokenInputs[name] != "" || n > 300 {
			return
		}
		n++
		b := make([]byte, size)
		if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for _, joinedBytes := range [][]byte{append(bytes.Clone(b), b...), append(bytes.Clone(other), b...)} {
			if _, err := checkBytes(joinedBytes); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "joined") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestCheckRefusesHoles(t *testing.T) {
	b := sample(t)
	meta := decodeFooter(t, b)
	for i, g := range meta.RowGroups {
		for j, c := range g.Columns {
			start := c.MetaData.DataPageOffset
			if d := c.MetaData.DictionaryPageOffset; d > 0 {
				start = d
			}
			holed := bytes.Clone(b)
			clear(holed[start:min(start+64, start+c.MetaData.TotalCompressedSize)])
			if _, err := checkBytes(holed); !errors.Is(err, ErrBroken) {
				t.Errorf("hole at the beginning of chunk %d.%d: %v", i, j, err)
			}
			holed = bytes.Clone(b)
			clear(holed[start:footerStart(b)])
			if _, err := checkBytes(holed); !errors.Is(err, ErrBroken) {
				t.Errorf("nothing written from chunk %d.%d on: %v", i, j, err)
			}
		}
	}
}

func TestCheckRefusesContradictoryFooters(t *testing.T) {
	b := sample(t)
	at := func(m *format.FileMetaData, column int) *format.ColumnChunk { return &m.RowGroups[1].Columns[column] }
	end := int64(footerStart(b))
	for name, test := range map[string]struct {
		mutate func(m *format.FileMetaData)
		reason string
	}{
		"data outside":          {func(m *format.FileMetaData) { at(m, 0).MetaData.DataPageOffset = end + 1 }, "outside"},
		"data far outside":      {func(m *format.FileMetaData) { at(m, 0).MetaData.DataPageOffset = 1 << 62 }, "outside"},
		"data before the file":  {func(m *format.FileMetaData) { at(m, 0).MetaData.DataPageOffset = -5 }, "outside"},
		"data in the magic":     {func(m *format.FileMetaData) { at(m, 0).MetaData.DataPageOffset = 1 }, "outside"},
		"too long":              {func(m *format.FileMetaData) { at(m, 0).MetaData.TotalCompressedSize = 1 << 62 }, "outside"},
		"a byte too long":       {func(m *format.FileMetaData) { at(m, 0).MetaData.TotalCompressedSize++ }, ""},
		"a byte too short":      {func(m *format.FileMetaData) { at(m, 0).MetaData.TotalCompressedSize-- }, ""},
		"negative size":         {func(m *format.FileMetaData) { at(m, 0).MetaData.TotalCompressedSize = -1 }, "outside"},
		"no size":               {func(m *format.FileMetaData) { at(m, 0).MetaData.TotalCompressedSize = 0 }, ""},
		"a value more":          {func(m *format.FileMetaData) { at(m, 3).MetaData.NumValues++ }, "values"},
		"a value less":          {func(m *format.FileMetaData) { at(m, 3).MetaData.NumValues-- }, "values"},
		"flat values more":      {func(m *format.FileMetaData) { at(m, 0).MetaData.NumValues++ }, "100 rows and 101 values"},
		"negative values":       {func(m *format.FileMetaData) { at(m, 3).MetaData.NumValues = -1 }, "values"},
		"rows of the file":      {func(m *format.FileMetaData) { m.NumRows++ }, "the row groups have 300 rows, the file 301"},
		"rows of a group":       {func(m *format.FileMetaData) { m.RowGroups[1].NumRows++ }, ""},
		"negative rows":         {func(m *format.FileMetaData) { m.RowGroups[1].NumRows = -100 }, "-100 rows"},
		"dictionary later":      {func(m *format.FileMetaData) { at(m, 1).MetaData.DictionaryPageOffset = end - 4 }, "dictionary"},
		"dictionary unsaid":     {func(m *format.FileMetaData) { at(m, 1).MetaData.DictionaryPageOffset = 0 }, ""},
		"another path":          {func(m *format.FileMetaData) { at(m, 1).MetaData.PathInSchema = []string{"id"} }, `holds column "id"`},
		"another type":          {func(m *format.FileMetaData) { at(m, 0).MetaData.Type = format.Int32 }, "holds INT32, the schema says INT64"},
		"columns swapped":       {func(m *format.FileMetaData) { c := m.RowGroups[1].Columns; c[0], c[1] = c[1], c[0] }, ""},
		"a column missing":      {func(m *format.FileMetaData) { m.RowGroups[1].Columns = m.RowGroups[1].Columns[:2] }, "columns"},
		"data elsewhere":        {func(m *format.FileMetaData) { at(m, 0).FilePath = "x.parquet" }, "another file"},
		"two chunks in one":     {func(m *format.FileMetaData) { m.RowGroups[1] = m.RowGroups[0] }, "overlap"},
		"offset index outside":  {func(m *format.FileMetaData) { at(m, 0).OffsetIndexOffset = end }, "offset index"},
		"offset index negative": {func(m *format.FileMetaData) { at(m, 0).OffsetIndexLength = -1 }, "offset index"},
		"column index in data":  {func(m *format.FileMetaData) { at(m, 0).ColumnIndexOffset = 10 }, "overlap"},
		"bloom filter outside":  {func(m *format.FileMetaData) { at(m, 0).MetaData.BloomFilterOffset = end + 100 }, ""},
		"a group unsaid":        {func(m *format.FileMetaData) { m.RowGroups, m.NumRows = m.RowGroups[:2], 200 }, "belong to no column"},
		"no schema":             {func(m *format.FileMetaData) { m.Schema = m.Schema[:1] }, ""},
		"schema cut off":        {func(m *format.FileMetaData) { m.Schema = m.Schema[:3] }, "schema"},
		"schema with more":      {func(m *format.FileMetaData) { m.Schema[0].NumChildren.V-- }, "schema"},
		"group without end":     {func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = 1 << 30 }, "schema"},
		"encrypted": {func(m *format.FileMetaData) {
			m.EncryptionAlgorithm.Value = &format.AesGcmV1{AadFileUnique: []byte("x")}
		}, "encrypted"},
		"encrypted column": {func(m *format.FileMetaData) {
			at(m, 0).CryptoMetadata.Value = &format.EncryptionWithFooterKey{}
		}, "encrypted"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := decodeFooter(t, b)
			test.mutate(meta)
			_, err := checkBytes(withFooter(t, b[:footerStart(b)], meta))
			if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("%v, expected %q", err, test.reason)
			}
		})
	}
}

func TestCheckGapsMustBeZeros(t *testing.T) {
	b := sample(t)
	meta := decodeFooter(t, b)
	second := meta.RowGroups[1].Columns[0].MetaData
	start := min(second.DataPageOffset, max(second.DictionaryPageOffset, second.DataPageOffset))
	for name, off := range map[string]int64{
		"between row groups": start, "before the footer": int64(footerStart(b)), "behind the magic": 4,
	} {
		if _, err := checkBytes(insert(t, b, off, make([]byte, 100_000))); err != nil {
			t.Errorf("zeros %s: %v", name, err)
		}
		garbage := make([]byte, 100_000)
		garbage[99_998] = 1
		for _, extra := range [][]byte{{7}, garbage, []byte("PAR1")} {
			if _, err := checkBytes(insert(t, b, off, extra)); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "belong to no column") {
				t.Errorf("garbage %s: %v", name, err)
			}
		}
	}
}

func TestCheckFindsGarbageBetweenPages(t *testing.T) {
	b := encode(t, makeRows(400), 400, parquet.PageBufferSize(256))
	meta := decodeFooter(t, b)
	c := meta.RowGroups[0].Columns[0].MetaData
	w := &window{r: bytes.NewReader(b), end: int64(footerStart(b))}
	h, n, err := w.pageHeader(c.DataPageOffset, c.DataPageOffset+c.TotalCompressedSize)
	if err != nil {
		t.Fatal(err)
	}
	second := c.DataPageOffset + n + int64(h.compressed)
	if second >= c.DataPageOffset+c.TotalCompressedSize {
		t.Fatal("the column has one page")
	}
	broken := insert(t, b, second, []byte{0xff})
	meta = decodeFooter(t, broken)
	meta.RowGroups[0].Columns[0].MetaData.TotalCompressedSize++
	broken = withFooter(t, broken[:footerStart(broken)], meta)
	if _, err := checkBytes(broken); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "page") {
		t.Error(err)
	}
}

// countingReader counts the bytes read, and fails when told to.
type countingReader struct {
	io.ReaderAt
	n   int64
	err error
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	c.n += int64(len(p))
	return c.ReaderAt.ReadAt(p, off)
}

func TestCheckReadsHeadersOnly(t *testing.T) {
	type number struct {
		N int64 `parquet:"n,plain"`
	}
	rows := make([]number, 2<<20)
	for i := range rows {
		rows[i].N = int64(i)
	}
	b := encode(t, rows, 1<<20, parquet.PageBufferSize(1<<20))
	r := &countingReader{ReaderAt: bytes.NewReader(b)}
	if _, err := Check(r, int64(len(b))); err != nil {
		t.Fatal(err)
	}
	if limit := int64(len(b) / 50); r.n > limit {
		t.Errorf("%d of %d bytes read", r.n, len(b))
	}
}

func TestCheckReturnsTheReadersError(t *testing.T) {
	b := sample(t)
	bad := errors.New("disk on fire")
	_, err := Check(&countingReader{ReaderAt: bytes.NewReader(b), err: bad}, int64(len(b)))
	if !errors.Is(err, bad) || errors.Is(err, ErrBroken) || errors.Is(err, ErrNotYet) {
		t.Error(err)
	}
}

func FuzzCheck(f *testing.F) {
	small := encode(f, makeRows(5), 3)
	f.Add(small)
	f.Add(encode(f, makeRows(2), 3, parquet.DataPageVersion(1), parquet.Compression(&parquet.Gzip)))
	f.Add(append(bytes.Clone(small), small...))
	f.Add(small[:len(small)/2])
	f.Add([]byte("PAR1\x15\x02\x19\x08\x16\x00\x19\x08\x00\x09\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := checkBytes(b)
		if err != nil {
			if !errors.Is(err, ErrNotYet) && !errors.Is(err, ErrBroken) {
				t.Errorf("error of no kind: %v", err)
			}
			return
		}
		scan := file.NewScanner(bytes.NewReader(b))
		for _, leaf := range file.Columns() {
			if leaf.MaxRepetition == 0 {
				if _, err := scan.Stats(t.Context(), leaf, true); err != nil {
					t.Error(err)
				}
			} else if _, err := scan.Levels(t.Context(), leaf); err != nil && !errors.Is(err, ErrUnreadable) {
				t.Error(err)
			}
		}
	})
}
