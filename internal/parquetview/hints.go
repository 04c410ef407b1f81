package parquetview

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/parquetfile"
)

// Keys of key-value metadata by which readers see other names and types than the
// schema's.
const (
	arrowHint  = "ARROW:schema"
	pandasHint = "pandas"
	sparkHint  = "org.apache.spark.sql.parquet.row.metadata"
)

// withoutHints are the encoded entries that hint at no schema.
func withoutHints(all []parquetfile.KeyValue) (kept [][]byte) {
	for _, kv := range all {
		switch string(kv.Key) {
		case arrowHint, pandasHint, sparkHint:
		default:
			kept = append(kept, kv.Encoded)
		}
	}
	return kept
}

// hintsAgree reports whether no hint makes a reader see other names or types
// than the wanted ones, which the schema has. Spark's is what Spark writes the
// schema from, and is not looked at. What does not decode disagrees.
func hintsAgree(foot *parquetfile.Footer, columns []Field) bool {
	for _, kv := range foot.KeyValues {
		switch string(kv.Key) {
		case arrowHint:
			if !arrowAgrees(kv.Value, columns) {
				return false
			}
		case pandasHint:
			if !pandasAgrees(kv.Value) {
				return false
			}
		}
	}
	return true
}

// pandasAgrees reports whether pandas shows the columns as columns, under their
// names and not as categories. An index that is only a range is not stored, and
// pandas drops it when there are more files.
func pandasAgrees(value []byte) bool {
	var hint struct {
		IndexColumns  []jsontext.Value `json:"index_columns"`
		ColumnIndexes []struct {
			PandasType string `json:"pandas_type"`
		} `json:"column_indexes"`
		Columns []struct {
			Name       jsontext.Value `json:"name"`
			FieldName  *string        `json:"field_name"`
			PandasType string         `json:"pandas_type"`
		} `json:"columns"`
	}
	if err := json.Unmarshal(value, &hint); err != nil || hint.IndexColumns == nil || len(hint.ColumnIndexes) > 1 {
		return false
	}
	for _, index := range hint.IndexColumns {
		if index.Kind() != '{' {
			return false
		}
	}
	for _, names := range hint.ColumnIndexes {
		switch names.PandasType {
		case "unicode", "string", "empty":
		default:
			return false
		}
	}
	for _, c := range hint.Columns {
		name := ""
		if c.PandasType == "categorical" || json.Unmarshal(c.Name, &name) != nil || c.FieldName != nil && *c.FieldName != name {
			return false
		}
	}
	return true
}
