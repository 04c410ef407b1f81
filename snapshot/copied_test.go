package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestTravelWarnsOfATableWhoseCommitFilesAreACopys(t *testing.T) {
	for name, test := range map[string]struct {
		// modified are the times of the files of commits said to be of days 1 to 3.
		modified []time.Time
		inCommit bool
		want     bool
	}{
		"as committed":       {modified: []time.Time{day(1, 0), day(2, 500), day(3, 0)}},
		"a slow commit":      {modified: []time.Time{day(1, 0), day(2, 59*60*1000), day(3, 0)}},
		"copied":             {modified: []time.Time{day(9, 0), day(9, 0), day(9, 0)}, want: true},
		"written to since":   {modified: []time.Time{day(9, 0), day(9, 0), day(3, 0)}, want: true},
		"cleaned up and all": {modified: []time.Time{day(1, 0), day(2, 0), day(9, 0)}, want: true},
		"in-commit times":    {modified: []time.Time{day(9, 0), day(9, 0), day(9, 0)}, inCommit: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for i, at := range test.modified {
				said := day(i+1, 0).UnixMilli()
				lines := []string{fmt.Sprintf(`{"commitInfo":{"timestamp":%d,"inCommitTimestamp":%d}}`, said, said)}
				if i == 0 {
					lines = append(lines, protocolLine, metadataLine("", "delta.enableInCommitTimestamps", fmt.Sprint(test.inCommit)))
				}
				f.commit(int64(i), lines...).setTime(CommitName(int64(i)), at)
			}
			var log bytes.Buffer
			table := f.open()
			table.log = slog.New(slog.NewTextHandler(&log, nil))
			for range 2 {
				if _, err := table.VersionAsOf(context.Background(), day(10, 0)); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if test.want {
				want = 1
			}
			if got := strings.Count(log.String(), "delta.enableInCommitTimestamps"); got != want {
				t.Errorf("warned %d times, want %d: %s", got, want, &log)
			}
		})
	}
}
