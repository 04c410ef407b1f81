package fsnode

import (
	"bytes"
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// renderText generates one file of .delta for a version. What the header of a
// version tells is told even if its files must not be read.
func (inc *incarnation) renderText(ctx context.Context, name string, v int64) ([]byte, error) {
	switch name {
	case textHistory:
		return inc.history(ctx, v)
	case textDetail:
		s, err := inc.at(ctx, v)
		if err != nil {
			return nil, err
		}
		d, err := s.Detail(ctx)
		if err != nil {
			return nil, err
		}
		return pretty(d)
	}
	protocol, metadata, err := inc.snap.Header(ctx, v)
	if err != nil {
		return nil, err
	}
	switch name {
	case textProtocol:
		return pretty(protocol)
	case textProperties:
		if metadata.Configuration == nil {
			return pretty(map[string]string{})
		}
		return pretty(metadata.Configuration)
	case textSchema:
		return indent(jsontext.Value(metadata.SchemaString))
	}
	schema, err := snapshot.ParseSchema(metadata.SchemaString)
	if err != nil {
		return nil, err
	}
	return []byte(schema.DDL() + "\n"), nil
}

// pretty renders v as JSON for people.
func pretty(v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	return indent(b)
}

func indent(v jsontext.Value) ([]byte, error) {
	v = bytes.Clone(v)
	if err := v.Indent(jsontext.WithIndent("  "), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, fault.Wrap(snapshot.ErrCorrupt, err, "not JSON")
	}
	return append(v, '\n'), nil
}

// history renders the commits up to a version, the newest first, a line each:
// version, timestamp and readable, then commitInfo as it was written.
func (inc *incarnation) history(ctx context.Context, upTo int64) ([]byte, error) {
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for c, err := range inc.snap.History(ctx) {
		if err != nil {
			return nil, err
		}
		if c.Version > upTo {
			continue
		}
		if err := encodeCommit(enc, c); err != nil {
			return nil, fault.Wrap(snapshot.ErrCorrupt, err, "commitInfo cannot be shown").
				AtTable(inc.t.source).AtVersion(c.Version)
		}
	}
	return out.Bytes(), nil
}

func encodeCommit(enc *jsontext.Encoder, c snapshot.Commit) error {
	head := struct {
		Version   int64     `json:"version"`
		Timestamp time.Time `json:"timestamp,omitzero"`
		Readable  bool      `json:"readable"`
	}{c.Version, c.Time.UTC(), c.Readable}
	if c.Time.IsZero() {
		head.Timestamp = time.Time{}
	}
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	line := jsontext.Value(b)
	if c.Info != nil {
		if line, err = mergeObjects(line, c.Info.Raw); err != nil {
			return err
		}
	}
	return enc.WriteValue(line)
}

// mergeObjects appends the members of b to those of a, without the ones that
// a has.
func mergeObjects(a, b jsontext.Value) (jsontext.Value, error) {
	var out bytes.Buffer
	enc := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true))
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
