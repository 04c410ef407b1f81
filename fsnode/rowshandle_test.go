package fsnode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// slowText is a text that comes in pieces, or not at all.
type slowText struct {
	io.Reader
	ctx    context.Context
	closed *int
	hangs  bool
}

func (s slowText) Read(p []byte) (int, error) {
	if s.hangs {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	return s.Reader.Read(p[:min(len(p), 1000)])
}

func (s slowText) Close() error { *s.closed++; return nil }

// rowsTest is a handle on a text that counts how often it was begun and ended.
type rowsTest struct {
	*rowsHandle
	text          []byte
	begun, closed int
	end           error
	hangs         bool
}

func newRowsTest(t *testing.T, size int) *rowsTest {
	r := &rowsTest{}
	for i := 0; len(r.text) < size; i++ {
		r.text = append(strconv.AppendInt(r.text, int64(i), 10), '\n')
	}
	r.text = r.text[:size]
	r.rowsHandle = newRowsHandle(t.Context(), func(ctx context.Context) (rowStream, error) {
		r.begun++
		in := io.Reader(bytes.NewReader(r.text))
		if r.end != nil {
			in = io.MultiReader(in, failing{r.end})
		}
		return slowText{in, ctx, &r.closed, r.hangs}, nil
	})
	return r
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// at reads at an offset.
func (r *rowsTest) at(t *testing.T, off int64, size int) []byte {
	t.Helper()
	res, err := r.read(t.Context(), make([]byte, size), off)
	if err != nil {
		t.Fatal(err)
	}
	b, status := res.Bytes(nil)
	if status != fuse.OK {
		t.Fatal(status)
	}
	return b
}

func TestRowsAreReadInOrderAndBegunAnewForWhatIsBehind(t *testing.T) {
	const size = 1 << 20
	r := newRowsTest(t, size)
	var got []byte
	for {
		b := r.at(t, int64(len(got)), 100_000)
		if len(b) == 0 {
			break
		}
		got = append(got, b...)
	}
	if !bytes.Equal(got, r.text) || r.begun != 1 {
		t.Errorf("%d bytes of %d, begun %d times", len(got), size, r.begun)
	}
	if b := r.at(t, size+5000, 10); len(b) != 0 || r.begun != 1 {
		t.Errorf("behind the end are %q", b)
	}
	for _, c := range []struct {
		off         int64
		size, begun int
	}{
		{100, 200, 2},      // long past
		{250, 10, 2},       // just read
		{290, 4096, 2},     // the end of what was read, and no more
		{300, 10, 2},       // goes on
		{500_000, 1000, 2}, // skips
		{500_900, 10, 2},
		{0, 10, 3},
	} {
		b := r.at(t, c.off, c.size)
		if len(b) == 0 || !bytes.Equal(b, r.text[c.off:c.off+int64(len(b))]) || r.begun != c.begun {
			t.Errorf("at %d: %d bytes, begun %d times", c.off, len(b), r.begun)
		}
	}
	r.release()
	if r.closed != r.begun {
		t.Errorf("begun %d times, closed %d times", r.begun, r.closed)
	}
}

func TestErrorInRowsComesAfterTheTextBeforeIt(t *testing.T) {
	r := newRowsTest(t, 1500)
	r.end = errors.New("broken")
	if b := r.at(t, 0, 1000); len(b) != 1000 {
		t.Fatalf("%d bytes", len(b))
	}
	if b := r.at(t, 1000, 1000); len(b) != 500 {
		t.Fatalf("%d bytes", len(b))
	}
	for range 2 {
		if _, err := r.read(t.Context(), make([]byte, 10), 1500); !errors.Is(err, r.end) {
			t.Errorf("the end is %v", err)
		}
	}
	if r.begun != 1 {
		t.Errorf("begun %d times", r.begun)
	}
	r.release()
}

func TestWaitingForRowsIsInterrupted(t *testing.T) {
	r := newRowsTest(t, 5000)
	if b := r.at(t, 0, 2000); len(b) != 2000 {
		t.Fatalf("%d bytes", len(b))
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.giveUp()
	r.hangs = true
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := r.read(ctx, make([]byte, 10), 2000); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted read: %v", err)
	}
	r.hangs = false
	if b := r.at(t, 2000, 10); !bytes.Equal(b, r.text[2000:2010]) {
		t.Errorf("after an interrupted read: %q", b)
	}
	r.release()
	if r.closed != r.begun {
		t.Errorf("begun %d times, closed %d times", r.begun, r.closed)
	}
}

func TestNamesOfText(t *testing.T) {
	for name, want := range map[string]string{
		"@v3.csv": "@v3 csv", "@v3.jsonl": "@v3 jsonl", "current.csv": "current csv",
		"@2024-05-01T10:11:12.345Z.csv": "@2024-05-01T10:11:12.345Z csv",
		"@v3.json":                      "", "current.CSV": "", ".csv": "", "sales.csv": "", "currently.csv": "",
	} {
		of, format, ok := rowsName(name)
		if got := of + " " + string(format); ok != (want != "") || ok && got != want {
			t.Errorf("%s is of %q, %v", name, got, ok)
		}
	}
}
