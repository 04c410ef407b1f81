package snapshot

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/action"
)

// commitMembers are the members of commitInfo that describe a commit. Others tell
// a client what to do with it, such as its in-commit timestamp.
var commitMembers = []string{
	"operation", "operationParameters", "operationMetrics", "userId", "userName", "userMetadata", "engineInfo",
	"clientVersion", "isolationLevel", "isBlindAppend", "readVersion", "notebook", "job", "clusterId",
}

// servedCommitInfo describes the commit of the version. One that is gone from the
// log is described by its time alone, which may not be known either.
func (s *Snapshot) servedCommitInfo(ctx context.Context) (*action.CommitInfo, error) {
	at, _, err := s.life.commitTime(ctx, s.Version())
	if err != nil {
		return nil, s.table.fault(err)
	}
	millis := int64(0)
	if !at.IsZero() {
		millis = at.UnixMilli()
	}
	info, err := s.table.commitInfo(ctx, s.Version())
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || info == nil {
		info = &action.CommitInfo{} // the log does not have it, or it does not read
	}
	var out bytes.Buffer
	out.WriteString(`{"timestamp":` + strconv.FormatInt(millis, 10))
	for name, value := range action.Members(info.Raw) {
		if slices.Contains(commitMembers, name) && value.Kind() != 'n' {
			out.WriteString(`,"` + name + `":`)
			out.Write(value)
		}
	}
	out.WriteByte('}')
	return &action.CommitInfo{Raw: jsontext.Value(out.Bytes())}, nil
}
