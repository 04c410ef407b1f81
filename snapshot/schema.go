package snapshot

// Schema is a table schema (protocol section "Schema Serialization Format").
// Filled in by the implementation: see schema_*.go.
type Schema struct {
	Fields []Field
}

// Field is one field of a struct type.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	// Metadata holds the field's metadata as raw JSON by key.
	Metadata map[string]string
}

// Type is one of *Primitive, *Struct, *Array and *Map.
type Type interface{ String() string }
