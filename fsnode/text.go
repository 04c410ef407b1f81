package fsnode

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// renderText generates one file of .delta for a version. What the header of a
// version tells is told even if its files must not be read.
func (inc *incarnation) renderText(ctx context.Context, name string, v int64) ([]byte, error) {
	if name == textDetail {
		return inc.renderDetail(ctx, v)
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
		return renderSchema(metadata.SchemaString)
	}
	schema, err := snapshot.ParseSchema(metadata.SchemaString)
	if err != nil {
		return nil, err
	}
	return []byte(schema.DDL() + "\n"), nil
}

// renderSchema shows the schema as it was written; some logs have none.
func renderSchema(text string) ([]byte, error) {
	if text == "" {
		text = `{"type":"struct","fields":[]}`
	}
	return indent(jsontext.Value(text))
}

func (inc *incarnation) renderDetail(ctx context.Context, v int64) ([]byte, error) {
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
