package tables

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// generation goes up with every change to what is made, so that tables kept
// from before it are made anew.
const generation = 1

// kept is what lies beside a table, as dir.json, written last.
type kept[T any] struct {
	Generation int `json:"generation"`
	About      T   `json:"about"`
}

// Kept says whether a whole table of this generation is in dir.
func Kept(dir string) bool {
	k, err := readKept[json.RawMessage](dir)
	return err == nil && k.Generation == generation
}

func readKept[T any](dir string) (kept[T], error) {
	var k kept[T]
	data, err := os.ReadFile(dir + ".json")
	if err != nil {
		return k, err
	}
	return k, json.Unmarshal(data, &k)
}

// making makes a table in dir unless a whole one is there, and returns what is
// to be known of it.
func making[T any](dir string, make func(dir string) (T, error)) (T, error) {
	if k, err := readKept[T](dir); err == nil && k.Generation == generation {
		return k.About, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k.About, err
	}
	var about T
	for _, leftover := range []string{dir + ".json", dir, dir + ".new"} {
		if err := os.RemoveAll(leftover); err != nil {
			return about, err
		}
	}
	about, err := make(dir + ".new")
	if err != nil {
		return about, err
	}
	if err := os.Rename(dir+".new", dir); err != nil {
		return about, err
	}
	data, err := json.Marshal(kept[T]{generation, about})
	if err != nil {
		return about, err
	}
	return about, os.WriteFile(dir+".json", data, 0o644)
}
