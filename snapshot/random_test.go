package snapshot

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestRandomHistoriesMatchPlainReplay compares every version, asked for in any
// order, with a model: whatever mixture of commits, checkpoints and versions
// at hand a version is built from, it must be the same.
func TestRandomHistoriesMatchPlainReplay(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			f, model := randomHistory(t, rng)
			table := f.open()
			for i, v := range rng.Perm(len(model)) {
				if i%7 == 0 {
					refresh(t, table)
				}
				if model[v] == "gone" {
					continue
				}
				wantPaths(t, table, int64(v), model[v])
			}
		})
	}
}

// randomHistory writes a log and returns the paths of each version, "gone"
// for those before the first that can be rebuilt.
func randomHistory(t *testing.T, rng *rand.Rand) (*fixture, []string) {
	f := newFixture(t)
	live := map[string]bool{}
	var model []string
	newest := int64(-1)
	for v := range int64(40) {
		var lines []string
		if v == 0 {
			lines = append(lines, protocolLine, metadataLine(""))
		}
		for range rng.IntN(4) {
			path := fmt.Sprint("f", rng.IntN(12))
			if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, `"`+path+`"`) }) {
				continue
			}
			if live[path] && rng.IntN(3) > 0 {
				lines = append(lines, removeLine(path))
				delete(live, path)
			} else {
				lines = append(lines, addLine(path, int(v)+1))
				live[path] = true
			}
		}
		lines = append(lines, `{"commitInfo":{}}`)
		rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		f.commit(v, lines...)
		if rng.IntN(6) == 0 {
			writeCheckpoint(t, f, v, randomCheckpoint(rng, live)...)
			newest = v
		}
		model = append(model, strings.Join(slices.Sorted(maps.Keys(live)), " "))
	}
	if newest > 0 && rng.IntN(2) == 0 {
		for v := range newest {
			f.remove(CommitName(v))
			// Checkpoints of before may stay, and are then versions.
			if !f.exists(checkpointName(v)) {
				model[v] = "gone"
			}
		}
	}
	return f, model
}

func randomCheckpoint(rng *rand.Rand, live map[string]bool) []checkpointRow {
	rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}, {Remove: &removeRow{"f0"}}}
	for path := range live {
		rows = append(rows, checkpointRow{Add: plainAdd(path)})
	}
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}
