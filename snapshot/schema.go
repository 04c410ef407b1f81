package snapshot

import (
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema is a table schema (protocol section "Schema Serialization Format").
type Schema struct {
	Fields []Field
	// Extra holds members of the struct that this program does not know.
	Extra jsontext.Value
}

// Field is one field of a struct type.
type Field struct {
	Name     string
	Type     Type
	Nullable bool
	// Metadata holds the field's metadata as raw JSON by key.
	Metadata map[string]string
	// RawMetadata is the whole metadata object as in the log, key order and
	// number spelling included; nil when absent.
	RawMetadata jsontext.Value
	// Extra holds members of the field that this program does not know.
	Extra jsontext.Value
}

// Type is one of *Primitive, *Struct, *Array and *Map. String is the type's
// short name, such as "decimal(10,2)" or "array<string>".
type Type interface{ String() string }

// Primitive is a type without parts. Name is the log's name for it; Precision
// and Scale belong to "decimal"; a name with other arguments, such as
// "geometry(OGC:CRS84)", is kept whole. Names this program does not know parse
// too: whether they can be served is the protocol gate's decision.
type Primitive struct {
	Name             string
	Precision, Scale int
}

// Struct is a nested struct.
type Struct struct {
	Fields []Field
	Extra  jsontext.Value
}

// Array is a list.
type Array struct {
	Element      Type
	ContainsNull bool
	Extra        jsontext.Value
}

// Map is a map.
type Map struct {
	Key, Value        Type
	ValueContainsNull bool
	Extra             jsontext.Value
}

func (p *Primitive) String() string {
	if p.Name == "decimal" {
		return fmt.Sprintf("decimal(%d,%d)", p.Precision, p.Scale)
	}
	return p.Name
}

func (s *Struct) String() string {
	parts := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		parts[i] = f.Name + ":" + f.Type.String()
	}
	return "struct<" + strings.Join(parts, ",") + ">"
}

func (a *Array) String() string { return "array<" + a.Element.String() + ">" }

func (m *Map) String() string { return "map<" + m.Key.String() + "," + m.Value.String() + ">" }

// Text returns a metadata value that is a JSON string, unquoted.
func (f *Field) Text(key string) (string, bool) {
	raw, ok := f.Metadata[key]
	if !ok || !strings.HasPrefix(raw, `"`) {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}

// PhysicalName is the name by which the log and the data files know the field
// under column mapping, else Name.
func (f *Field) PhysicalName() string {
	if name, ok := f.Text("delta.columnMapping.physicalName"); ok {
		return name
	}
	return f.Name
}

// Lookup finds a top-level field by name, case-insensitively as Spark does.
func (s *Schema) Lookup(name string) (Field, bool) {
	for _, f := range s.Fields {
		if strings.EqualFold(f.Name, name) {
			return f, true
		}
	}
	return Field{}, false
}

// Leaves calls visit for every leaf in schema order, with the fields that
// lead to it; the path is reused between calls. Arrays and maps are leaves as
// a whole, as statistics treat them. It stops when visit returns false.
func (s *Schema) Leaves(visit func(path []Field) bool) {
	walkLeaves(s.Fields, nil, visit)
}

func walkLeaves(fields, path []Field, visit func([]Field) bool) bool {
	for _, f := range fields {
		here := append(path, f)
		if inner, ok := f.Type.(*Struct); ok {
			if !walkLeaves(inner.Fields, here, visit) {
				return false
			}
		} else if !visit(here) {
			return false
		}
	}
	return true
}

// everyType yields the types in a schema, at any depth.
func everyType(s *Schema) iter.Seq[Type] {
	return func(yield func(Type) bool) { walkTypes(&Struct{Fields: s.Fields}, yield) }
}

func walkTypes(t Type, visit func(Type) bool) bool {
	if !visit(t) {
		return false
	}
	switch t := t.(type) {
	case *Struct:
		for _, f := range t.Fields {
			if !walkTypes(f.Type, visit) {
				return false
			}
		}
	case *Array:
		return walkTypes(t.Element, visit)
	case *Map:
		return walkTypes(t.Key, visit) && walkTypes(t.Value, visit)
	}
	return true
}
