package fault

import (
	"errors"
	"strings"
	"testing"
)

func TestMessagesAreOneShortLine(t *testing.T) {
	cause := errors.New("first\nsecond")
	long := strings.Repeat("ü", 100_000)
	e := Wrap(errors.New("kind"), cause, "what").AtTable("t").AtVersion(3).InFile("a\x1b[31m\n" + long).OnColumn(long).WithHint("do")
	got := e.Error()
	if !strings.HasPrefix(got, "t@v3: a [31m üü") || !strings.HasSuffix(got, "what: first second (do)") {
		t.Errorf("got %q", got)
	}
	if len(got) > 1000 || strings.ContainsAny(got, "\n\x1b\ufffd") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if !errors.Is(e, cause) || e.File != "a\x1b[31m\n"+long {
		t.Error("the error itself must stay whole")
	}
}

func TestTheOutermostWayOutIsTheOneShown(t *testing.T) {
	inner := New(nil, "inner").WithHint("small help")
	if got := Wrap(nil, inner, "outer").WithHint("help").Error(); got != "outer: inner (help)" {
		t.Errorf("got %q", got)
	}
	if got := Wrap(nil, inner, "outer").Error(); got != "outer: inner (small help)" || inner.Hint == "" {
		t.Errorf("got %q", got)
	}
}

func TestMessageWithoutPartsIsItsKind(t *testing.T) {
	kind := errors.New("kind")
	for want, e := range map[string]*Error{
		"kind": {Kind: kind}, "version 0: kind": (&Error{Kind: kind}).AtVersion(0), "a: b": New(kind, "b").InFile("a"),
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
}
