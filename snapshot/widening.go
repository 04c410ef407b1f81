package snapshot

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// typeChangesKey is the metadata of a field that lists how its type was widened.
const typeChangesKey = "delta.typeChanges"

// typeChange is one entry of that list.
type typeChange struct {
	From jsontext.Value `json:"fromType"`
	To   jsontext.Value `json:"toType"`
}

// unsupportedChanges names the recorded changes of types that are not those of
// the protocol (section "Type Widening"): files from before such a change could
// not be read as the type that the column has, and a reader must refuse.
func unsupportedChanges(s *Schema) (out []string) {
	for t := range everyType(s) {
		fields, ok := t.(*Struct)
		if !ok {
			continue
		}
		for _, f := range fields.Fields {
			if what := unknownChange(f.Metadata[typeChangesKey]); what != "" {
				out = append(out, "for the change of column "+f.Name+" "+what)
			}
		}
	}
	return out
}

// unknownChange describes the first change in a list that is none of the
// protocol's; "" without one.
func unknownChange(list string) string {
	if list == "" {
		return ""
	}
	var changes []typeChange
	if err := json.Unmarshal([]byte(list), &changes); err != nil {
		return "that is not described as the protocol says"
	}
	for _, c := range changes {
		from, err1 := parseType(c.From, 0)
		to, err2 := parseType(c.To, 0)
		if err1 != nil || err2 != nil || !widens(from, to) {
			return fmt.Sprintf("from %s to %s", brief(c.From), brief(c.To))
		}
	}
	return ""
}

func brief(raw jsontext.Value) string { return shortened(strings.Trim(string(raw), `"`)) }

// integerDigits are the decimal digits that hold every value of an integer type.
// For small ones the protocol asks for 10, but its implementations have written
// less; for a long it asks for one more than there can be.
var integerDigits = map[string]int{"byte": 3, "short": 5, "integer": 10, "long": 20}

// widens reports whether the protocol allows a column to change its type so.
func widens(from, to Type) bool {
	a, ok1 := from.(*Primitive)
	b, ok2 := to.(*Primitive)
	if !ok1 || !ok2 {
		return false
	}
	switch a.Name + " " + b.Name {
	case "byte short", "byte integer", "byte long", "short integer", "short long", "integer long",
		"float double", "byte double", "short double", "integer double", "date timestamp_ntz":
		return true
	case "decimal decimal":
		return b.Scale >= a.Scale && b.Precision-a.Precision >= b.Scale-a.Scale
	case "byte decimal", "short decimal", "integer decimal", "long decimal":
		return b.Precision-b.Scale >= integerDigits[a.Name]
	}
	return false
}
