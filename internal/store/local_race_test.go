package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const (
	raceEnv     = "DELTAFS_STORE_RACE"
	raceNames   = 60
	raceWriters = 8
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(raceEnv); spec != "" {
		raceChild(spec)
		return
	}
	os.Exit(m.Run())
}

// raceChild is one of the racing processes. It tries all names and prints
// those that it won.
func raceChild(spec string) {
	id, dir, _ := strings.Cut(spec, ":")
	l, err := OpenLocal(dir)
	for i := 0; i < raceNames && err == nil; i++ {
		var outcome Outcome
		outcome, err = l.PutIfAbsent(context.Background(), raceName(i), raceContent(id, i))
		switch outcome {
		case Won:
			fmt.Println(i)
		case Unsure:
			err = errors.Join(err, fmt.Errorf("unsure of %d", i))
		}
	}
	if err != nil {
		fmt.Println(err)
	}
}

func raceName(i int) string { return fmt.Sprintf("log/%020d.json", i) }

// raceContent is long enough to take several writes if it were not put whole.
func raceContent(id string, i int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%s %d\n", id, i), 20_000)
}

// TestOneWriterWinsEachName races processes for the same names, and reads
// beside them: each name has one winner, and nobody sees a part of a file.
func TestOneWriterWinsEachName(t *testing.T) {
	l, dir := open(t)
	winners := make([][]string, raceNames)
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range raceWriters {
		writers.Go(func() {
			id := fmt.Sprint("writer", w)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), raceEnv+"="+id+":"+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, line := range strings.Fields(string(out)) {
				var i int
				if _, err := fmt.Sscan(line, &i); err != nil {
					t.Errorf("%s: %s", id, out)
					return
				}
				winners[i] = append(winners[i], id)
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for i := 0; ; i = (i + 1) % raceNames {
			select {
			case <-stop:
				return
			default:
				checkWhole(t, l, i)
			}
		}
	})
	writers.Wait()
	close(stop)
	readers.Wait()
	for i, ids := range winners {
		if len(ids) != 1 {
			t.Errorf("%d was won by %q", i, ids)
			continue
		}
		if got := checkWhole(t, l, i); got != ids[0] {
			t.Errorf("%d was won by %s and holds the content of %q", i, ids[0], got)
		}
	}
	checkNoTemp(t, l.Path("log"))
}

// checkWhole returns whose content a name holds, "" if it is not there yet.
func checkWhole(t *testing.T, l *Local, i int) string {
	o, err := l.Open(context.Background(), raceName(i))
	if errors.Is(err, ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	defer o.Close()
	text, err := io.ReadAll(io.NewSectionReader(o, 0, o.Info().Size))
	id, _, _ := strings.Cut(string(text), " ")
	if err != nil || !bytes.Equal(text, raceContent(id, i)) {
		t.Errorf("%s holds %d bytes, a part of what %q wrote: %v", raceName(i), len(text), id, err)
	}
	return id
}
