package metacache

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// diskFormat is the version of everything on disk. A run of another one is
// made anew.
const diskFormat = 2

const (
	sealName     = "seal"
	versionsName = "versions"
)

// seal describes a run on disk. It is written when all else is there, and a
// run without one does not exist.
type seal struct {
	Format int `json:"format"`
	// Serial is that of keptRun, Version the one of the base.
	Serial  uint64 `json:"serial"`
	Version int64  `json:"version"`
	Totals  Totals `json:"totals"`
	Dirs    int    `json:"dirs"`
	// FirstID, OwnIDs and LastID say which IDs the files of the base have.
	FirstID FileID `json:"firstID"`
	OwnIDs  bool   `json:"ownIDs"`
	LastID  FileID `json:"lastID"`
	// PathKey is the key of the path hashes, PathBits how many of their first
	// bits name a bucket.
	PathKey  [2]uint64 `json:"pathKey"`
	PathBits int       `json:"pathBits"`
	// Sealed are the files of the database.
	Sealed []sealedFile `json:"sealed"`
}

// sealedFile is a file of the database.
type sealedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	CRC  uint32 `json:"crc32c"`
}

func (s *seal) count() int { return int(s.Totals.Files) }

// bytes is what the run takes on disk, without its versions.
func (s *seal) bytes() int64 {
	var n int64
	for _, p := range s.Sealed {
		n += p.Size
	}
	return n
}

// write puts the seal into the directory of a run.
func (s *seal) write(dir string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sealName), fmt.Appendf(nil, "%s\n%08x\n", data, crc32.Checksum(data, castagnoli)), 0o600)
}

// maxSeal bounds the size of a seal: a sealed file takes 60 bytes, 4 MB of the run.
const maxSeal = 1 << 20

// readSeal reads the seal of a run and looks whether the run has the files
// that it should, each of its size.
func readSeal(dir string) (*seal, error) {
	s, err := parseSeal(filepath.Join(dir, sealName))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, damaged(err, "the directory cannot be read")
	}
	if len(entries) != len(s.Sealed)+len([]string{sealName, versionsName}) {
		return nil, damaged(nil, "there are %d files, not what the seal names", len(entries))
	}
	for _, p := range s.Sealed {
		info, err := os.Lstat(filepath.Join(dir, p.Name))
		if err != nil {
			return nil, damaged(err, "a file is missing")
		}
		if !info.Mode().IsRegular() || info.Size() != p.Size {
			return nil, damaged(nil, "%s has %d bytes, not %d", p.Name, info.Size(), p.Size)
		}
	}
	return s, nil
}

func parseSeal(name string) (*seal, error) {
	data, err := readLimited(name, maxSeal)
	if err != nil {
		return nil, damaged(err, "the seal cannot be read")
	}
	const tail = len("\n01234567\n")
	n := len(data) - tail
	if n < 0 || string(data[n:]) != fmt.Sprintf("\n%08x\n", crc32.Checksum(data[:n], castagnoli)) {
		return nil, damaged(nil, "the seal is broken")
	}
	s := new(seal)
	if err := json.Unmarshal(data[:n], s); err != nil {
		return nil, damaged(err, "the seal does not parse")
	}
	if s.Format != diskFormat {
		return nil, damaged(nil, "it has the format %d, this program the format %d", s.Format, diskFormat)
	}
	local := func(p sealedFile) bool {
		return filepath.Base(p.Name) == p.Name && p.Name != sealName && p.Name != versionsName
	}
	if s.Totals.Files < 0 || s.Totals.Files > maxRank || s.Dirs < 0 || s.PathBits < 0 || s.PathBits > 32 ||
		slices.ContainsFunc(s.Sealed, func(p sealedFile) bool { return !local(p) }) {
		return nil, damaged(nil, "the seal makes no sense")
	}
	return s, nil
}

// openRegular opens a file that has to be a regular one: to open a pipe would
// wait for its other end.
func openRegular(name string, mode int) (*os.File, error) {
	f, err := os.OpenFile(name, mode|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readLimited reads a file that is not too large.
func readLimited(name string, limit int64) ([]byte, error) {
	f, err := openRegular(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, err
}

// verify compares every byte of the database with the seal. It reads as much
// as the run is large: 100 MB take 20 ms if they are in the page cache.
func (s *seal) verify(ctx context.Context, dir string) error {
	var group sync.WaitGroup
	todo := make(chan sealedFile, len(s.Sealed))
	for _, p := range s.Sealed {
		todo <- p
	}
	close(todo)
	workers := min(runtime.GOMAXPROCS(0), len(s.Sealed), 8)
	errs := make([]error, workers)
	for i := range workers {
		group.Go(func() {
			buf := make([]byte, 256<<10)
			for p := range todo {
				if errs[i] = errors.Join(ctx.Err(), p.verify(dir, buf)); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (p sealedFile) verify(dir string, buf []byte) error {
	f, err := openRegular(filepath.Join(dir, p.Name), os.O_RDONLY)
	if err != nil {
		return damaged(err, "a file cannot be opened")
	}
	defer f.Close()
	var sum uint32
	var size int64
	for {
		n, err := f.Read(buf)
		sum = crc32.Update(sum, castagnoli, buf[:n])
		size += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return damaged(err, "a file cannot be read")
		}
	}
	if size != p.Size || sum != p.CRC {
		return damaged(nil, "%s is not as it was written", p.Name)
	}
	return nil
}

// damaged says what is wrong with a run.
func damaged(cause error, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if cause == nil {
		return fmt.Errorf("%w: %s", errDamaged, reason)
	}
	return fmt.Errorf("%w: %s: %w", errDamaged, reason, cause)
}
