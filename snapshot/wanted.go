package snapshot

import (
	"math"
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/parquetview"
)

// columnMapping turns fields of a schema into columns that a data file shall
// have (protocol section "Column Mapping").
type columnMapping struct{ mode string }

const (
	mappingNone = "none"
	mappingName = "name"
	mappingID   = "id"
)

func (m columnMapping) field(f Field) (parquetview.Field, error) {
	t, err := m.typeOf(f.Type)
	out := parquetview.Field{Name: f.Name, Source: parquetview.Source{Name: f.Name}, Type: t, Required: !f.Nullable}
	switch m.mode {
	case mappingName:
		out.Source.Name = f.PhysicalName()
	case mappingID:
		id, ok := f.mappingID()
		if !ok && err == nil {
			err = fault.New(ErrCorrupt, "the field has no column mapping id").OnColumn(f.Name)
		}
		out.Source = parquetview.Source{Name: f.PhysicalName(), ByID: true, ID: id}
	}
	return out, err
}

// mappingID is the id by which data files know the field.
func (f *Field) mappingID() (int32, bool) {
	id, err := strconv.ParseInt(strings.TrimSpace(f.Metadata["delta.columnMapping.id"]), 10, 32)
	return int32(id), err == nil
}

func (m columnMapping) typeOf(t Type) (parquetview.Type, error) {
	switch t := t.(type) {
	case *Struct:
		out := parquetview.Type{Kind: parquetview.Struct}
		for _, f := range t.Fields {
			field, err := m.field(f)
			if err != nil {
				return out, err
			}
			out.Fields = append(out.Fields, field)
		}
		return out, nil
	case *Array:
		element, err := m.typeOf(t.Element)
		return parquetview.Type{Kind: parquetview.List, Fields: []parquetview.Field{
			{Type: element, Required: !t.ContainsNull},
		}}, err
	case *Map:
		key, err := m.typeOf(t.Key)
		if err != nil {
			return key, err
		}
		value, err := m.typeOf(t.Value)
		return parquetview.Type{Kind: parquetview.Map, Fields: []parquetview.Field{
			{Type: key, Required: true}, {Type: value, Required: !t.ValueContainsNull},
		}}, err
	case *Primitive:
		return primitiveType(t)
	}
	return parquetview.Type{}, fault.New(ErrUnsupported, "the type %s is not known", t)
}

func primitiveType(p *Primitive) (parquetview.Type, error) {
	kinds := map[string]parquetview.Kind{
		"boolean": parquetview.Boolean, "byte": parquetview.Int8, "short": parquetview.Int16,
		"integer": parquetview.Int32, "long": parquetview.Int64, "float": parquetview.Float32,
		"double": parquetview.Float64, "string": parquetview.String, "binary": parquetview.Binary,
		"date": parquetview.Date, "timestamp": parquetview.Timestamp, "timestamp_ntz": parquetview.TimestampNTZ,
		"void": parquetview.Void, "variant": parquetview.Variant,
	}
	if kind, ok := kinds[p.Name]; ok {
		return parquetview.Type{Kind: kind}, nil
	}
	switch {
	case p.Name == "decimal" && p.Precision <= math.MaxInt8:
		return parquetview.Type{Kind: parquetview.Decimal, Precision: p.Precision, Scale: p.Scale}, nil
	case strings.HasPrefix(p.Name, "interval "):
		return parquetview.Type{Kind: parquetview.Other}, nil
	}
	return parquetview.Type{}, fault.New(ErrUnsupported, "the type %s is not known", p)
}
