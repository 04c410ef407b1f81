package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func onlyFile(t *testing.T, table *Table, v int64) File {
	t.Helper()
	var out []File
	for f, err := range at(t, table, v).Files(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	if len(out) != 1 {
		t.Fatalf("version %d has %d files", v, len(out))
	}
	return out[0]
}

func TestOpenServesTheFileItself(t *testing.T) {
	f := newFixture(t).plain(addLine("d/a%20b", 5)).write("d/a b", "hello")
	table := f.open()
	r, err := table.Open(context.Background(), onlyFile(t, table, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data := make([]byte, 5)
	if _, err := r.ReadAt(data, 0); err != nil || string(data) != "hello" {
		t.Errorf("read %q, %v", data, err)
	}
	if !r.Content().Raw() || r.Content().Size != 5 || r.File() == nil {
		t.Errorf("content %+v", r.Content())
	}
}

func TestOpenFallsBackToTheRawPath(t *testing.T) {
	table := newFixture(t).plain(addLine("k=A%252FA/p", 1)).write("k=A%252FA/p", "x").open()
	r, err := table.Open(context.Background(), onlyFile(t, table, 0))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	both := newFixture(t).plain(addLine("a%20b", 7)).write("a%20b", "raw").write("a b", "decoded").open()
	r, err = both.Open(context.Background(), onlyFile(t, both, 0))
	if err != nil || r.Content().Size != 7 {
		t.Errorf("the decoded path must win: %v, %v", r, err)
	}
}

func TestOpenStaysInsideTheTable(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("s"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"../" + filepath.Base(outside) + "/secret", filepath.Join(outside, "secret"), "file://" + filepath.Join(outside, "secret"),
		"link/secret", "file.link", "s3://bucket/secret", "_delta_log/00000000000000000000.json",
		"%5Fdelta_log/00000000000000000000.json", "x/../../" + filepath.Base(outside) + "/secret",
	} {
		f := newFixture(t).plain(addLine(path, 1))
		if err := os.Symlink(outside, filepath.Join(f.dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(f.dir, "file.link")); err != nil {
			t.Fatal(err)
		}
		table := f.open()
		r, err := table.Open(context.Background(), onlyFile(t, table, 0))
		if !errors.Is(err, ErrOutside) {
			t.Errorf("%s: opened %v, %v", path, r, err)
		}
	}
}

func TestOpenServesAbsolutePathsInsideTheTable(t *testing.T) {
	f := newFixture(t)
	f.plain(addLine("file:"+f.dir+"/d/a", 1)).write("d/a", "x")
	table := f.open()
	r, err := table.Open(context.Background(), onlyFile(t, table, 0))
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestTheSizeOnDiskWins(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 100)).write("a", "hello")
	table := f.open()
	before := onlyFile(t, table, 0)
	r, err := table.Open(context.Background(), before)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if before.Size != 100 || r.Content().Size != 5 || !SizeChanged(before, r) || !r.Content().Raw() {
		t.Errorf("size %d before, content %+v", before.Size, r.Content())
	}
	after := onlyFile(t, table, 0)
	byID, err := table.FileByID(context.Background(), before.ID)
	if err != nil || after.Size != 5 || byID.Size != 5 || SizeChanged(after, r) {
		t.Errorf("size %d after, %d by id, %v", after.Size, byID.Size, err)
	}
}

func TestOpenOfAVacuumedFileSaysSo(t *testing.T) {
	now := fmt.Sprintf(`"modificationTime":%d`, time.Now().UnixMilli())
	recent := strings.Replace(addLine("a", 1), `"modificationTime":1`, now, 1)
	for name, c := range map[string]struct {
		add   string
		later []string
		hint  string
	}{
		"vacuumed": {recent, []string{removeLine("a"), `{"commitInfo":{"operation":"VACUUM END"}}`}, "vacuumed in version 2"},
		"old":      {addLine("a", 1), nil, "retention of 168h"},
		"recent":   {recent, nil, "restore the file"},
	} {
		f := newFixture(t).plain(c.add)
		for i, line := range c.later {
			f.commit(int64(i+1), line)
		}
		table := f.open()
		_, err := table.Open(context.Background(), onlyFile(t, table, 0))
		if !errors.Is(err, ErrFileGone) || !strings.Contains(err.Error(), c.hint) || !strings.Contains(err.Error(), "t@v0: a") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseInterval(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"interval 1 week":                 168 * time.Hour,
		"INTERVAL 30 days":                720 * time.Hour,
		"2 hours 30 minutes":              150 * time.Minute,
		"interval 5 milliseconds":         5 * time.Millisecond,
		"interval 1 second 1 microsecond": time.Second + time.Microsecond,
		"interval 0 hours":                0,
	} {
		if got, err := ParseInterval(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "interval", "1 month", "interval 1 year", "week", "x days", "1 day 2", "P1D"} {
		if got, err := ParseInterval(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
