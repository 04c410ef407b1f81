package metacache

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"sort"
	"sync"
	"unsafe"

	"github.com/dchest/siphash"
)

// diskBase is a base in a directory. It is verified and opened when it is
// first read. Once something in it cannot be read, nothing can.
type diskBase struct {
	path string
	seal *seal
	lru  *lru
	log  *slog.Logger

	// opening is held by whoever verifies and opens the database.
	opening chan struct{}

	mu       sync.Mutex
	database *database
	failure  error
}

var _ base = (*diskBase)(nil)

func newDiskBase(c *Cache, path string, s *seal) *diskBase {
	return &diskBase{path: path, seal: s, lru: c.lru, log: c.log, opening: make(chan struct{}, 1)}
}

func (b *diskBase) count() int     { return b.seal.count() }
func (b *diskBase) totals() Totals { return b.seal.Totals }

// bytes is small whatever the base holds: what is unpacked of it is bounded
// for all bases together.
func (b *diskBase) bytes() int64 { return int64(unsafe.Sizeof(*b)) + 64*int64(len(b.seal.Sealed)) }

// open returns the database.
func (b *diskBase) open(ctx context.Context) (*database, error) {
	if db, err := b.state(); db != nil || err != nil {
		return db, err
	}
	select {
	case b.opening <- struct{}{}:
		defer func() { <-b.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if db, err := b.state(); db != nil || err != nil {
		return db, err
	}
	if err := b.seal.verify(ctx, b.path); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, b.fail(err)
	}
	return b.openVerified()
}

// openVerified opens a database that is known to be as the seal says.
func (b *diskBase) openVerified() (*database, error) {
	db, err := openDatabase(b.path, timestamp(b.seal.Version), b.log)
	if err != nil {
		return nil, b.fail(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.database = db
	return db, nil
}

func (b *diskBase) state() (*database, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil {
		return nil, b.failure
	}
	return b.database, nil
}

// timestamp is the one of a version in badger, where 0 is none.
func timestamp(version int64) uint64 { return uint64(version) + 1 }

func (b *diskBase) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure == nil {
		b.failure = err
		level := slog.LevelWarn
		if errors.Is(err, fs.ErrNotExist) { // its owner may delete it
			level = slog.LevelInfo
		}
		b.log.Log(context.Background(), level, "cached metadata does not read and will be loaded again",
			"op", "cache", "path", b.path, "err", err)
	}
	return b.failure
}

func (b *diskBase) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lru.drop(b)
	if b.failure == nil {
		b.failure = damaged(nil, "it was closed")
	}
	if b.database == nil {
		return
	}
	if err := b.database.close(); err != nil {
		b.log.Debug("badger did not close", "op", "cache", "path", b.path, "err", err)
	}
	b.database = nil
}

// diskValue returns a value as decode made it, which also says how many bytes that
// takes.
func diskValue[T any](ctx context.Context, b *diskBase, kind byte, number int, decode func([]byte) (T, int, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	key := lruKey{b, kind, number}
	if v, ok := b.lru.get(key); ok {
		return v.(T), nil
	}
	db, err := b.open(ctx)
	if err != nil {
		return none, err
	}
	packed, err := db.get(kind, number)
	if err != nil {
		return none, b.fail(err)
	}
	v, bytes, err := decode(packed)
	if err != nil {
		return none, b.fail(err)
	}
	b.lru.put(key, v, int64(bytes))
	return v, nil
}

// block returns the files of a block.
func (b *diskBase) block(ctx context.Context, number int) ([]File, error) {
	return diskValue(ctx, b, filesKind, number, func(packed []byte) ([]File, int, error) {
		return decodeBlock(packed, b.seal, number)
	})
}

func decodeBlock(packed []byte, s *seal, number int) ([]File, int, error) {
	d, err := decompress(packed)
	if err != nil {
		return nil, 0, err
	}
	bytes := len(d.rest)
	first := number * blockFiles
	files := make([]File, min(blockFiles, s.count()-first))
	coder := fileCoder{ids: s.OwnIDs}
	for i := range files {
		files[i] = coder.decode(d)
		if !s.OwnIDs {
			files[i].ID = s.FirstID + FileID(first+i)
		}
	}
	return files, bytes + len(files)*int(unsafe.Sizeof(File{})), d.end()
}

// file implements base.
func (b *diskBase) file(ctx context.Context, rank int) (File, error) {
	files, err := b.block(ctx, rank/blockFiles)
	if err != nil {
		return File{}, err
	}
	return files[rank%blockFiles], nil
}

// scan implements base.
func (b *diskBase) scan(ctx context.Context, first, end int) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for rank := first; rank < end; {
			files, err := b.block(ctx, rank/blockFiles)
			if err != nil {
				yield(File{}, err)
				return
			}
			for _, f := range files[rank%blockFiles : min(blockFiles, end-rank/blockFiles*blockFiles)] {
				if err := ctx.Err(); err != nil {
					yield(File{}, err)
					return
				}
				if !yield(f, nil) {
					return
				}
				rank++
			}
		}
	}
}

// dirs returns the directories of a chunk.
func (b *diskBase) dirs(ctx context.Context, number int) ([]baseDir, error) {
	return diskValue(ctx, b, dirsKind, number, func(packed []byte) ([]baseDir, int, error) {
		return decodeDirs(packed, b.seal, number)
	})
}

func encodeDirs(e *encoder, dirs []baseDir) {
	e.uint(uint64(dirs[0].first))
	for _, d := range dirs {
		e.text(d.path)
		e.uint(uint64(d.files))
	}
}

func decodeDirs(packed []byte, s *seal, number int) ([]baseDir, int, error) {
	d, err := decompress(packed)
	if err != nil {
		return nil, 0, err
	}
	bytes := len(d.rest)
	dirs := make([]baseDir, min(chunkDirs, s.Dirs-number*chunkDirs))
	first := d.uint()
	for i := range dirs {
		dirs[i] = baseDir{path: d.text(), first: int(first), files: int(d.uint())}
		first += uint64(dirs[i].files)
		if first > uint64(s.count()) {
			d.fail()
			first = 0
		}
	}
	return dirs, bytes + len(dirs)*int(unsafe.Sizeof(baseDir{})), d.end()
}

// dir implements base.
func (b *diskBase) dir(ctx context.Context, number int) (baseDir, bool, error) {
	if number >= b.seal.Dirs {
		return baseDir{}, false, ctx.Err()
	}
	dirs, err := b.dirs(ctx, number/chunkDirs)
	if err != nil {
		return baseDir{}, false, err
	}
	return dirs[number%chunkDirs], true, nil
}

// seekDir implements base.
func (b *diskBase) seekDir(ctx context.Context, dir string) (int, error) {
	return searchFirst(0, b.seal.Dirs, chunkDirs, func(number int) (bool, error) {
		d, _, err := b.dir(ctx, number)
		return CompareDirs(d.path, dir) >= 0, err
	})
}

// seekName implements base.
func (b *diskBase) seekName(ctx context.Context, d baseDir, name string) (int, error) {
	return searchFirst(d.first, d.end(), blockFiles, func(rank int) (bool, error) {
		f, err := b.file(ctx, rank)
		return f.Name >= name, err
	})
}

// searchFirst returns the first number in [first, end) for which is holds, end
// if there is none: it holds from there on. Numbers lie in blocks of a size,
// and the search decides on the block before it looks into one.
func searchFirst(first, end, size int, is func(int) (bool, error)) (int, error) {
	var failed error
	holds := func(i int) bool {
		if failed != nil {
			return true
		}
		ok, err := is(i)
		failed = err
		return ok
	}
	// The first multiple of size behind first for which it holds.
	blocks := first/size + 1
	n := max(0, (end-1)/size+1-blocks)
	last := blocks + sort.Search(n, func(i int) bool { return holds((blocks + i) * size) })
	low, high := max(first, (last-1)*size), min(end, last*size)
	found := low + sort.Search(high-low, func(i int) bool { return holds(low + i) })
	return found, failed
}

// pathHash is the hash of a path in a run. It is keyed, so that no log can be
// made to fill one bucket.
func (s *seal) pathHash(path string) uint64 {
	return siphash.Hash(s.PathKey[0], s.PathKey[1], unsafe.Slice(unsafe.StringData(path), len(path)))
}

// bucket is the number of the bucket of a hash.
func (s *seal) bucket(hash uint64) int { return int(hash >> (64 - s.PathBits)) }

func (b *diskBase) pairs(ctx context.Context, kind byte, number int) (packedPairs, error) {
	return diskValue(ctx, b, kind, number, func(packed []byte) (packedPairs, int, error) {
		p := packedPairs(packed)
		return p, len(p), p.check(b.count())
	})
}

// byPath implements base.
func (b *diskBase) byPath(ctx context.Context, path string) (int, bool, error) {
	hash := b.seal.pathHash(path)
	bucket, err := b.pairs(ctx, pathsKind, b.seal.bucket(hash))
	if err != nil {
		return 0, false, err
	}
	for i := bucket.seek(hash); i < bucket.count() && bucket.key(i) == hash; i++ {
		rank := int(bucket.rank(i))
		f, err := b.file(ctx, rank)
		if err != nil {
			return 0, false, err
		}
		if f.Path == path {
			return rank, true, nil
		}
	}
	return 0, false, nil
}

// byID implements base.
func (b *diskBase) byID(ctx context.Context, id FileID) (int, bool, error) {
	if !b.seal.OwnIDs {
		rank := int(id - b.seal.FirstID)
		return rank, id >= b.seal.FirstID && rank < b.count(), ctx.Err()
	}
	if id > b.seal.LastID || b.count() == 0 {
		return 0, false, ctx.Err()
	}
	root, err := b.pairs(ctx, idRootKind, 0)
	if err != nil {
		return 0, false, err
	}
	chunk := root.seek(uint64(id)+1) - 1
	if chunk < 0 {
		return 0, false, nil
	}
	ids, err := b.pairs(ctx, idsKind, chunk)
	if err != nil {
		return 0, false, err
	}
	if i := ids.seek(uint64(id)); i < ids.count() && ids.key(i) == uint64(id) {
		return int(ids.rank(i)), true, nil
	}
	return 0, false, nil
}
