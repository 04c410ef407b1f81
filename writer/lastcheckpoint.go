package writer

import (
	"context"
	"crypto/md5" //nolint:gosec // the protocol says so; it guards against torn writes
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
	"github.com/go-json-experiment/json"
)

// lastCheckpointName is the name in storage of the pointer to the newest
// checkpoint (protocol section "Last Checkpoint File").
var lastCheckpointName = path.Join(path.Dir(snapshot.CommitName(0)), "_last_checkpoint")

// lastCheckpoint is the content, with the members in the order of their names:
// that of the checksum.
type lastCheckpoint struct {
	NumOfAddFiles int64 `json:"numOfAddFiles"`
	Size          int64 `json:"size"`
	SizeInBytes   int64 `json:"sizeInBytes"`
	Version       int64 `json:"version"`
}

// encode returns the file, with the checksum over the other members (protocol
// section "JSON checksum").
func (l lastCheckpoint) encode() []byte {
	members := []string{}
	canonical := []string{}
	for _, m := range []struct {
		name  string
		value int64
	}{{"numOfAddFiles", l.NumOfAddFiles}, {"size", l.Size}, {"sizeInBytes", l.SizeInBytes}, {"version", l.Version}} {
		members = append(members, fmt.Sprintf("%q:%d", m.name, m.value))
		canonical = append(canonical, fmt.Sprintf("%q=%d", m.name, m.value))
	}
	sum := md5.Sum([]byte(strings.Join(canonical, ",")))
	return fmt.Appendf(nil, `{%s,"checksum":%q}`, strings.Join(members, ","), hex.EncodeToString(sum[:]))
}

// point lets _last_checkpoint name the checkpoint unless it names a newer one.
// It is a hint: that two writers at once may leave it at the older one is as
// good as a stale one.
func (c *checkpointer) point(ctx context.Context, d *checkpointDraft) error {
	st := c.table.Store()
	if known, err := readLastCheckpoint(ctx, st); err != nil || known >= d.version {
		return err
	}
	l := lastCheckpoint{NumOfAddFiles: d.totals.Files, Size: d.rows, SizeInBytes: d.size, Version: d.version}
	if err := st.Put(ctx, lastCheckpointName, l.encode()); err != nil {
		return fault.Wrap(nil, err, "cannot point to the checkpoint").AtVersion(d.version)
	}
	return nil
}

// readLastCheckpoint returns the version that _last_checkpoint names, -1 when
// there is no such file or it does not read.
func readLastCheckpoint(ctx context.Context, st store.Store) (int64, error) {
	object, err := st.Open(ctx, lastCheckpointName)
	if errors.Is(err, store.ErrNotExist) {
		return -1, nil
	}
	if err != nil {
		return 0, err
	}
	defer object.Close()
	const limit = 8 << 20
	data, err := io.ReadAll(io.NewSectionReader(object, 0, limit))
	if err != nil {
		return 0, err
	}
	var known struct {
		Version *int64 `json:"version"`
	}
	if json.Unmarshal(data, &known) != nil || known.Version == nil {
		return -1, nil
	}
	return *known.Version, nil
}
