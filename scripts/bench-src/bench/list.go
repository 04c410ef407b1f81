package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

func (b *bench) million() string { return filepath.Join(b.keep, "million") }

func (b *bench) makeMillion() error {
	sayMaking(b.million(), "the table of a million files")
	_, err := tables.MakeMillion(b.million())
	return err
}

// list compares listing one partition of the latest version, from starting the
// program to having the names, with nothing cached and with the cache of an
// earlier mount. The log is in the page cache for everyone.
func (b *bench) list() error {
	l, err := b.newListing(tables.MillionLatest)
	if err != nil {
		return err
	}
	if err := l.compare(l.peer("delta-rs", "list_delta_rs.py"), l.peer("DuckDB (plan)", "list_duckdb.py")); err != nil {
		return err
	}
	if !b.full {
		return nil
	}
	// Once: it takes minutes.
	spark := l.peer("Spark, once", "list_spark.py")
	if _, err := spark.once(); err != nil {
		return err
	}
	b.report.add(l.what("nothing cached"), milliseconds, l.first, spark.name+", whole process", spark.whole[0])
	b.report.add(l.what("nothing cached"), milliseconds, l.first, spark.name+", open and list alone", spark.inside[0])
	return nil
}

// oldList does the same at versions further back.
func (b *bench) oldList() error {
	for _, v := range tables.MillionVersions[1:] {
		l, err := b.newListing(v)
		if err != nil {
			return err
		}
		if err := l.compare(l.peer("delta-rs", "list_delta_rs.py")); err != nil {
			return err
		}
	}
	return nil
}

// listing is the listing of one partition directory of the table of a million
// files.
type listing struct {
	b       *bench
	version int64
	dir     string
	files   int
	// first is the median without a cache.
	first float64
}

func (b *bench) newListing(v int64) (*listing, error) {
	about, err := tables.MakeMillion(b.million())
	if err != nil {
		return nil, err
	}
	return &listing{b: b, version: v, dir: about.Partition, files: about.Files[v]}, warm(filepath.Join(b.million(), "_delta_log"))
}

func (l *listing) what(cache string) string {
	return fmt.Sprintf("%d names at version %d, %s", l.files, l.version, cache)
}

// date is the partition's value.
func (l *listing) date() string { return strings.TrimPrefix(l.dir, "date=") }

// listingPeer is another program that lists the same files.
type listingPeer struct {
	name string
	once func() (float64, error)
	// whole and inside are the times of the process, and without its start.
	whole, inside []float64
}

func (l *listing) peer(name, program string) *listingPeer {
	p := &listingPeer{name: name}
	version := l.version
	if version == tables.MillionLatest {
		version = -1
	}
	p.once = func() (float64, error) {
		r, err := l.b.peer(program, l.b.million(), version, l.date())
		if err == nil && r.Count >= 0 && r.Count != l.files {
			err = fmt.Errorf("%s found %d names, not %d", program, r.Count, l.files)
		}
		p.whole, p.inside = append(p.whole, r.Whole), append(p.inside, r.Milliseconds)
		return r.Whole, err
	}
	return p
}

func (l *listing) compare(peers ...*listingPeer) error {
	b := l.b
	contenders := []contender{{"deltafs", func() (float64, error) {
		cache, err := b.newDir("new-cache")
		if err != nil {
			return 0, err
		}
		return l.once(cache)
	}}}
	for _, p := range peers {
		contenders = append(contenders, contender{p.name, p.once})
	}
	if b.knowsCache() {
		cache, err := l.filledCache()
		if err != nil {
			return err
		}
		contenders = append(contenders, contender{"deltafs", func() (float64, error) { return l.once(cache) }})
	}
	medians, err := alternately(b.runs, contenders...)
	if err != nil {
		return err
	}
	l.first = medians[0]
	l.report("nothing cached", medians[0], peers)
	if !b.knowsCache() {
		b.report.note("this deltafs has no disk cache.")
	} else {
		l.report("cache present", medians[len(medians)-1], peers)
	}
	return nil
}

func (l *listing) report(cache string, ours float64, peers []*listingPeer) {
	for _, p := range peers {
		l.b.report.add(l.what(cache), milliseconds, ours, p.name+", whole process", median(p.whole))
		l.b.report.add(l.what(cache), milliseconds, ours, p.name+", open and list alone", median(p.inside))
	}
}

// once measures from starting deltafs to having the names.
func (l *listing) once(cache string) (float64, error) {
	start := time.Now()
	m, err := l.b.mountTable(l.b.million(), cache)
	if err != nil {
		return 0, err
	}
	err = l.list(m)
	d := time.Since(start)
	if stopped := m.stop(); err == nil {
		err = stopped
	}
	return inMilliseconds(d), err
}

func (l *listing) list(m *mount) error {
	dir, err := os.Open(filepath.Join(m.point, fmt.Sprintf("@v%d", l.version), l.dir))
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err == nil && len(names) != l.files {
		err = fmt.Errorf("deltafs shows %d names in %s, not %d", len(names), dir.Name(), l.files)
	}
	return err
}

// filledCache mounts once, lists, and lets the mount finish its cache.
func (l *listing) filledCache() (string, error) {
	cache, err := l.b.newDir("cache")
	if err != nil {
		return "", err
	}
	m, err := l.b.mountTable(l.b.million(), cache)
	if err != nil {
		return "", err
	}
	if err = l.list(m); err == nil {
		err = waitIdle(m.pid)
	}
	if stopped := m.stop(); err == nil {
		err = stopped
	}
	return cache, err
}

// warm reads the files of a directory into the page cache.
func warm(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if _, err := sequential(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
