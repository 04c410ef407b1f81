package action

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// kinds reads everything and returns the kinds and the error that ended it,
// nil for io.EOF.
func kinds(r *Reader) (string, error) {
	var out []string
	for {
		a, err := r.Next()
		if err == io.EOF {
			return strings.Join(out, " "), nil
		}
		if err != nil {
			return strings.Join(out, " "), err
		}
		out = append(out, a.Kind())
	}
}

const txnLine = `{"txn":{"appId":"a","version":1}}`

func TestReaderReadsLines(t *testing.T) {
	long := `{"commitInfo":{"x":"` + strings.Repeat("y", 300<<10) + `"}}`
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"blank lines only", "\n\r\n \n", ""},
		{"last line without a newline", txnLine + "\n" + txnLine, "txn txn"},
		{"trailing blank lines", txnLine + "\n\n  \n", "txn"},
		{"carriage returns", txnLine + "\r\n" + txnLine + "\r\n", "txn txn"},
		{"lines longer than the buffer", txnLine + "\n" + long + "\n" + txnLine + "\n" + long, "txn commitInfo txn commitInfo"},
	}
	for _, tt := range tests {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(tt.text), "halves": iotest.HalfReader(strings.NewReader(tt.text)),
			"late EOF": iotest.DataErrReader(strings.NewReader(tt.text)),
		} {
			if got, err := kinds(NewReader(r, 0)); got != tt.want || err != nil {
				t.Errorf("%s, %s: got %q, %v, want %q", tt.name, name, got, err, tt.want)
			}
		}
	}
}

func TestReaderNamesTheBadLine(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
	}{
		{"truncated last line", txnLine + "\n" + txnLine[:len(txnLine)-3], 2},
		{"garbage after blank lines", "\n\n" + txnLine + "\nx\n", 4},
		{"zeros at the end", txnLine + "\n\x00\x00\x00", 2},
	}
	for _, tt := range tests {
		_, err := kinds(NewReader(strings.NewReader(tt.text), int64(len(tt.text))))
		var bad *LineError
		if !errors.As(err, &bad) || bad.Line != tt.line || !strings.Contains(err.Error(), fmt.Sprintf("line %d: ", tt.line)) {
			t.Errorf("%s: got %v, want an error in line %d", tt.name, err, tt.line)
		}
	}
}

func TestReaderLimitsTheLine(t *testing.T) {
	text := txnLine + "\n" + `{"commitInfo":"` + strings.Repeat("y", 200<<10) + `"}` + "\n"
	r := NewReader(strings.NewReader(text), 0)
	r.MaxLine = 150 << 10
	var bad *LineError
	if got, err := kinds(r); got != "txn" || !errors.As(err, &bad) || bad.Line != 2 {
		t.Errorf("got %q, %v", got, err)
	}
	r = NewReader(strings.NewReader(txnLine), 0)
	r.MaxLine = len(txnLine)
	if got, err := kinds(r); got != "txn" || err != nil {
		t.Errorf("a line of just the limit: got %q, %v", got, err)
	}
}

// endless yields a prefix and then one byte for ever, and counts.
type endless struct {
	prefix string
	fill   byte
	read   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.prefix)
	e.prefix = e.prefix[n:]
	for i := n; i < len(p); i++ {
		p[i] = e.fill
	}
	e.read += len(p)
	return len(p), nil
}

func TestReaderDoesNotBufferALongLineThatIsNoObject(t *testing.T) {
	for _, in := range []*endless{{fill: 0}, {fill: 'x'}, {prefix: "  [", fill: ' '}, {prefix: txnLine + "\n", fill: '"'}} {
		var bad *LineError
		if _, err := kinds(NewReader(in, 0)); !errors.As(err, &bad) || in.read > 1<<20 {
			t.Errorf("%q: got %v after %d bytes", in.fill, err, in.read)
		}
	}
}

func TestReaderPassesReadErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := kinds(NewReader(io.MultiReader(strings.NewReader(txnLine+"\n"+txnLine), iotest.ErrReader(broken)), 0))
	if err != broken {
		t.Errorf("got %v, want the reader's error: half a line is no line", err)
	}
}
