package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestListingsAreCheckedAgainstWhatWasReported gives one name a history and
// lists it, or not, from second 10 to second 12.
func TestListingsAreCheckedAgainstWhatWasReported(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	did := func(op string, start, end int, old int64) event {
		return event{Who: "writer-1", Op: op, Name: "day=1/a.parquet", File: 1, Old: old, Start: at(start), End: at(end)}
	}
	cases := []struct {
		about   string
		history []event
		listed  bool
		finding string
	}{
		{"there and listed", []event{did(opAdd, 1, 2, 0)}, true, ""},
		{"there and not listed", []event{did(opAdd, 1, 2, 0)}, false, "not listed"},
		{"being added and not listed", []event{did(opAdd, 9, 11, 0)}, false, ""},
		{"being added and listed", []event{did(opAdd, 9, 11, 0)}, true, ""},
		{"replaced meanwhile and not listed", []event{did(opAdd, 1, 2, 0), did(opAdd, 10, 11, 1)}, false, "not listed"},
		{"removed before and listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 3, 4, 0)}, true, "and listed"},
		{"removed before and not listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 3, 4, 0)}, false, ""},
		{"removed meanwhile and listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 11, 12, 0)}, true, ""},
		{"removed meanwhile and not listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 11, 12, 0)}, false, ""},
		{"removed later and not listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 20, 21, 0)}, false, "not listed"},
		{"made again and not listed", []event{did(opAdd, 1, 2, 0), did(opRemove, 3, 4, 0), did(opAdd, 5, 6, 0)}, false, "not listed"},
		{"nobody's and listed", nil, true, "nobody made it"},
	}
	for _, c := range cases {
		l := newListings()
		for _, e := range c.history {
			l.change(e)
		}
		listing := event{Who: "reader-1", Op: opListing, Name: "day=1", Start: at(10), End: at(12)}
		if c.listed {
			listing.Names = []string{"a.parquet"}
		}
		var found []string
		find := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
		l.check(find, []event{listing})
		l.check(find, nil)
		got := strings.Join(found, "; ")
		if (c.finding == "") != (got == "") || !strings.Contains(got, c.finding) {
			t.Errorf("%s: found %q", c.about, got)
		}
	}
}
