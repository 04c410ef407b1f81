package metacache

import "sync/atomic"

// run is a row of covered versions: those of a base and of the changes after
// it. Runs.mu guards it, but for used; the delta guards itself.
type run struct {
	serial uint64
	first  int64
	// versions[i] is version first+i.
	versions []versionInfo
	base     *pinned
	delta    *delta
	used     atomic.Int64
	keeping  keeping
}

// versionInfo is what a run knows of a version beside its files.
type versionInfo struct {
	note   []byte
	totals Totals
	// entries are held until the keeper has them.
	entries []*entry
}

func (r *run) last() int64 { return r.first + int64(len(r.versions)) - 1 }

// bytes is about what the run holds on the heap.
func (r *run) bytes() int64 { return r.base.bytes() + r.delta.size() }

// pinned is a base that is closed when the last of its users let it go, one of
// whom is the run.
type pinned struct {
	base
	users atomic.Int64
	gone  func()
}

// pin returns a base with one user. gone is called once it is closed.
func pin(b base, gone func()) *pinned {
	p := &pinned{base: b, gone: gone}
	p.users.Store(1)
	return p
}

func (p *pinned) release() {
	if p.users.Add(-1) == 0 {
		p.close()
		p.gone()
	}
}

// view is a version of a run for reading without a lock, until it is released.
type view struct {
	run     *run
	base    *pinned
	delta   *delta
	version int64
	info    versionInfo
}

func (v view) release() { v.base.release() }

// view pins a version. The caller holds Runs.mu, for reading.
func (r *run) view(version int64) view {
	r.base.users.Add(1)
	return view{run: r, base: r.base, delta: r.delta, version: version, info: r.versions[version-r.first]}
}
