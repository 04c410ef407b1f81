package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// RejectedFile is a refused or interrupted file whose bytes were kept.
type RejectedFile struct {
	// Name is unique among the rejected; Path is the local file.
	Name, Path string
	Size       int64
	Time       time.Time
	// Wanted is the name it was dropped under, Reason why it was refused.
	Wanted, Reason, Hint string
}

// rejection says why a file was not committed.
type rejection struct {
	Wanted string    `json:"wanted"`
	Reason string    `json:"reason"`
	Hint   string    `json:"hint,omitempty"`
	Time   time.Time `json:"time"`
}

const (
	whyPrefix = ".why-"
	// maxRejectedName leaves room for what is put around a name.
	maxRejectedName = 200
)

// reject moves a staged file of this mount to the rejected ones and returns
// its name there.
func (a *area) reject(n slot, r rejection) (string, error) {
	_, notes, err := a.opened()
	if err != nil {
		return "", err
	}
	var name string
	err = a.locked(true, func(base *os.Root) error {
		var err error
		name, err = moveToRejected(base, mountsDir+"/"+a.id+"/"+string(n), r)
		return err
	})
	if err == nil {
		notes.drop(n)
	}
	return name, err
}

// moveToRejected moves a staged file, named from .deltafs, under a free name.
// The reason is there before the file, and the move is one step, so that a
// crash leaves the file in one place and never without a reason. The lock of
// .deltafs is held, so that nobody takes the name meanwhile.
func moveToRejected(base *os.Root, slot string, r rejection) (string, error) {
	if err := base.MkdirAll(rejectedDir, 0o777); err != nil {
		return "", err
	}
	to, err := base.OpenRoot(rejectedDir)
	if err != nil {
		return "", err
	}
	defer to.Close()
	why, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	i := 1
	for ; ; i++ {
		if _, err := to.Lstat(rejectedName(r.Wanted, i)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	name := rejectedName(r.Wanted, i)
	if err := writeFile(to, whyPrefix+name, why); err != nil {
		return "", err
	}
	if err := base.Rename(slot, rejectedDir+"/"+name); err != nil {
		_ = to.Remove(whyPrefix + name)
		return "", err
	}
	return name, syncDir(to)
}

// rejectedName is the i-th choice for the name of a rejected file. Hidden
// names are made visible, for people have to find them.
func rejectedName(wanted string, i int) string {
	name := strings.TrimLeft(filepath.Base(wanted), ".")
	if name == "" || name == "/" {
		name = "unnamed"
	}
	ext := filepath.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if len(name) > maxRejectedName && len(ext) < maxRejectedName {
		stem = strings.ToValidUTF8(stem[:maxRejectedName-len(ext)], "")
	}
	if i == 1 {
		return stem + ext
	}
	return fmt.Sprintf("%s~%d%s", stem, i, ext)
}

// rejected lists the rejected files, ordered by name.
func (a *area) rejected() ([]RejectedFile, error) {
	dir, err := a.openRejected()
	if err != nil || dir == nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, err
	}
	var out []RejectedFile
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		f := RejectedFile{
			Name: e.Name(), Path: filepath.Join(a.root, areaDir, rejectedDir, e.Name()),
			Size: info.Size(), Time: info.ModTime(), Wanted: e.Name(),
		}
		if text, err := dir.ReadFile(whyPrefix + e.Name()); err == nil {
			var why rejection
			if json.Unmarshal(text, &why) == nil {
				f.Time, f.Wanted, f.Reason, f.Hint = why.Time, why.Wanted, why.Reason, why.Hint
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b RejectedFile) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// openRejected opens the directory of rejected files, nil if there is none.
func (a *area) openRejected() (*os.Root, error) {
	table, err := os.OpenRoot(a.root)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	dir, err := table.OpenRoot(areaDir + "/" + rejectedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

// removeRejected deletes a rejected file and its reason.
func (a *area) removeRejected(name string) error {
	if name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/") {
		return fs.ErrNotExist
	}
	dir, err := a.openRejected()
	if err != nil {
		return err
	}
	if dir == nil {
		return fs.ErrNotExist
	}
	defer dir.Close()
	if err := dir.Remove(name); err != nil {
		return err
	}
	if err := dir.Remove(whyPrefix + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
