package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestPlacesAreNotLeft(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"in/d/file", "in-not/file", "out/file"} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	in := filepath.Join(base, "in")
	for link, to := range map[string]string{
		filepath.Join(in, "away"): filepath.Join(base, "out"), filepath.Join(in, "up"): "../out",
		filepath.Join(in, "here"): "d", filepath.Join(base, "alias"): "in",
	} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{in, in + "/", filepath.Join(base, "alias")} {
		p := NewPlaces(filepath.Join(base, "no such place"), root)
		t.Cleanup(func() { p.Close() })
		for name, want := range map[string]error{
			"in/d/file": nil, "in/./d//file": nil, "in/here/file": nil, "out/../in/d/file": nil, "in/none": ErrNotExist,
			"in/d": ErrNotExist, "out/file": ErrOutside, "in-not/file": ErrOutside, "in/../out/file": ErrOutside,
			"in/away/file": ErrOutside, "in/up/file": ErrOutside, "in": ErrOutside, ".": ErrOutside,
		} {
			object, err := p.Open(t.Context(), base+"/"+name)
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s in %s: %v, want %v", name, root, err, want)
			}
			if err == nil {
				object.Close()
			}
		}
	}
	if _, err := NewPlaces().Open(t.Context(), in+"/d/file"); !errors.Is(err, ErrOutside) {
		t.Errorf("in no place: %v", err)
	}
	if object, err := NewPlaces("/").Open(t.Context(), in+"/d/file"); err != nil {
		t.Errorf("everywhere: %v", err)
	} else {
		object.Close()
	}
}
