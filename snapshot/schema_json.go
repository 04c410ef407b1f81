package snapshot

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSchemaDepth bounds the nesting of types: a log is untrusted input, and
// everything that walks a schema recurses.
const maxSchemaDepth = 100

// structJSON, fieldJSON, arrayJSON and mapJSON are the serialised forms.
type structJSON struct {
	Type   string         `json:"type"`
	Fields []fieldJSON    `json:"fields"`
	Extra  jsontext.Value `json:",embed"`
}

type fieldJSON struct {
	Name     string         `json:"name"`
	Type     jsontext.Value `json:"type"`
	Nullable *bool          `json:"nullable"`
	Metadata jsontext.Value `json:"metadata,omitzero"`
	Extra    jsontext.Value `json:",embed"`
}

type arrayJSON struct {
	Type         string         `json:"type"`
	ElementType  jsontext.Value `json:"elementType"`
	ContainsNull *bool          `json:"containsNull"`
	Extra        jsontext.Value `json:",embed"`
}

type mapJSON struct {
	Type              string         `json:"type"`
	KeyType           jsontext.Value `json:"keyType"`
	ValueType         jsontext.Value `json:"valueType"`
	ValueContainsNull *bool          `json:"valueContainsNull"`
	Extra             jsontext.Value `json:",embed"`
}

// ParseSchema parses metaData.schemaString. An empty string is the schema
// without columns, as Spark reads it. Errors wrap ErrCorrupt.
func ParseSchema(text string) (*Schema, error) {
	if text == "" {
		return &Schema{}, nil
	}
	t, err := parseType(jsontext.Value(text), 0)
	if err != nil {
		return nil, fault.Wrap(ErrCorrupt, err, "the table schema does not parse")
	}
	top, ok := t.(*Struct)
	if !ok {
		return nil, fault.New(ErrCorrupt, "the table schema is a %s and no struct", t)
	}
	return &Schema{Fields: top.Fields, Extra: top.Extra}, nil
}

func parseType(raw jsontext.Value, depth int) (Type, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("types are nested more than %d deep", maxSchemaDepth)
	}
	switch raw.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, err
		}
		return ParsePrimitive(string(text))
	case '{':
		var tag struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(raw, &tag); err != nil {
			return nil, err
		}
		switch tag.Type {
		case "struct":
			return parseStruct(raw, depth)
		case "array":
			return parseArray(raw, depth)
		case "map":
			return parseMap(raw, depth)
		}
		return nil, fmt.Errorf("unknown type %q", tag.Type)
	}
	return nil, errors.New("a type is neither a string nor an object")
}

func parseStruct(raw jsontext.Value, depth int) (Type, error) {
	var in structJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	out := &Struct{Fields: make([]Field, len(in.Fields)), Extra: in.Extra}
	seen := make(map[string]bool, len(in.Fields))
	for i, f := range in.Fields {
		if key := strings.ToLower(f.Name); seen[key] {
			return nil, fmt.Errorf("two columns are named %q", f.Name)
		} else {
			seen[key] = true
		}
		t, err := parseType(f.Type, depth+1)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", f.Name, err)
		}
		field := Field{Name: f.Name, Type: t, Nullable: isTrue(f.Nullable), Extra: f.Extra}
		if f.Metadata.Kind() == '{' {
			if err := field.setMetadata(f.Metadata); err != nil {
				return nil, fmt.Errorf("column %q: %w", f.Name, err)
			}
		}
		out.Fields[i] = field
	}
	return out, nil
}

// isTrue reads the nullability flags: an absent one cannot forbid nulls.
func isTrue(flag *bool) bool { return flag == nil || *flag }

func (f *Field) setMetadata(raw jsontext.Value) error {
	var values map[string]jsontext.Value
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	f.RawMetadata = raw
	f.Metadata = make(map[string]string, len(values))
	for key, value := range values {
		f.Metadata[key] = string(value)
	}
	return nil
}

func parseArray(raw jsontext.Value, depth int) (Type, error) {
	var in arrayJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	element, err := parseType(in.ElementType, depth+1)
	if err != nil {
		return nil, fmt.Errorf("element: %w", err)
	}
	return &Array{Element: element, ContainsNull: isTrue(in.ContainsNull), Extra: in.Extra}, nil
}

func parseMap(raw jsontext.Value, depth int) (Type, error) {
	var in mapJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	key, err := parseType(in.KeyType, depth+1)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	value, err := parseType(in.ValueType, depth+1)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return &Map{Key: key, Value: value, ValueContainsNull: isTrue(in.ValueContainsNull), Extra: in.Extra}, nil
}

// maxPrecision is the largest precision of a decimal.
const maxPrecision = 38

// ParsePrimitive parses the name of a primitive type, "decimal( 10, 2 )"
// included.
func ParsePrimitive(name string) (*Primitive, error) {
	args, ok := strings.CutPrefix(name, "decimal")
	if !ok {
		if name == "" {
			return nil, errors.New("a type has no name")
		}
		return &Primitive{Name: name}, nil
	}
	p := &Primitive{Name: "decimal", Precision: 10}
	if args == "" {
		return p, nil
	}
	args = strings.TrimSpace(args)
	inner, found := strings.CutSuffix(args, ")")
	first, second, two := strings.Cut(strings.TrimPrefix(inner, "("), ",")
	var err1, err2 error
	p.Precision, err1 = strconv.Atoi(strings.TrimSpace(first))
	p.Scale, err2 = strconv.Atoi(strings.TrimSpace(second))
	bad := !found || !strings.HasPrefix(args, "(") || !two || err1 != nil || err2 != nil
	if bad || p.Precision < 1 || p.Precision > maxPrecision || p.Scale < 0 || p.Scale > p.Precision {
		return nil, fmt.Errorf("%q is no valid decimal type", name)
	}
	return p, nil
}

// JSON serialises the schema for metaData.schemaString. What ParseSchema read
// comes back with the same members and the same metadata text.
func (s *Schema) JSON() (string, error) {
	raw, err := structValue(s.Fields, s.Extra)
	return string(raw), err
}

func structValue(fields []Field, extra jsontext.Value) (jsontext.Value, error) {
	out := structJSON{Type: "struct", Fields: make([]fieldJSON, len(fields)), Extra: extra}
	for i, f := range fields {
		t, err := typeValue(f.Type)
		if err != nil {
			return nil, err
		}
		metadata := f.RawMetadata
		if metadata == nil {
			metadata = jsontext.Value("{}")
		}
		out.Fields[i] = fieldJSON{Name: f.Name, Type: t, Nullable: &f.Nullable, Metadata: metadata, Extra: f.Extra}
	}
	return json.Marshal(out, jsontext.PreserveRawStrings(true))
}

func typeValue(t Type) (jsontext.Value, error) {
	switch t := t.(type) {
	case *Primitive:
		return json.Marshal(t.String())
	case *Struct:
		return structValue(t.Fields, t.Extra)
	case *Array:
		element, err := typeValue(t.Element)
		if err != nil {
			return nil, err
		}
		return json.Marshal(arrayJSON{Type: "array", ElementType: element, ContainsNull: &t.ContainsNull, Extra: t.Extra})
	case *Map:
		key, err := typeValue(t.Key)
		if err != nil {
			return nil, err
		}
		value, err := typeValue(t.Value)
		if err != nil {
			return nil, err
		}
		return json.Marshal(mapJSON{
			Type: "map", KeyType: key, ValueType: value,
			ValueContainsNull: &t.ValueContainsNull, Extra: t.Extra,
		})
	}
	return nil, fmt.Errorf("type %T cannot be serialised", t)
}
