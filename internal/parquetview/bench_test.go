package parquetview

import (
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The footer of ten columns and one row group.
func BenchmarkPlan(b *testing.B) {
	group := parquet.Group{}
	var columns []Field
	for i := range 10 {
		name := fmt.Sprintf("column_%d", i)
		group[name] = parquet.Optional(parquet.Leaf(parquet.Int64Type))
		columns = append(columns, same(name, of(Int64)))
	}
	data := encode(b, []any{map[string]any{}}, 1, parquet.NewSchema("m", group))
	for name, w := range map[string]Wanted{"raw": {Columns: columns}, "renamed": {Columns: append(columns[:9:9], named("x", "column_9", of(Int64)))}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := plan(data, w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
