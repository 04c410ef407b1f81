package action

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of a JSON object, and nothing more from where
// the text is no object. The values are valid until the next step.
func Members(object []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true))
		if start, err := dec.ReadToken(); err != nil || start.Kind() != '{' {
			return
		}
		for dec.PeekKind() == '"' {
			name, err := dec.ReadToken()
			if err != nil {
				return
			}
			text := name.String()
			value, err := dec.ReadValue()
			if err != nil || !yield(text, value) {
				return
			}
		}
	}
}
