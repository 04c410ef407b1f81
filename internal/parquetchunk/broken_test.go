package parquetchunk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/parquet-go/parquet-go/format"
)

// plainChunk is a chunk of some optional integers.
func plainChunk(t testing.TB, s style) ([]byte, *Job) {
	c := &column{physical: format.Int32, maxDef: 1}
	for i := range 100 {
		c.entries = append(c.entries, entry{def: 1, value: le32(int32(i))})
	}
	file, source := s.write(t, rand.New(rand.NewPCG(8, 8)), c)
	return file, &Job{Source: source, Deleted: roaring64.BitmapOf(uint64(source.FirstRow) + 3)}
}

// TestFooterLies wants every contradiction between footer and pages to be found,
// and nothing to be written beyond the region.
func TestFooterLies(t *testing.T) {
	tests := []struct {
		name string
		lie  func(j *Job)
		kind error
		text string
	}{
		{"size", func(j *Job) { j.Source.Uncompressed, j.Source.Codec = 10, format.Snappy }, ErrBroken, "the footer that all pages do to 10"},
		{"values", func(j *Job) { j.Source.NumValues++ }, ErrBroken, "have 100 values, the footer says 101"},
		{"fewer values", func(j *Job) { j.Source.NumValues-- }, ErrBroken, "more values than the footer says"},
		{"rows", func(j *Job) { j.Source.NumRows++ }, ErrBroken, "have 100 rows, the row group 101"},
		{"offset", func(j *Job) { j.Source.Offset -= 3 }, ErrBroken, "the page at byte"},
		{"length", func(j *Job) { j.Source.Length -= 30 }, ErrBroken, "its chunk ends"},
		{"end of file", func(j *Job) { j.Source.Length += 1 << 30; j.Source.NumValues = 1000 }, ErrBroken, "malformed page header"},
		{"levels", func(j *Job) { j.Source.MaxDefinition = 0 }, nil, ""},
		{"negative", func(j *Job) { j.Source.NumValues = -1 }, ErrBroken, "claims"},
		{"enormous", func(j *Job) { j.Source.Uncompressed = 1 << 62 }, ErrBroken, "claims"},
		{"fixed length", func(j *Job) { j.Source.Physical = format.FixedLenByteArray }, ErrBroken, "fixed length 0"},
		{"codec", func(j *Job) { j.Source.Codec = format.LZO }, ErrUnsupported, "LZO"},
		{"conversion", func(j *Job) { j.Convert.Kind = Int96ToMicros }, ErrUnsupported, "no such conversion"},
		{"nesting", func(j *Job) { j.Source.MaxDefinition = 1000 }, ErrUnsupported, "deeper"},
		{"nulls", func(j *Job) { j.Nulls = &Nulls{} }, ErrUnsupported, "without nulls"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := style{encoding: format.Plain, pageEntries: 100}
			if test.name == "size" {
				s.codec = format.Snappy
			}
			file, j := plainChunk(t, s)
			l, err := j.Layout(99)
			ok(t, err)
			test.lie(j)
			region := &memory{make([]byte, max(l.Length, j.bound()%(1<<20)))}
			err = j.Render(context.Background(), bytes.NewReader(file), region)
			if test.kind == nil {
				return
			}
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), `"a.column"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRoom wants pages that take more than the footer says to be an error before
// they are written.
func TestRoom(t *testing.T) {
	c := &column{physical: format.Int64}
	for i := range int64(1000) {
		c.entries = append(c.entries, entry{value: le64(i)})
	}
	file, source := style{encoding: format.DeltaBinaryPacked, pageEntries: 50}.write(t, rand.New(rand.NewPCG(9, 9)), c)
	source.Encodings = []format.Encoding{format.Plain}
	source.Uncompressed = 100
	j := &Job{Source: source, Convert: Conversion{Kind: NanosToMicros, Physical: format.Int64}}
	region := &memory{make([]byte, j.bound())}
	err := j.Render(context.Background(), bytes.NewReader(file), region)
	if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "longer than the footer says") {
		t.Errorf("got %v", err)
	}
}

// TestDamage changes every byte of chunks: the outcome is an error or a region,
// never a panic or a write beyond it.
func TestDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	for _, k := range kinds {
		for _, e := range k.encodings {
			c := randomColumn(rng, k.physical, k.typeLength, 3, 1, 60)
			s := style{encoding: e, dictionary: isDictionary(e), pageEntries: 20, v2: rng.IntN(2) == 0}
			file, source := s.write(t, rng, c)
			j := &Job{Source: source, Deleted: randomDeletions(rng, source.FirstRow, source.NumRows)}
			l, err := j.Layout(0)
			ok(t, err)
			for i := range source.Length {
				at := source.Offset + i
				for _, to := range []byte{0, 1, 0x7f, 0x80, 0xff, file[at] ^ 1, file[at] ^ 0x10} {
					damaged := bytes.Clone(file)
					damaged[at] = to
					_, err := j.CountValues(context.Background(), bytes.NewReader(damaged))
					checkDamage(t, err)
					checkDamage(t, j.Render(context.Background(), bytes.NewReader(damaged), &memory{make([]byte, l.Length)}))
				}
			}
		}
	}
}

func checkDamage(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) || errors.Is(err, bytes.ErrTooLarge) {
		t.Fatalf("got %v", err)
	}
}

var errDisk = errors.New("the disk is gone")

type failing struct{}

func (f failing) ReadAt([]byte, int64) (int, error)  { return 0, errDisk }
func (f failing) WriteAt([]byte, int64) (int, error) { return 0, errDisk }

// TestOtherErrors wants what is not the chunk's fault to be returned as it is.
func TestOtherErrors(t *testing.T) {
	file, j := plainChunk(t, style{encoding: format.Plain, pageEntries: 10})
	region := &memory{make([]byte, j.bound())}
	if err := j.Render(context.Background(), failing{}, region); err != errDisk {
		t.Errorf("reading: %v", err)
	}
	if err := j.Render(context.Background(), bytes.NewReader(file), failing{}); err != errDisk {
		t.Errorf("writing: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := j.Render(ctx, bytes.NewReader(file), region); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

// TestObsoleteLevels wants levels that are not a hybrid to be refused.
func TestObsoleteLevels(t *testing.T) {
	h := header{kind: format.DataPage, count: 1, compressed: 20, uncompressed: 20}
	page := h.append(nil)
	page = bytes.Replace(page, []byte{0x15, 6, 0x15, 6}, []byte{0x15, 8, 0x15, 8}, 1)
	file := append(page, make([]byte, 20)...)
	j := &Job{Source: Source{
		Column: "c", Length: int64(len(file)), Uncompressed: int64(len(file)), Physical: format.Int32,
		MaxDefinition: 1, NumValues: 1, NumRows: 1,
	}}
	err := j.Render(context.Background(), bytes.NewReader(file), &memory{make([]byte, 1000)})
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "BIT_PACKED") {
		t.Errorf("got %v", err)
	}
}

// FuzzRender changes chunks and what their footers say.
func FuzzRender(f *testing.F) {
	rng := rand.New(rand.NewPCG(11, 11))
	for i, k := range kinds {
		for n, e := range k.encodings {
			c := randomColumn(rng, k.physical, k.typeLength, n%4, n%2, 40)
			var codec format.CompressionCodec
			for codec = range codecs {
				break
			}
			file, s := style{codec: codec, encoding: e, dictionary: isDictionary(e), pageEntries: 15, v2: n%2 == 0}.write(f, rng, c)
			f.Add(file[s.Offset:s.Offset+s.Length], byte(i), byte(codec), byte(n%4), byte(n%2), s.NumValues, s.NumRows, s.Uncompressed, uint64(7), byte(n))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, kind, codec, def, rep byte, values, rows, uncompressed int64, deleted uint64, job byte) {
		k := kinds[int(kind)%len(kinds)]
		j := &Job{Source: Source{
			Column: "c", Length: int64(len(b)), Uncompressed: uncompressed, Codec: format.CompressionCodec(codec % 8),
			Encodings: k.encodings, Physical: k.physical, TypeLength: k.typeLength,
			MaxDefinition: int(def), MaxRepetition: int(rep), NumValues: values, NumRows: rows,
		}}
		j.Deleted = roaring64.New()
		for i := range uint64(64) {
			if deleted>>i&1 == 1 {
				j.Deleted.Add(i)
			}
		}
		if test := conversions[int(job)%len(conversions)]; job&0x80 != 0 && test.physical == k.physical {
			j.Convert, j.Source.TypeLength = test.convert, test.typeLength
		} else if job&0x40 != 0 {
			j.Nulls = &Nulls{Definition: int(job) % 4, Repetition: int(job) % 3, MaxDefinition: 9, MaxRepetition: 5, Physical: format.Int32}
		}
		l, err := j.Layout(0)
		checkFuzz(t, err)
		if err != nil {
			return
		}
		n, err := j.CountValues(context.Background(), bytes.NewReader(b))
		checkFuzz(t, err)
		region := &limited{size: l.Length}
		renderErr := j.Render(context.Background(), bytes.NewReader(b), region)
		checkFuzz(t, renderErr)
		if renderErr == nil && (err != nil || n > values) {
			t.Fatalf("rendered, but %d values, %v", n, err)
		}
	})
}

func checkFuzz(t *testing.T, err error) {
	if err != nil && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrUnsupported) || errors.Is(err, errDisk) {
		t.Fatal(err)
	}
}

// limited refuses writes beyond a size.
type limited struct{ size int64 }

func (l *limited) WriteAt(b []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(b)) > l.size {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestMeasure wants chunks of writers that do not know how long their pages are
// to be rendered all the same, and others to be believed unread.
func TestMeasure(t *testing.T) {
	c := &column{physical: format.ByteArray}
	for range 1000 {
		c.entries = append(c.entries, entry{value: strings.Repeat("x", 100)})
	}
	file, source := style{codec: format.Snappy, encoding: format.Plain, pageEntries: 100}.write(t, rand.New(rand.NewPCG(12, 12)), c)
	for _, size := range []int64{0, source.Length, 1 << 40} {
		j := &Job{Source: source, Deleted: roaring64.BitmapOf(uint64(source.FirstRow))}
		j.Source.Uncompressed = size
		ok(t, j.Measure(context.Background(), bytes.NewReader(file)))
		if j.Source.Uncompressed != source.Uncompressed {
			t.Errorf("measured %d bytes of %d", j.Source.Uncompressed, source.Uncompressed)
		}
		region, l := render(t, j, file)
		if got := readRegion(t, region, c, l.Encodings); len(got) != 999 {
			t.Errorf("%d rows", len(got))
		}
		checkDamage(t, j.Measure(context.Background(), bytes.NewReader(file[:len(file)/2])))
	}
	ok(t, (&Job{Source: source}).Measure(context.Background(), failing{}))
}
