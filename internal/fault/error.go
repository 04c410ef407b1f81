package fault

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// Error is a failure with everything a user needs to act on it. The zero
// value of a field means "does not apply"; Version is a pointer because 0 is
// a version.
type Error struct {
	// Kind is the sentinel that callers match with errors.Is.
	Kind error
	// Table is the table's path as the user gave it.
	Table string
	// Version is the table version the failure is about.
	Version *int64
	// File is a visible name, an add.path or a log file name.
	File string
	// Column is the logical column name, dotted when nested.
	Column string
	// Reason says what was found, in one clause without a final full stop.
	Reason string
	// Hint says the way out, in one clause.
	Hint string
	// Err is the cause, if another error was the cause.
	Err error
}

// New returns an Error of the given kind with a formatted reason.
func New(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error of the given kind caused by err.
func Wrap(kind, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: err, Reason: fmt.Sprintf(format, args...)}
}

// AtTable, AtVersion, InFile, OnColumn and WithHint return e after setting
// the named field, for chaining behind New and Wrap.
func (e *Error) AtTable(table string) *Error { e.Table = table; return e }

// AtVersion sets the version the failure is about.
func (e *Error) AtVersion(v int64) *Error { e.Version = &v; return e }

// InFile sets the file the failure is about.
func (e *Error) InFile(file string) *Error { e.File = file; return e }

// OnColumn sets the column the failure is about.
func (e *Error) OnColumn(column string) *Error { e.Column = column; return e }

// WithHint sets the way out.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error renders the failure as one line: where, what, cause, way out.
func (e *Error) Error() string {
	var b strings.Builder
	sep := func(s string) {
		if b.Len() > 0 {
			b.WriteString(s)
		}
	}
	if e.Table != "" {
		b.WriteString(e.Table)
		if e.Version != nil {
			fmt.Fprintf(&b, "@v%d", *e.Version)
		}
	} else if e.Version != nil {
		fmt.Fprintf(&b, "version %d", *e.Version)
	}
	if e.File != "" {
		sep(": ")
		b.WriteString(shorten(e.File))
	}
	if e.Column != "" {
		sep(": ")
		fmt.Fprintf(&b, "column %q", shorten(e.Column))
	}
	switch {
	case e.Reason != "":
		sep(": ")
		b.WriteString(e.Reason)
	case e.Kind != nil:
		sep(": ")
		b.WriteString(e.Kind.Error())
	}
	if e.Err != nil {
		sep(": ")
		b.WriteString(e.cause().Error())
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return oneLine(b.String())
}

// cause is Err, without its way out where e knows a better one.
func (e *Error) cause() error {
	if inner, ok := e.Err.(*Error); ok && e.Hint != "" {
		bare := *inner
		bare.Hint = ""
		return &bare
	}
	return e.Err
}

// maxName is how many bytes of a name a message repeats: a log may hold names
// of any length.
const maxName = 300

func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}

// oneLine replaces what would break a line or act on a terminal: names in a
// log, and causes that quote them, may hold any byte.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// Unwrap lets errors.Is and errors.As see both the sentinel and the cause.
func (e *Error) Unwrap() []error {
	var out []error
	if e.Kind != nil {
		out = append(out, e.Kind)
	}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

// Hint returns the way out of the outermost Error in err's tree that has
// one, or "".
func Hint(err error) string {
	for err != nil {
		var e *Error
		if !errors.As(err, &e) {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}
