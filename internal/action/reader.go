package action

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxLine is the longest line that a Reader accepts, in bytes, unless
// told otherwise: many times what the schema and statistics of a very wide
// table take, and little enough that a hostile log cannot exhaust the memory.
const DefaultMaxLine = 128 << 20

// LineError says which line of a log file is bad.
type LineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Reader reads the actions of a commit file, one a line.
type Reader struct {
	// MaxLine is the longest line accepted, in bytes; NewReader sets
	// DefaultMaxLine.
	MaxLine int
	// Brief leaves out what listing a table does not need, which is much
	// faster. It may make an Add without Stats, BaseRowID,
	// DefaultRowCommitVersion and ClusteringProvider, and a Remove with nothing
	// but Path, DataChange and DeletionVector. Lines that Decode refuses are
	// refused all the same.
	Brief bool

	in   *bufio.Reader
	long []byte
	line int
	// text is the line that Next returned last.
	text []byte
}

// NewReader returns a Reader of newline-delimited actions. size is about how many
// bytes there are to read: most commits are a few KB, and a buffer for more
// would cost more than reading them.
func NewReader(r io.Reader, size int64) *Reader {
	const smallest, largest = 1 << 10, 64 << 10
	return &Reader{MaxLine: DefaultMaxLine, in: bufio.NewReaderSize(r, int(min(max(size+1, smallest), largest)))}
}

// Next returns the next action, or io.EOF after the last one. Blank lines are
// skipped, and the last line needs no newline. A line that is no action is a
// *LineError; an error of the underlying reader is returned as it is.
func (r *Reader) Next() (Action, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		r.line++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		r.text = line
		decode := Decode
		if r.Brief {
			decode = decodeBrief
		}
		a, err := decode(line)
		if err != nil {
			return nil, &LineError{Line: r.line, Err: err}
		}
		return a, nil
	}
}

// Whole returns the action that Next returned last, with nothing left out.
func (r *Reader) Whole() (Action, error) {
	a, err := Decode(r.text)
	if err != nil {
		return nil, &LineError{Line: r.line, Err: err}
	}
	return a, nil
}

// Line is the number of the line that Next returned last, from 1.
func (r *Reader) Line() int { return r.line }

// readLine returns the next line, valid until the next call. io.EOF comes
// alone, after the last line.
func (r *Reader) readLine() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.long)+len(part) > r.MaxLine {
			return nil, &LineError{Line: r.line + 1, Err: fmt.Errorf("longer than %d bytes", r.MaxLine)}
		}
		switch {
		case err == bufio.ErrBufferFull:
			// What is no action is not worth buffering up to the limit.
			if len(r.long) == 0 && !startsObject(part) {
				return nil, &LineError{Line: r.line + 1, Err: errors.New("the line is no JSON object")}
			}
			r.long = append(r.long, part...)
			continue
		case err != nil && err != io.EOF:
			return nil, err
		case err == io.EOF && len(r.long)+len(part) == 0:
			return nil, io.EOF
		case len(r.long) == 0:
			return part, nil
		}
		r.long = append(r.long, part...)
		return r.long, nil
	}
}

// startsObject reports whether the beginning of a line may be that of an
// object.
func startsObject(part []byte) bool {
	part = bytes.TrimLeft(part, " \t\r")
	return len(part) == 0 || part[0] == '{'
}
