package fsnode

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/snapshot"
)

// historyText is history.jsonl of a table, the newest commit first. A new
// commit is put in front of what was generated before, and the history of a
// version is the rest of the text from its line on.
type historyText struct {
	mu sync.Mutex
	// oldest is the first version that could be rebuilt when the text was made:
	// when log cleanup moves it, the lines change.
	oldest int64
	text   []byte
	lines  []historyLine
}

// historyLine says where the line of a version begins, counted from the end of
// the text, which stays when lines are put in front. Versions descend.
type historyLine struct {
	version int64
	fromEnd int
}

// upTo returns the history of a version.
func (h *historyText) upTo(ctx context.Context, t *snapshot.Table, v int64) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.extend(ctx, t); err != nil {
		return nil, err
	}
	for _, l := range h.lines {
		if l.version <= v {
			return h.text[len(h.text)-l.fromEnd:], nil
		}
	}
	return nil, nil
}

// clear forgets the text.
func (h *historyText) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.oldest, h.text, h.lines = 0, nil, nil
}

// extend generates the lines that are missing.
func (h *historyText) extend(ctx context.Context, t *snapshot.Table) error {
	if len(h.lines) > 0 && h.lines[0].version == t.Latest() {
		return nil
	}
	oldest, err := oldestVersion(ctx, t)
	if err != nil {
		return err
	}
	if oldest != h.oldest {
		h.oldest, h.text, h.lines = oldest, nil, nil
	}
	fresh, starts, err := h.newer(ctx, t)
	if err != nil {
		return err
	}
	h.text = slices.Concat(fresh, h.text)
	for i := range starts {
		starts[i].fromEnd = len(h.text) - starts[i].fromEnd
	}
	h.lines = append(starts, h.lines...)
	return nil
}

// newer generates the lines of the commits that the text does not have, with
// the positions of their beginnings.
func (h *historyText) newer(ctx context.Context, t *snapshot.Table) ([]byte, []historyLine, error) {
	var out bytes.Buffer
	var starts []historyLine
	enc := jsontext.NewEncoder(&out, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for c, err := range t.History(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if len(h.lines) > 0 && c.Version <= h.lines[0].version {
			break
		}
		line, err := c.JSON()
		if err != nil {
			return nil, nil, err
		}
		starts = append(starts, historyLine{c.Version, out.Len()})
		if err := enc.WriteValue(line); err != nil {
			return nil, nil, err
		}
	}
	return out.Bytes(), starts, nil
}

// oldestVersion is the first version that can be rebuilt, -1 if there is none.
func oldestVersion(ctx context.Context, t *snapshot.Table) (int64, error) {
	spans, err := t.Versions(ctx)
	if err != nil || len(spans) == 0 {
		return -1, err
	}
	return spans[0].First, nil
}
