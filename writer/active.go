package writer

import (
	"maps"
	"slices"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// notSupported is the refusal of a table for what it uses.
func notSupported(what, hint string) *fault.Error {
	return fault.New(ErrReadOnly, "the table uses %s, which deltafs cannot write yet", what).WithHint("%s", hint)
}

const otherEngine = "write to it with an engine that supports this"

// featureObstacle finds a table feature that binds a writer by being listed.
// The others show in the metadata when they are in use.
func featureObstacle(h header) *fault.Error {
	for _, f := range slices.Sorted(maps.Keys(featuresOf(h.protocol))) {
		switch f {
		case "appendOnly", "changeDataFeed", "timestampNtz", "domainMetadata", "v2Checkpoint", "deletionVectors",
			"vacuumProtocolCheck", "inCommitTimestamp", "clustering", "checkpointProtection":
			// Kept by what a commit does or leaves alone: appends and removals of
			// whole files need no change data files, a removal carries the file's
			// deletion vector, files may lack a clustering provider, and protected
			// checkpoints neither come nor go (see protectedBefore).
		case "invariants", "checkConstraints", "generatedColumns", "identityColumns", "columnMapping",
			"allowColumnDefaults", "typeWidening", "typeWidening-preview",
			"icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1", "icebergWriterCompatV3",
			"variantType", "variantType-preview", "variantShredding", "variantShredding-preview":
			// In use only with the properties or columns that are looked at below.
		case "materializePartitionColumns":
			if len(h.metadata.PartitionColumns) > 0 {
				return notSupported("the feature "+f, otherEngine)
			}
		case "catalogManaged", "catalogOwned", "catalogOwned-preview":
			return notSupported("the feature "+f, "write to it through its catalog")
		case "rowTracking":
			return notSupported("the feature "+f, "write to it with another engine, or run ALTER TABLE … DROP FEATURE "+f)
		default:
			return notSupported("the feature "+f, otherEngine)
		}
	}
	return nil
}

// columnMapping is the column mapping mode, "" for none.
func columnMapping(h header) string {
	mode, _ := property(h.config(), "delta.columnMapping.mode")
	if strings.EqualFold(mode, "none") {
		return ""
	}
	return strings.ToLower(mode)
}

// propertyObstacle finds a table property that asks for what is not supported.
func propertyObstacle(h header) *fault.Error {
	config := h.config()
	if mode := columnMapping(h); mode != "" {
		return notSupported("column mapping by "+mode, otherEngine)
	}
	for _, feature := range []string{
		"RowTracking", "IcebergCompatV1", "IcebergCompatV2", "IcebergCompatV3", "IcebergWriterCompatV1", "IcebergWriterCompatV3",
	} {
		if isTrue(config, "delta.enable"+feature) {
			return notSupported("the property delta.enable"+feature, otherEngine)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(config)) {
		lower := strings.ToLower(key)
		switch {
		case strings.HasPrefix(lower, "delta.constraints."):
			name := key[len("delta.constraints."):]
			return notSupported("the CHECK constraint "+name,
				"write to it with an engine that checks it, or run ALTER TABLE … DROP CONSTRAINT "+name)
		case strings.HasPrefix(lower, "delta.coordinatedcommits."):
			return notSupported("coordinated commits ("+key+")", "write to it through its commit coordinator")
		case strings.HasPrefix(lower, "delta.redirect"):
			return notSupported("a redirection ("+key+")", "write to the table that it leads to")
		}
	}
	return nil
}

// columnObstacle finds a column, at any depth, that asks for values or checks
// which are not supported.
func columnObstacle(h header) *fault.Error {
	schema, err := snapshot.ParseSchema(h.metadata.SchemaString)
	if err != nil {
		return fault.Wrap(ErrReadOnly, err, "the table cannot be written")
	}
	return inFields(schema.Fields, "")
}

func inFields(fields []snapshot.Field, prefix string) *fault.Error {
	for _, f := range fields {
		name := prefix + f.Name
		if what := columnUse(f); what != "" {
			return notSupported(what, otherEngine).OnColumn(name)
		}
		if e := inType(f.Type, name); e != nil {
			return e
		}
	}
	return nil
}

func inType(t snapshot.Type, name string) *fault.Error {
	switch t := t.(type) {
	case *snapshot.Primitive:
		switch short, _, _ := strings.Cut(t.Name, "("); short {
		case "variant", "geometry", "geography":
			return notSupported("the type "+t.Name, otherEngine).OnColumn(name)
		}
	case *snapshot.Struct:
		return inFields(t.Fields, name+".")
	case *snapshot.Array:
		return inType(t.Element, name+".element")
	case *snapshot.Map:
		if e := inType(t.Key, name+".key"); e != nil {
			return e
		}
		return inType(t.Value, name+".value")
	}
	return nil
}

// columnUse says which feature a column's metadata puts to use, "" for none.
// NOT NULL is not among them: whoever checks a file checks it.
func columnUse(f snapshot.Field) string {
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		switch {
		case key == "delta.invariants":
			return "a column invariant"
		case key == "delta.generationExpression":
			return "a generated column"
		case strings.HasPrefix(key, "delta.identity."):
			return "an identity column"
		case key == "delta.typeChanges":
			return "a column whose type was widened"
		case key == "CURRENT_DEFAULT":
			return "a column default"
		case key == "__CHAR_VARCHAR_TYPE_STRING":
			if kind, ok := f.Text(key); ok {
				return "the type " + kind
			}
			return "a char or varchar type"
		case key == "__COLLATIONS":
			return "a collation"
		}
	}
	return ""
}
