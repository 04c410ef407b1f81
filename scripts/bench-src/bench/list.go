package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/deltafs/deltafs/scripts/bench-src/tables"
)

func (b *bench) million() string { return filepath.Join(b.keep, "million") }

func (b *bench) makeMillion() error {
	progress("the table of a million files")
	_, err := tables.MakeMillion(b.million())
	return err
}

func (b *bench) firstList() error  { return b.listing(tables.MillionLatest, false) }
func (b *bench) cachedList() error { return b.listing(tables.MillionLatest, true) }

func (b *bench) oldList() error {
	for _, v := range tables.MillionVersions[1:] {
		for _, cached := range []bool{false, true} {
			if err := b.listing(v, cached); err != nil {
				return err
			}
		}
	}
	return nil
}

// listing compares listing one partition of a version, from starting the
// program to having the names. The log is in the page cache for everyone.
func (b *bench) listing(v int64, cached bool) error {
	about, err := tables.MakeMillion(b.million())
	if err != nil {
		return err
	}
	if cached && !b.knowsCache() {
		b.report.note("this deltafs has no disk cache")
		return nil
	}
	if err := warm(filepath.Join(b.million(), "_delta_log")); err != nil {
		return err
	}
	l := listing{b: b, version: v, dir: about.Partition, files: about.Files[v]}
	if cached {
		if l.cache, err = l.filledCache(); err != nil {
			return err
		}
	}
	return l.compare()
}

// listing is the listing of one partition directory.
type listing struct {
	b       *bench
	version int64
	dir     string
	files   int
	// cache is a filled cache directory, or empty for a new one every time.
	cache string
}

func (l *listing) compare() error {
	b := l.b
	date := l.dir[len("date="):]
	what := fmt.Sprintf("%d names at version %d", l.files, l.version)
	if l.cache != "" {
		what += ", cache present"
	}
	version := l.version
	if version == tables.MillionLatest {
		version = -1
	}
	// What a peer does in its process is measured together with the process.
	inside := map[string][]float64{}
	peer := func(program string) contender {
		return contender{program, func() (float64, error) {
			r, err := b.peer(program, b.million(), version, date)
			if err == nil && r.Count >= 0 && r.Count != l.files {
				err = fmt.Errorf("%s found %d names, not %d", program, r.Count, l.files)
			}
			inside[program] = append(inside[program], r.Milliseconds)
			return r.Whole, err
		}}
	}
	contenders := []contender{{"deltafs", l.once}, peer("list_delta_rs.py"), peer("list_duckdb.py")}
	if b.full {
		contenders = append(contenders, peer("list_spark.py"))
	}
	medians, err := alternately(b.runs, contenders...)
	if err != nil {
		return err
	}
	for i, name := range []string{"delta-rs", "DuckDB (plan)", "Spark"}[:len(medians)-1] {
		c := contenders[i+1]
		b.report.add(what, milliseconds, medians[0], name+", whole process", medians[i+1])
		b.report.add(what, milliseconds, medians[0], name+", open and list alone", median(inside[c.name]))
	}
	return nil
}

// once measures from starting deltafs to having the names.
func (l *listing) once() (float64, error) {
	cache := l.cache
	if cache == "" {
		var err error
		if cache, err = l.b.newDir("cache"); err != nil {
			return 0, err
		}
	}
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
