package snapshot

import (
	"strings"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
)

const columnMappingFeature = "columnMapping"

// readerFeature is the one table of what is honoured among the features that
// a reader must know. A feature that concerns writers alone is never asked
// about. What is not named here must not be read around: a catalog or a
// redirection says where the table really is, others put its state or its values
// where this program does not look.
func readerFeature(name string) (supported bool) {
	switch name {
	case "timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "deletionVectors",
		columnMappingFeature,                   // see columnMappingMode
		"typeWidening", "typeWidening-preview", // see unsupportedChanges
		// Files are served with the structs that hold variants, shredded or not.
		"variantType", "variantType-preview", "variantShredding", "variantShredding-preview":
		return true
	}
	return false
}

// maxReaderVersion is the newest protocol: from it on features are listed by
// name.
const maxReaderVersion = 3

// checkReadable is the gate before any file of a version is shown (protocol
// section "Table Features"). ErrUnsupported names the feature.
func checkReadable(p *action.Protocol, m *action.Metadata, s *Schema) *fault.Error {
	if p.MinReaderVersion > maxReaderVersion || p.MinReaderVersion < 0 {
		return fault.New(ErrUnsupported, "the table needs reader version %d; the newest one known is %d",
			p.MinReaderVersion, maxReaderVersion).WithHint("update deltafs, or read an older version")
	}
	var refused []string
	if p.MinReaderVersion == maxReaderVersion {
		for _, name := range p.ReaderFeatures {
			if !readerFeature(name) {
				refused = append(refused, name)
			}
		}
	}
	// Whatever the protocol says: names would be wrong.
	if mode := columnMappingMode(m); mode != mappingNone && mode != mappingName && mode != mappingID {
		refused = append(refused, columnMappingFeature+" (mode "+mode+")")
	}
	if len(refused) == 0 {
		refused = append(unsupportedTypes(s), unsupportedChanges(s)...)
	}
	if len(refused) == 0 {
		return nil
	}
	return refuseFeatures(refused)
}

func refuseFeatures(names []string) *fault.Error {
	hint := "versions from before the feature was enabled stay readable"
	for _, name := range names {
		if strings.HasPrefix(name, "catalog") {
			hint = "the table is managed by a catalog and can only be read through it"
		}
	}
	plural := ""
	if len(names) > 1 {
		plural = "s"
	}
	return fault.New(ErrUnsupported, "the version needs table feature%s %s, which deltafs cannot read yet",
		plural, strings.Join(names, ", ")).WithHint("%s", hint)
}

func columnMappingMode(m *action.Metadata) string {
	if mode := strings.ToLower(m.Configuration["delta.columnMapping.mode"]); mode != "" {
		return mode
	}
	return mappingNone
}

// unsupportedTypes names the types that no listed feature announced but whose
// files could be misread.
func unsupportedTypes(s *Schema) (out []string) {
	for t := range everyType(s) {
		if p, ok := t.(*Primitive); ok && !knownPrimitive(p.Name) {
			out = append(out, "for type "+p.Name)
		}
	}
	return out
}

func knownPrimitive(name string) bool {
	switch name {
	case "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary",
		"date", "timestamp", "timestamp_ntz", "void", "variant", "decimal":
		return true
	}
	return strings.HasPrefix(name, "interval ")
}
