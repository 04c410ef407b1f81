package snapshot

import (
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/action"
)

func TestCommitAsJSONKeepsCommitInfoAndOurTimestamp(t *testing.T) {
	for _, c := range []struct {
		commit Commit
		want   string
	}{
		{
			Commit{Version: 3, Readable: true, Time: time.UnixMilli(1500).In(time.FixedZone("", 3600)), Info: &action.CommitInfo{
				Raw: []byte(`{"timestamp":1,"operation":"WRITE","n":{"a":12345678901234567890,"a":1},"version":null}`)}},
			`{"version":3,"timestamp":"1970-01-01T00:00:01.5Z","readable":true,"operation":"WRITE","n":{"a":12345678901234567890,"a":1}}`,
		},
		{Commit{Version: 0}, `{"version":0,"readable":false}`},
		{Commit{Info: &action.CommitInfo{Raw: []byte(`[1]`)}}, `{"version":0,"readable":false}`},
	} {
		got, err := c.commit.JSON()
		if err != nil || string(got) != c.want {
			t.Errorf("got  %q, %v\nwant %q", got, err, c.want)
		}
	}
}
