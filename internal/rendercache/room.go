package rendercache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// abandoned is the age of a file under a temporary name that nobody makes any
// more: whoever made it was killed.
const abandoned = time.Hour

const (
	// recountShare is the part of the bound after which the directory is counted
	// again, for others add to it too.
	recountShare = 16
	// leaveShare is the part that is made free when the bound is reached.
	leaveShare = 10
)

// came counts what was added, and deletes what was used longest ago when the
// directory holds too much.
func (d *disk) came(root *os.Root, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.added += bytes
	if d.counted && d.used+d.added <= d.options.Size && d.added <= d.options.Size/recountShare {
		return
	}
	d.count(root, d.options.Size, d.options.Size-d.options.Size/leaveShare)
}

// room says whether the disk has room for more, and makes some if not.
func (d *disk) room(file *os.File) error {
	free, err := freeBytes(file)
	if err != nil || free >= d.options.Floor+askEvery {
		return err
	}
	if root := d.opened(); root != nil {
		d.mu.Lock()
		d.count(root, 0, d.options.Size/2)
		d.mu.Unlock()
		free, err = freeBytes(file)
	}
	if err == nil && free < d.options.Floor+askEvery {
		err = fmt.Errorf("%w: it has %d bytes free, and %d are left to others", errDisk, free, d.options.Floor)
	}
	return err
}

func freeBytes(f *os.File) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, fmt.Errorf("%w: %w", errDisk, err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// count finds out what the directory holds. If that is more than so much, it
// deletes what was used longest ago until it holds as much as shall be left;
// d.mu is held.
func (d *disk) count(root *os.Root, most, left int64) {
	files, err := chunkFiles(root)
	if err != nil {
		d.tell("it does not list", err)
		return
	}
	d.used, d.added, d.counted = 0, 0, true
	for _, f := range files {
		d.used += blocks(f)
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	now := time.Now()
	full := d.used > most
	for _, f := range files {
		_, temp := isOwn(f.Name())
		age := now.Sub(f.ModTime())
		if temp && age > abandoned || !temp && full && d.used > left {
			if root.Remove(f.Name()) == nil {
				d.used -= blocks(f)
			}
		}
	}
}

// Clear deletes what caches have made in a directory, and returns how many bytes
// that were. Who has a chunk open reads it to the end.
func Clear(dir string) (int64, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	root, err := openDir(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	files, err := chunkFiles(root)
	if err != nil {
		return 0, err
	}
	freed := int64(0)
	for _, f := range files {
		if removed := root.Remove(f.Name()); removed == nil {
			freed += blocks(f)
		} else if !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return freed, err
}

// chunkFiles returns the files that a cache has made.
func chunkFiles(root *os.Root) ([]fs.FileInfo, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var out []fs.FileInfo
	for _, e := range entries {
		if own, _ := isOwn(e.Name()); !own || !e.Type().IsRegular() {
			continue
		}
		if info, err := root.Lstat(e.Name()); err == nil {
			out = append(out, info)
		}
	}
	return out, nil
}
