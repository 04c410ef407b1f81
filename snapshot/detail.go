package snapshot

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Detail describes the version as DESCRIBE DETAIL does.
func (s *Snapshot) Detail(ctx context.Context) (Detail, error) {
	totals, err := s.Totals(ctx)
	if err != nil {
		return Detail{}, err
	}
	p, m := s.Protocol(), s.Metadata()
	d := Detail{
		Format:            "delta",
		ID:                m.ID,
		Name:              m.Name,
		Description:       m.Description,
		Location:          s.table.store.Root(),
		PartitionColumns:  slices.Clone(m.PartitionColumns),
		ClusteringColumns: s.ClusteringColumns(),
		NumFiles:          totals.Files,
		SizeInBytes:       totals.Bytes,
		Properties:        map[string]string{},
		MinReaderVersion:  p.MinReaderVersion,
		MinWriterVersion:  p.MinWriterVersion,
		TableFeatures:     Features(p),
		Version:           s.Version(),
	}
	if d.PartitionColumns == nil {
		d.PartitionColumns = []string{}
	}
	for k, v := range m.Configuration {
		d.Properties[k] = v
	}
	if m.CreatedTime != nil && earliestCommit <= *m.CreatedTime && *m.CreatedTime <= latestCommit {
		created := time.UnixMilli(*m.CreatedTime).UTC()
		d.CreatedAt = &created
	}
	at, ok, err := s.life.commitTime(ctx, s.Version())
	if err != nil {
		return Detail{}, s.table.fault(err)
	}
	if ok {
		d.LastModified = &at
	}
	return d, nil
}

// ClusteringColumns are the logical names of the clustering columns, dotted
// when nested; never nil. Writers spell a column in the delta.clustering
// domain as a list of physical names or as one string.
func (s *Snapshot) ClusteringColumns() []string {
	out := []string{}
	domain, ok := s.Domains()["delta.clustering"]
	if !ok {
		return out
	}
	var conf struct {
		Columns []jsontext.Value `json:"clusteringColumns"`
	}
	if json.Unmarshal([]byte(domain.Configuration), &conf) != nil {
		return out
	}
	for _, raw := range conf.Columns {
		var parts []string
		var whole string
		if json.Unmarshal(raw, &parts) != nil && json.Unmarshal(raw, &whole) == nil {
			parts = strings.Split(whole, ".")
		}
		if len(parts) > 0 {
			out = append(out, logicalName(s.Schema().Fields, parts))
		}
	}
	return out
}

// logicalName maps a path of physical names to logical ones.
func logicalName(fields []Field, parts []string) string {
	names := slices.Clone(parts)
	for i, part := range parts {
		at := slices.IndexFunc(fields, func(f Field) bool { return f.PhysicalName() == part })
		if at < 0 {
			break
		}
		names[i] = fields[at].Name
		inner, _ := fields[at].Type.(*Struct)
		if inner == nil {
			break
		}
		fields = inner.Fields
	}
	return strings.Join(names, ".")
}

// Features returns the table features that a protocol lists or implies by its
// versions (protocol section "Table Features"), sorted.
func Features(p *action.Protocol) []string {
	out := slices.Concat(p.ReaderFeatures, p.WriterFeatures)
	for _, f := range []struct {
		writer int
		name   string
	}{
		{2, "appendOnly"}, {2, "invariants"}, {3, "checkConstraints"}, {4, "changeDataFeed"},
		{4, "generatedColumns"}, {5, columnMappingFeature}, {6, "identityColumns"},
	} {
		if p.MinWriterVersion >= f.writer && p.MinWriterVersion <= 6 {
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return append([]string{}, slices.Compact(out)...)
}
