package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/metacache"
)

// planner stands in for parquetview.Plan and counts how often it is asked.
type planner struct {
	plans int
	view  func(size int64) (*parquetview.View, error)
}

func (p *planner) plan(_ context.Context, _ io.ReaderAt, size int64, _ parquetview.Wanted) (*parquetview.View, error) {
	p.plans++
	return p.view(size)
}

func asItIs(size int64) (*parquetview.View, error) {
	return &parquetview.View{Raw: true, Size: size}, nil
}

// pieces shows "0123456789" as "<456789\0\0>" with a chunk that cannot be read
// behind it.
func pieces(int64) (*parquetview.View, error) {
	bad := &parquetchunk.Job{
		Source: parquetchunk.Source{
			Column: "c", Offset: 2, Length: 8, Uncompressed: 8, Encodings: []format.Encoding{format.Plain},
			Physical: format.Int32, NumValues: 2, NumRows: 2,
		},
		Convert: parquetchunk.Conversion{Kind: parquetchunk.ToInt64, Physical: format.Int64},
	}
	made, err := bad.Layout(2)
	if err != nil {
		return nil, err
	}
	return &parquetview.View{Size: 10 + made.Length, Segments: []parquetview.Segment{
		{Offset: 0, Length: 1, Bytes: []byte("<")},
		{Offset: 1, Length: 6, Raw: true, RawOffset: 4},
		{Offset: 7, Length: 2},
		{Offset: 9, Length: 1, Bytes: []byte(">")},
		{Offset: 10, Length: made.Length, Chunk: bad},
	}}, nil
}

func planned(t *testing.T, f *fixture, view func(int64) (*parquetview.View, error)) (*Table, *planner) {
	p := &planner{view: view}
	table := f.shown(Options{})
	table.plan = p.plan
	return table, p
}

func TestFilesThatAreServedAsTheyAre(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 5)).write("a", "hello")
	table, p := planned(t, f, asItIs)
	file := onlyFile(t, table, 0)
	if size, ok := table.KnownSize(file); ok {
		t.Errorf("size %d is known", size)
	}
	for range 3 {
		if size, err := table.ServedSize(t.Context(), file); err != nil || size != 5 {
			t.Errorf("size %d, %v", size, err)
		}
		r, err := table.Open(t.Context(), file)
		if err != nil || !r.Content().Raw() || r.File() == nil {
			t.Fatalf("opened %v, %v", r, err)
		}
		r.Close()
	}
	if size, ok := table.KnownSize(file); !ok || size != 5 || p.plans != 1 {
		t.Errorf("size %d is known %t after %d plans", size, ok, p.plans)
	}
}

func TestTheServedSizeIsNotTheLogs(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 100)).write("a", "hello")
	table, p := planned(t, f, asItIs)
	file := onlyFile(t, table, 0)
	for range 2 {
		if size, err := table.ServedSize(t.Context(), file); err != nil || size != 5 {
			t.Errorf("size %d, %v", size, err)
		}
	}
	r, err := table.Open(t.Context(), file)
	if err != nil || SizeChanged(file, r) || table.HasOtherSizes() {
		t.Errorf("opened %v, %v", r, err)
	}
	r.Close()
	if p.plans != 2 {
		t.Errorf("%d plans", p.plans)
	}
}

func TestReadingSegments(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 10)).write("a", "0123456789")
	table, p := planned(t, f, pieces)
	file := onlyFile(t, table, 0)
	if size, err := table.ServedSize(t.Context(), file); err != nil || size != table.plans.get(servedAs(file)).Size {
		t.Errorf("size %d, %v", size, err)
	}
	r, err := table.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Content().Raw() || r.File() != nil || r.Content().Size <= 10 || p.plans != 1 {
		t.Errorf("content %+v after %d plans", r.Content(), p.plans)
	}
	const whole = "<456789\x00\x00>"
	for off := range len(whole) {
		for end := off; end <= len(whole); end++ {
			got := bytes.Repeat([]byte("x"), end-off)
			if n, err := r.ReadAt(got, int64(off)); err != nil || n != len(got) || string(got) != whole[off:end] {
				t.Errorf("%d to %d: %q, %d, %v", off, end, got, n, err)
			}
		}
	}
	if file, at := r.RawRange(2, 5); file == nil || at != 5 {
		t.Errorf("raw from %d", at)
	}
	if file, _ := r.RawRange(2, 6); file != nil {
		t.Error("a range of two segments is raw")
	}
	n, err := r.ReadAt(make([]byte, 6), 5)
	var known *fault.Error
	if n != 5 || !errors.Is(err, ErrBroken) || !errors.As(err, &known) || known.File != "a" || known.Table != "t" || *known.Version != 0 {
		t.Errorf("the broken chunk: %d, %v", n, err)
	}
	if n, err := r.ReadAt(make([]byte, 3), r.Content().Size); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
}

func TestFilesThatCannotBeShown(t *testing.T) {
	for _, c := range []struct{ inner, outer error }{
		{parquetview.ErrBroken, ErrBroken}, {parquetview.ErrMismatch, ErrBroken}, {parquetview.ErrUnsupported, ErrUnsupported},
	} {
		f := newFixture(t).plain(addLine("d/a", 10)).write("d/a", "0123456789")
		table, _ := planned(t, f, func(int64) (*parquetview.View, error) {
			return nil, fault.New(c.inner, "page 7 is upside down").OnColumn("c").WithHint("turn it")
		})
		file := onlyFile(t, table, 0)
		_, err := table.Open(t.Context(), file)
		_, sizeErr := table.ServedSize(t.Context(), file)
		for _, err := range []error{err, sizeErr} {
			const want = `t@v0: d/a: column "c": page 7 is upside down`
			if !errors.Is(err, c.outer) || !strings.HasPrefix(fmt.Sprint(err), want) || fault.Hint(err) != "turn it" {
				t.Errorf("%v: %v", c.inner, err)
			}
		}
		if size, ok := table.KnownSize(file); ok {
			t.Errorf("size %d is known", size)
		}
	}
}

func TestAFileThatIsCutShortWhileRead(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 10)).write("a", "0123456789")
	table, _ := planned(t, f, pieces)
	r, err := table.Open(t.Context(), onlyFile(t, table, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f.write("a", "0123")
	if n, err := r.ReadAt(make([]byte, 9), 0); n != 1 || !errors.Is(err, ErrBroken) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	var b sizeBook
	const many = mostPages * pageFiles * 5 / 2
	for id := range many {
		f := File{ID: 1 + metacache.FileID(id), SchemaOrdinal: 1, logged: 7}
		if id%2 == 0 {
			b.keepRaw(f, 7)
		} else {
			b.keep(f, int64(id))
		}
	}
	if len(b.others) > mostPages {
		t.Errorf("%d pages", len(b.others))
	}
	known := 0
	for id := range many {
		size, ok := b.get(File{ID: 1 + metacache.FileID(id), SchemaOrdinal: 1, logged: 7})
		switch {
		case id%2 == 0 && (!ok || size != 7), ok && id%2 == 1 && size != int64(id):
			t.Fatalf("%d has size %d, %t", id, size, ok)
		case ok && id%2 == 1:
			known++
		}
	}
	if known < mostPages*pageFiles/4 {
		t.Errorf("%d other sizes are known", known)
	}
	if _, ok := b.get(File{ID: 1, SchemaOrdinal: 2, logged: 7}); ok {
		t.Error("known under another ordinal")
	}
}

func TestPlansAreBounded(t *testing.T) {
	var c planCache
	for id := range uint64(100) {
		c.put(servedFile{1, id}, &plan{bytes: mostPlanBytes / 10})
		if c.get(servedFile{1, id}) == nil || c.get(servedFile{1, 0}) == nil {
			t.Fatalf("%d is not kept", id)
		}
	}
	if len(c.entries) > 10 || c.order.Len() != len(c.entries) || c.bytes > mostPlanBytes {
		t.Errorf("%d plans of %d bytes", len(c.entries), c.bytes)
	}
	c.put(servedFile{2, 0}, &plan{bytes: mostPlanBytes + 1})
	if c.get(servedFile{2, 0}) != nil || c.get(servedFile{1, 0}) == nil {
		t.Error("a plan that is too large is kept")
	}
	c.clear()
	if c.get(servedFile{1, 0}) != nil || c.bytes != 0 {
		t.Error("kept after clear")
	}
}
