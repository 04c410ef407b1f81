package metacache

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"

	"github.com/dgraph-io/ristretto/v2/z"
)

// runWriter writes the base of a run into a directory, in one pass over its
// files.
type runWriter struct {
	seal   *seal
	tables *tableWriter

	blocks, dirs *tableStream
	// block is the block of files at hand, chunk that of directories.
	block encoder
	coder fileCoder
	chunk []baseDir
	// value is memory for a value.
	value      []byte
	paths, ids *pairSorter
	rank       int
}

// writeBase writes the database of a run and returns its seal, which is still
// to be put there.
func writeBase(ctx context.Context, dir string, r keptRun, room func(n int) error) (s *seal, err error) {
	defer recoverDamage(&err)()
	count := r.base.count()
	if count > maxRank {
		return nil, fmt.Errorf("%d files are too many", count)
	}
	s = &seal{
		Format: diskFormat, Serial: r.serial, Version: r.first, Totals: r.base.totals(),
		FirstID: r.firstID, OwnIDs: r.ownIDs, PathBits: bits.Len(uint(count / bucketPaths)),
	}
	if err := newPathKey(s); err != nil {
		return nil, err
	}
	pool := z.NewAllocatorPool(2) // for the streams open at a time
	defer pool.Release()
	tables := &tableWriter{dir: dir, ts: timestamp(r.first), room: room, pool: pool}
	w := &runWriter{
		seal: s, tables: tables, blocks: tables.stream(filesKind), dirs: tables.stream(dirsKind),
		coder: fileCoder{ids: r.ownIDs}, paths: newPairSorter(dir, count), ids: newPairSorter(dir, 0),
	}
	defer w.close()
	for f, err := range r.base.scan(ctx, 0, count) {
		if err == nil && w.rank%blockFiles == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.add(f)
		}
		if err != nil {
			return nil, err
		}
	}
	if w.rank != count {
		return nil, fmt.Errorf("the base has %d files, not %d", w.rank, count)
	}
	if err := w.finish(ctx); err != nil {
		return nil, err
	}
	s.Sealed = tables.sealed
	return s, ctx.Err()
}

func newPathKey(s *seal) error {
	var key [16]byte
	_, err := rand.Read(key[:])
	s.PathKey = [2]uint64{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
	return err
}

func (w *runWriter) close() {
	w.blocks.discard()
	w.dirs.discard()
	w.paths.close()
	w.ids.close()
}

// add takes the next file.
func (w *runWriter) add(f File) error {
	if err := w.addDir(f.Dir); err != nil {
		return err
	}
	w.coder.encode(&w.block, f)
	w.seal.LastID = max(w.seal.LastID, f.ID)
	rank := uint32(w.rank)
	if err := w.paths.add(pair{w.seal.pathHash(f.Path), rank}); err != nil {
		return err
	}
	if w.seal.OwnIDs {
		if err := w.ids.add(pair{uint64(f.ID), rank}); err != nil {
			return err
		}
	}
	if w.rank++; w.rank%blockFiles == 0 {
		return w.flushBlock()
	}
	return nil
}

func (w *runWriter) flushBlock() error {
	err := w.put(w.blocks, (w.rank-1)/blockFiles, w.block.buf)
	w.block.buf = w.block.buf[:0]
	w.coder.before = File{}
	return err
}

// put compresses and writes a value.
func (w *runWriter) put(to *tableStream, number int, value []byte) (err error) {
	if w.value, err = compress(w.value, value); err == nil {
		w.value, err = to.put(number, w.value)
	}
	return err
}

// addDir counts a file of a directory, which may be a new one.
func (w *runWriter) addDir(dir string) error {
	if n := len(w.chunk); n > 0 && w.chunk[n-1].path == dir {
		w.chunk[n-1].files++
		return nil
	}
	if len(w.chunk) == chunkDirs {
		if err := w.flushDirs(); err != nil {
			return err
		}
	}
	w.chunk = append(w.chunk, baseDir{path: dir, first: w.rank, files: 1})
	w.seal.Dirs++
	return nil
}

func (w *runWriter) flushDirs() error {
	var e encoder
	encodeDirs(&e, w.chunk)
	w.chunk = w.chunk[:0]
	return w.put(w.dirs, (w.seal.Dirs-1)/chunkDirs, e.buf)
}

// finish writes what is not in rank order.
func (w *runWriter) finish(ctx context.Context) error {
	if w.rank%blockFiles != 0 {
		if err := w.flushBlock(); err != nil {
			return err
		}
	}
	if len(w.chunk) > 0 {
		if err := w.flushDirs(); err != nil {
			return err
		}
	}
	for _, s := range []*tableStream{w.blocks, w.dirs} {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if err := w.writePaths(ctx); err != nil {
		return err
	}
	if w.seal.OwnIDs && w.rank > 0 {
		if err := w.writeIDs(ctx); err != nil {
			return err
		}
	}
	return w.tables.finish()
}

// writePaths writes the buckets of path hashes, empty ones too.
func (w *runWriter) writePaths(ctx context.Context) error {
	out := w.tables.stream(pathsKind)
	defer out.discard()
	var bucket []pair
	number := 0
	fill := func(upTo int) (err error) {
		for ; number < upTo && err == nil; number++ {
			w.value, err = out.put(number, packPairs(w.value[:0], bucket))
			bucket = bucket[:0]
		}
		return errors.Join(err, ctx.Err())
	}
	for p, err := range w.paths.sorted() {
		if err == nil {
			err = fill(w.seal.bucket(p.key))
		}
		if err != nil {
			return err
		}
		bucket = append(bucket, p)
	}
	if err := fill(1 << w.seal.PathBits); err != nil {
		return err
	}
	return out.flush()
}

// writeIDs writes the IDs in order, in chunks, and the first ID of each.
func (w *runWriter) writeIDs(ctx context.Context) error {
	out := w.tables.stream(idsKind)
	defer out.discard()
	var root, chunk []pair
	flush := func() (err error) {
		if len(chunk) == 0 {
			return nil
		}
		w.value, err = out.put(len(root), packPairs(w.value[:0], chunk))
		root = append(root, pair{key: chunk[0].key})
		chunk = chunk[:0]
		return err
	}
	for p, err := range w.ids.sorted() {
		if err == nil && len(chunk) == chunkIDs {
			err = flush()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		chunk = append(chunk, p)
	}
	if err := flush(); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	roots := w.tables.stream(idRootKind)
	defer roots.discard()
	if _, err := roots.put(0, packPairs(nil, root)); err != nil {
		return err
	}
	return roots.flush()
}

// writeRun writes a whole run into a directory that is there and empty.
func writeRun(ctx context.Context, dir string, r keptRun, room func(n int) error) (*seal, *versionLog, error) {
	s, err := writeBase(ctx, dir, r, room)
	if err != nil {
		return nil, nil, err
	}
	log, err := createVersions(filepath.Join(dir, versionsName), r.first)
	if err != nil {
		return nil, nil, err
	}
	if err = log.appendAll(r.versions, room); err == nil {
		err = s.write(dir)
	}
	if err != nil {
		log.close()
		return nil, nil, err
	}
	return s, log, nil
}
