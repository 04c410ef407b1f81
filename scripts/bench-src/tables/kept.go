package tables

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// Kept says whether a whole table is in dir.
func Kept(dir string) bool {
	_, err := os.Stat(dir + ".json")
	return err == nil
}

// making makes a table in dir unless a whole one is there; its description is
// kept beside it, as dir.json, and written last.
func making[T any](dir string, make func(dir string) (T, error)) (T, error) {
	var about T
	data, err := os.ReadFile(dir + ".json")
	if err == nil {
		return about, json.Unmarshal(data, &about)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return about, err
	}
	for _, leftover := range []string{dir, dir + ".new"} {
		if err := os.RemoveAll(leftover); err != nil {
			return about, err
		}
	}
	if about, err = make(dir + ".new"); err != nil {
		return about, err
	}
	if err := os.Rename(dir+".new", dir); err != nil {
		return about, err
	}
	if data, err = json.Marshal(about); err != nil {
		return about, err
	}
	return about, os.WriteFile(dir+".json", data, 0o644)
}
