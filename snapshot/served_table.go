package snapshot

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/action"
)

// ServedTable describes a version as a Delta table of its own: the data files
// that a mount shows, under the names and in the sizes in which it shows them, and
// no more of the protocol than a reader of those needs.
type ServedTable struct {
	snapshot *Snapshot
	// Protocol, Metadata and Txns are what the version is without its files.
	Protocol *action.Protocol
	Metadata *action.Metadata
	Txns     map[string]*action.Txn
	stats    *servedStats
}

// AsTable describes the version as a table.
func (s *Snapshot) AsTable() (*ServedTable, error) {
	m := s.Metadata()
	schema, err := (&Schema{Fields: plainFields(s.Schema().Fields)}).JSON()
	if err != nil {
		return nil, s.table.fault(err)
	}
	served := &action.Metadata{
		ID: m.ID, Name: m.Name, Description: m.Description, CreatedTime: m.CreatedTime,
		Format:       action.Format{Provider: "parquet", Options: map[string]string{}},
		SchemaString: schema, PartitionColumns: []string{}, Configuration: map[string]string{},
	}
	for _, f := range s.PartitionFields() {
		served.PartitionColumns = append(served.PartitionColumns, f.Name)
	}
	for key, value := range m.Configuration {
		if !isDeltaKey(key) {
			served.Configuration[key] = value
		}
	}
	return &ServedTable{
		snapshot: s, Protocol: servedProtocol(s.Protocol(), s.Schema()), Metadata: served, Txns: s.Txns(),
		stats: newServedStats(s.dataFields(), columnMappingMode(m) != "none"),
	}, nil
}

// dataFields are the fields of the schema that are no partition columns.
func (s *Snapshot) dataFields() []Field {
	return slices.DeleteFunc(slices.Clone(s.Schema().Fields), func(f Field) bool {
		return slices.ContainsFunc(s.PartitionFields(), func(p Field) bool { return p.Name == f.Name })
	})
}

// isDeltaKey says that a property or a column's metadata asks something of those
// who read or write the real table.
func isDeltaKey(key string) bool {
	switch key {
	case "CURRENT_DEFAULT", "EXISTS_DEFAULT", "__COLLATIONS":
		return true
	}
	return strings.HasPrefix(key, "delta.") || strings.HasPrefix(key, "parquet.field.")
}

// plainFields are the fields without what only the real table has: physical
// names, generated and default values, changes of type.
func plainFields(fields []Field) []Field {
	out := make([]Field, len(fields))
	for i, f := range fields {
		out[i] = Field{Name: f.Name, Type: plainType(f.Type), Nullable: f.Nullable, RawMetadata: keptMetadata(f)}
	}
	return out
}

// keptMetadata is the metadata of a field without what only the real table has.
func keptMetadata(f Field) jsontext.Value {
	kept := map[string]jsontext.Value{}
	for key, value := range f.Metadata {
		if !isDeltaKey(key) {
			kept[key] = jsontext.Value(value)
		}
	}
	if len(kept) == 0 {
		return jsontext.Value("{}")
	}
	raw, err := json.Marshal(kept, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		return jsontext.Value("{}") // what was read from JSON can be written
	}
	return raw
}

func plainType(t Type) Type {
	switch t := t.(type) {
	case *Struct:
		return &Struct{Fields: plainFields(t.Fields)}
	case *Array:
		return &Array{Element: plainType(t.Element), ContainsNull: t.ContainsNull}
	case *Map:
		return &Map{Key: plainType(t.Key), Value: plainType(t.Value), ValueContainsNull: t.ValueContainsNull}
	case *Primitive:
		if t.Name == "void" {
			// Most engines know no such type; files hold nulls of integers.
			return &Primitive{Name: "integer"}
		}
	}
	return t
}

// typeFeatures are the table features that types need of a reader.
var typeFeatures = []struct{ types, feature string }{
	{"timestamp_ntz", "timestampNtz"},
	{"variant", "variantType"}, {"variant", "variantType-preview"},
	{"variant", "variantShredding"}, {"variant", "variantShredding-preview"},
	{"geometry", "geospatial"}, {"geography", "geospatial"},
	{"geometry", "geospatial-dev"}, {"geography", "geospatial-dev"},
}

// servedProtocol is the lowest protocol under which the types of the columns may
// be read. What else the table's own asks for concerns its writers, or is not to
// be seen in the files that are served.
func servedProtocol(p *action.Protocol, s *Schema) *action.Protocol {
	used := map[string]bool{}
	for t := range everyType(s) {
		if p, ok := t.(*Primitive); ok {
			name, _, _ := strings.Cut(p.Name, "(")
			used[name] = true
		}
	}
	var features []string
	for _, f := range typeFeatures {
		if used[f.types] && (slices.Contains(p.ReaderFeatures, f.feature) || f.feature == "timestampNtz") {
			features = append(features, f.feature)
		}
	}
	if features == nil {
		return &action.Protocol{MinReaderVersion: 1, MinWriterVersion: 2}
	}
	slices.Sort(features)
	features = slices.Compact(features)
	return &action.Protocol{
		MinReaderVersion: 3, MinWriterVersion: 7, ReaderFeatures: features,
		// NOT NULL columns are invariants.
		WriterFeatures: append(slices.Clone(features), "appendOnly", "invariants"),
	}
}

// Files is the number of data files.
func (t *ServedTable) Files(ctx context.Context) (int64, error) {
	totals, err := t.snapshot.Totals(ctx)
	return totals.Files, err
}

// Adds yields the action that adds each data file as it is served. An action is
// valid until the next step.
func (t *ServedTable) Adds(ctx context.Context) iter.Seq2[*action.Add, error] {
	return func(yield func(*action.Add, error) bool) {
		for f, err := range t.snapshot.servedAdds(ctx) {
			var add *action.Add
			if err == nil {
				add = t.add(f)
			}
			if !yield(add, err) || err != nil {
				return
			}
		}
	}
}

func (t *ServedTable) add(f FileAdd) *action.Add {
	return &action.Add{
		Path:             encodePath(path.Join(f.Dir, f.Name)),
		PartitionValues:  t.partitionValues(f.Add),
		Size:             f.Size,
		ModificationTime: f.ModTime.UnixMilli(),
		DataChange:       true,
		Stats:            t.stats.of(f.Add),
	}
}

// partitionValues are the values by logical name, in the protocol's spelling
// where a writer chose another: engines differ in what they make of a timestamp
// without a zone, and of an empty string, which is null.
func (t *ServedTable) partitionValues(a *action.Add) map[string]*string {
	out := make(map[string]*string, len(t.snapshot.PartitionFields()))
	for _, f := range t.snapshot.PartitionFields() {
		value := partitionValue(f, a.PartitionValues)
		if value != nil && *value == "" {
			value = nil
		}
		if value != nil {
			if text, err := SerializePartition(f.Type, *value); err == nil {
				value = &text
			}
		}
		out[f.Name] = value
	}
	return out
}

// Version is the version described.
func (t *ServedTable) Version() int64 { return t.snapshot.Version() }

// CommitInfo describes the commit of the version, without what it did.
func (t *ServedTable) CommitInfo(ctx context.Context) (*action.CommitInfo, error) {
	return t.snapshot.servedCommitInfo(ctx)
}
