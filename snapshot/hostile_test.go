package snapshot

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/internal/action"
)

func TestACommitTimeThatNoDateCanWriteIsNotBelieved(t *testing.T) {
	for _, own := range []int64{math.MaxInt64, math.MinInt64, latestCommit + 1, earliestCommit - 1} {
		f := newFixture(t)
		info := `{"commitInfo":{"inCommitTimestamp":` + strconv.FormatInt(own, 10) + `}}`
		f.commit(0, info, protocolLine, metadataLine("", "delta.enableInCommitTimestamps", "true"))
		f.commit(1, info, addLine("a", 1))
		f.setTime(CommitName(0), day(1, 0))
		f.setTime(CommitName(1), day(2, 0))
		table := f.open()
		wantTime(t, table, 0, day(1, 0))
		wantTime(t, table, 1, day(2, 0))
		for c, err := range table.History(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.JSON(); err != nil {
				t.Errorf("%d: %v", own, err)
			}
		}
	}
}

func TestDetailLeavesOutACreationTimeThatNoDateCanWrite(t *testing.T) {
	for text, want := range map[string]bool{"9223372036854775807": false, "-9223372036854775808": false, "1": true} {
		f := newFixture(t)
		f.commit(0, protocolLine, strings.Replace(metadataLine(""), `"createdTime":1}`, `"createdTime":`+text+`}`, 1))
		d, err := at(t, f.open(), 0).Detail(context.Background())
		if err != nil || (d.CreatedAt != nil) != want {
			t.Errorf("%s: created at %v, %v", text, d.CreatedAt, err)
		}
	}
}

func TestPartitionColumnsMustBeColumns(t *testing.T) {
	for columns, want := range map[string]string{
		`"k"`: "", `"K"`: "", `"nope"`: `"nope" is not in the schema`, `"k","k"`: `"k" is named twice`, `"k","K"`: `"k" is named twice`,
	} {
		f := newFixture(t)
		f.commit(0, protocolLine, metadataLine(columns), addPartition("a", "1"))
		_, err := f.open().At(context.Background(), 0)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", columns, err, want)
		}
	}
}

func TestAPartitionValueIsFoundInAnyCase(t *testing.T) {
	for _, c := range []struct{ columns, key string }{{`"k"`, "K"}, {`"K"`, "K"}, {`"K"`, "k"}} {
		f := newFixture(t)
		f.commit(0, protocolLine, metadataLine(c.columns), strings.Replace(addPartition("a", "1"), `"k":"1"`, `"`+c.key+`":"1"`, 1))
		if got := names(t, at(t, f.open(), 0), "", ""); len(got) != 1 || got[0] != "k=1" {
			t.Errorf("%v: the table holds %q, want k=1", c, got)
		}
	}
}

func TestAVersionThatNoneCouldFollowIsNoVersion(t *testing.T) {
	f := newFixture(t).plain()
	f.commit(math.MaxInt64, protocolLine, metadataLine(""))
	if got := f.open().Latest(); got != 0 {
		t.Errorf("the latest version is %d, want 0", got)
	}
}

func TestRefreshSeesAMissingCommitThatComesLate(t *testing.T) {
	for name, first := range map[string]*string{"missing": nil, "empty": new(string)} {
		f := newFixture(t).plain(addLine("a", 1)).commit(2, addLine("c", 1))
		if first != nil {
			f.write(CommitName(1), *first)
		}
		table := f.open()
		if _, err := table.At(t.Context(), 2); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%s: version 2 reads without version 1: %v", name, err)
		}
		f.commit(1, addLine("b", 1))
		if _, err := table.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantPaths(t, table, 2, "a b c")
	}
}

// endlessLine is the beginning of a line and then x for ever.
type endlessLine struct {
	start string
	read  int
}

func (e *endlessLine) Read(p []byte) (int, error) {
	n := copy(p, e.start)
	e.start = e.start[n:]
	for i := n; i < len(p); i++ {
		p[i] = 'x'
	}
	e.read += len(p)
	return len(p), nil
}

func TestCommitInfoIsNotSoughtBehindAnEndlessLine(t *testing.T) {
	for _, start := range []string{`{"add":"`, `{"commitInfo":"`, ""} {
		in := &endlessLine{start: start}
		_, _, err := commitInfoLine(bufio.NewReaderSize(in, 16<<10))
		if err == nil || errors.Is(err, io.EOF) || in.read > 2*action.DefaultMaxLine {
			t.Errorf("%q: %v after %d bytes", start, err, in.read)
		}
	}
}
