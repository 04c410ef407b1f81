package fsnode

import (
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

func TestAProbeThatKeepsFailingIsReportedOnce(t *testing.T) {
	var l errorLog
	add := func(op, reason string) bool {
		return l.add(op, "", "EACCES", fault.New(snapshot.ErrCorrupt, "%s", reason))
	}
	age := func() {
		for i := range l.ring {
			l.ring[i].Time = time.Now().Add(-time.Hour)
		}
	}
	if !add(opRefresh, "a") {
		t.Error("the first failure is not reported")
	}
	age()
	if add(opRefresh, "a") {
		t.Error("the same failure of a later probe is reported again")
	}
	if !add(opRefresh, "b") {
		t.Error("another reason is not reported")
	}
	add("open", "b")
	age()
	if !add("open", "b") {
		t.Error("a program that fails again an hour later is not told why")
	}
	if text, err := l.jsonl(); err != nil || strings.Count(string(text), "\n") != 4 {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestATableWithoutASchemaHasAnEmptyOne(t *testing.T) {
	text, err := renderSchema("")
	if err != nil || !strings.Contains(string(text), `"fields": []`) {
		t.Errorf("%q, %v", text, err)
	}
}
