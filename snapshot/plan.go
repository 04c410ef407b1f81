package snapshot

import (
	recency "container/list"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/parquetchunk"
	"github.com/deltafs/deltafs/internal/parquetview"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/internal/store"
)

// plan is how a file is served that is not served as it is.
type plan struct {
	*parquetview.View
	// of identifies the data file and its deleted rows.
	of [sha256.Size]byte
	// bytes is about what the plan takes in memory.
	bytes int64
}

// program names the program that renders: what another one has kept may have
// been rendered in another way, and must not be found.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	out := info.Main.Version + info.Main.Sum
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") {
			out += " " + s.Value
		}
	}
	return out
})

func newPlan(root string, info store.Info, view *parquetview.View, deleted *roaring64.Bitmap) (*plan, error) {
	p := &plan{View: view}
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %x %x\n", program(), root, info.Name, info.Identity, info.Changed)
	if deleted != nil {
		if _, err := deleted.WriteTo(h); err != nil {
			return nil, err
		}
		p.bytes += int64(deleted.GetSizeInBytes())
	}
	const segmentBytes = 512 // with a job
	for _, s := range view.Segments {
		p.bytes += segmentBytes + int64(len(s.Bytes))
		h.Write(s.Bytes) // the footer: another file hardly has the same
	}
	h.Sum(p.of[:0])
	return p, nil
}

// key names a chunk by all that it is made of.
func (p *plan) key(job *parquetchunk.Job) rendercache.Key {
	source := job.Source
	source.Column = "" // is for messages
	nulls := parquetchunk.Nulls{}
	if job.Nulls != nil {
		nulls = *job.Nulls
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x %#v %#v %t %#v %t", p.of, source, job.Convert, job.Nulls != nil, nulls, job.Deleted != nil)
	return rendercache.Key(h.Sum(nil))
}

// planCache keeps the plans used last. They can be made again.
type planCache struct {
	mu      sync.Mutex
	bytes   int64
	entries map[servedFile]*recency.Element
	order   recency.List // of *cachedPlan, the last used in front
}

// servedFile is a data file as shown under one table metadata.
type servedFile struct {
	ordinal uint32
	id      uint64
}

func servedAs(f File) servedFile { return servedFile{f.SchemaOrdinal, uint64(f.ID)} }

type cachedPlan struct {
	of servedFile
	*plan
}

// mostPlanBytes bounds the plans of a table that nobody has open.
const mostPlanBytes = 16 << 20

func (c *planCache) get(f servedFile) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[f]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedPlan).plan
}

func (c *planCache) put(f servedFile, p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[f]; ok || p.bytes > mostPlanBytes {
		return
	}
	if c.entries == nil {
		c.entries = map[servedFile]*recency.Element{}
	}
	c.entries[f] = c.order.PushFront(&cachedPlan{f, p})
	for c.bytes += p.bytes; c.bytes > mostPlanBytes; {
		last := c.order.Remove(c.order.Back()).(*cachedPlan)
		delete(c.entries, last.of)
		c.bytes -= last.bytes
	}
}

func (c *planCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes, c.entries = 0, nil
	c.order.Init()
}

// planOf decides how an opened file is served; nil is as it is. The add may be nil.
func (t *Table) planOf(ctx context.Context, f File, add *action.Add, object store.Object) (*plan, error) {
	if p := t.plans.get(servedAs(f)); p != nil {
		return p, nil
	}
	wanted, err := f.life.wanted(ctx, f, add)
	if err != nil {
		return nil, err
	}
	select {
	case t.planning <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	view, err := t.plan(ctx, object, object.Info().Size, wanted)
	<-t.planning
	switch {
	case err != nil:
		return nil, t.renderFault(f, err)
	case view.Raw:
		return nil, nil
	}
	p, err := newPlan(t.store.Root(), object.Info(), view, wanted.Deleted)
	if err == nil {
		t.plans.put(servedAs(f), p)
	}
	return p, err
}
