package snapshot

import (
	"bytes"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/fault"
)

// JSON is the commit as one flat object: version, timestamp (the commit time)
// and readable, then the members of commitInfo as they were written.
// ErrCorrupt.
func (c Commit) JSON() (jsontext.Value, error) {
	head := struct {
		Version   int64     `json:"version"`
		Timestamp time.Time `json:"timestamp,omitzero"`
		Readable  bool      `json:"readable"`
	}{Version: c.Version, Readable: c.Readable}
	if !c.Time.IsZero() {
		head.Timestamp = c.Time.UTC()
	}
	line, err := json.Marshal(head)
	if err == nil && c.Info != nil {
		line, err = mergeObjects(line, c.Info.Raw)
	}
	if err != nil {
		return nil, fault.Wrap(ErrCorrupt, err, "commitInfo cannot be shown").AtVersion(c.Version)
	}
	return line, nil
}

// mergeObjects appends the members of b to those of a, without the ones that
// a has.
func mergeObjects(a, b jsontext.Value) (jsontext.Value, error) {
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, v := range []jsontext.Value{a, b} {
		if err := copyMembers(enc, v, seen); err != nil {
			return nil, err
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func copyMembers(enc *jsontext.Encoder, v jsontext.Value, seen map[string]bool) error {
	dec := jsontext.NewDecoder(bytes.NewReader(v), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return err // commitInfo that is no object has nothing to show
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := enc.WriteToken(jsontext.String(key)); err != nil {
			return err
		}
		if err := enc.WriteValue(value); err != nil {
			return err
		}
	}
	return nil
}
