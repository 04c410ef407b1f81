package metacache

import (
	"bytes"
	"context"
)

// Apply implements Index. A remove of a file that is not live with this
// deletion vector has no effect.
func (x *Runs) Apply(ctx context.Context, v int64, note []byte, gone []Gone, added []File) error {
	if err := x.writing.acquire(ctx); err != nil {
		return err
	}
	defer x.writing.release()
	if x.covers(v) {
		return nil
	}
	before, err := x.view(ctx, v-1)
	if err != nil {
		return err
	}
	defer before.release()
	if x.isTooLarge(before, len(gone)+len(added)) {
		return x.failed(ctx, before, x.fold(ctx, before, v, note, gone, added))
	}
	c := commit{index: x, before: before, totals: before.info.totals, lastID: x.LastID(), fates: map[string]*fate{}}
	if err := c.resolve(ctx, gone, added); err != nil {
		return x.failed(ctx, before, err)
	}
	x.publish(&c, v, note)
	return nil
}

// foldBytesPerFile bounds a delta in proportion to its base: it may take about
// half of what the base would on the heap.
const foldBytesPerFile = 50

// isTooLarge reports whether a delta with so many more changes would be.
func (x *Runs) isTooLarge(before view, changes int) bool {
	limit := max(x.FoldBytes, foldBytesPerFile*int64(before.base.count()))
	return before.delta.size()+entryBytes*int64(changes) > limit
}

// publish makes a commit version v.
func (x *Runs) publish(c *commit, v int64, note []byte) {
	entries := make([]*entry, len(c.changes))
	for i := range c.changes {
		entries[i] = newEntry(c.changes[i], v)
	}
	r := c.before.run
	r.delta.add(entries)

	info := versionInfo{note: c.before.info.note, totals: c.totals}
	if !bytes.Equal(info.note, note) {
		info.note = bytes.Clone(note)
	}
	x.mu.Lock()
	if r.keeping.state != notKept {
		info.entries = entries
	}
	x.lastID = c.lastID
	r.versions = append(r.versions, info)
	x.latest = r
	r.used.Store(x.clock.Add(1))
	dropped := x.evict()
	x.mu.Unlock()
	x.letGo(dropped)
}

// commit finds out what a commit changes.
type commit struct {
	index  *Runs
	before view
	totals Totals
	lastID FileID

	fates map[string]*fate
	// order is that of first mention.
	order   []*fate
	changes []change
}

// fate is what a commit does to a path.
type fate struct {
	standing
	// added is the file that is live after the commit, nil if none is.
	added *File
}

func (c *commit) resolve(ctx context.Context, gone []Gone, added []File) error {
	for _, g := range gone {
		s, err := c.before.find(ctx, g.Path)
		if err != nil {
			return err
		}
		if old, ok := s.live(); ok && old.file.DV == g.DV {
			c.fate(g.Path, s)
		}
	}
	for i := range added {
		f := &added[i]
		fate, ok := c.fates[f.Path]
		if !ok {
			s, err := c.before.find(ctx, f.Path)
			if err != nil {
				return err
			}
			fate = c.fate(f.Path, s)
		}
		fate.added = f
	}
	for _, fate := range c.order {
		if err := c.change(ctx, fate); err != nil {
			return err
		}
	}
	return nil
}

// fate returns what becomes of a path: at first its end.
func (c *commit) fate(path string, s standing) *fate {
	f, ok := c.fates[path]
	if !ok {
		f = &fate{standing: s}
		c.fates[path] = f
		c.order = append(c.order, f)
	}
	return f
}

// change appends the changes of one path.
func (c *commit) change(ctx context.Context, fate *fate) error {
	old, wasLive := fate.live()
	if wasLive {
		c.totals.add(&old.file, -1)
	}
	if wasLive && (fate.added == nil || fate.added.Key != old.file.Key) {
		end := old
		end.ended = true
		c.changes = append(c.changes, end)
	}
	if fate.added == nil {
		return nil
	}
	live := change{file: *fate.added}
	c.totals.add(&live.file, 1)
	var err error
	if live.file.ID, err = c.id(ctx, fate); err != nil {
		return err
	}
	switch {
	case wasLive && old.file.Key == live.file.Key:
		live.rank, live.inBase = old.rank, old.inBase
	case fate.hasBase && fate.inBase.file.Key == live.file.Key:
		live.rank, live.inBase = fate.inBase.rank, true
	default:
		if live.rank, err = c.before.rankOf(ctx, live.file.Key); err != nil {
			return err
		}
	}
	c.changes = append(c.changes, live)
	return nil
}

// id returns the ID of an added file: the one it has in any run, or a new one.
func (c *commit) id(ctx context.Context, fate *fate) (FileID, error) {
	f := fate.added
	if fate.hasBase && fate.inBase.file.DV == f.DV {
		return fate.inBase.file.ID, nil
	}
	if id := c.before.delta.idOf(f.Path, f.DV); id != 0 {
		return id, nil
	}
	id, err := c.index.idElsewhere(ctx, c.before.run, f)
	if id == 0 && err == nil {
		c.lastID++
		id = c.lastID
	}
	return id, err
}

// idElsewhere returns the ID that a file has in another run, or 0.
func (x *Runs) idElsewhere(ctx context.Context, self *run, f *File) (FileID, error) {
	var buffer [DefaultMaxRuns]view
	found := FileID(0)
	for _, v := range x.views(buffer[:0]) {
		if found == 0 && v.run != self {
			id, err := v.idOf(ctx, f.Path, f.DV)
			if err := x.failed(ctx, v, err); err != nil && ctx.Err() != nil {
				v.release()
				return 0, err
			}
			found = id
		}
		v.release()
	}
	return found, nil
}
