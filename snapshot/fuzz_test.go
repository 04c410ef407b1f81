package snapshot

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/deltafs/deltafs/internal/store"
)

func FuzzParseTime(f *testing.F) {
	for _, seed := range []string{"2024-05-01T10-11-12.345Z", "20240501101112345", "GMT-2024.01.31-12.00.00", "2024-05-01 10:11:12+02:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseTime(text, time.UTC)
		if err != nil {
			return
		}
		back, err := ParseTime(FormatTime(at), time.UTC)
		if at.UTC().Year() >= 0 && at.UTC().Year() <= 9999 && (err != nil || !back.Equal(at.Truncate(time.Millisecond))) {
			t.Errorf("%q is %v, which parses back as %v, %v", text, at, back, err)
		}
	})
}

func FuzzHiveRoundTrip(f *testing.F) {
	f.Add("k", "a b/c=d%e")
	f.Fuzz(func(t *testing.T, column, value string) {
		field := Field{Name: column, Type: &Primitive{Name: "string"}}
		dir := PartitionDir([]Field{field}, map[string]*string{column: &value})
		if strings.ContainsAny(dir, "/\x00") || len(dir) > maxName || dir == "." || dir == ".." {
			t.Fatalf("%q=%q becomes %q", column, value, dir)
		}
		back, err := ParsePartition(field, dir)
		if err == nil && back != nil && *back != value {
			t.Errorf("%q=%q becomes %q, which means %q", column, value, dir, *back)
		}
	})
}

func FuzzStoreNameStaysInside(f *testing.F) {
	for _, seed := range []string{"a%2e%2e/b", "../x", "file:///lake/t/../x", "%2Fetc", "_delta_log/x", "a/./../_delta_log"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		canonical := CanonicalPath(raw, "/lake/t")
		name, err := storeName(canonical)
		if err != nil {
			return
		}
		if name != path.Clean(name) || strings.HasPrefix(name, "/") || name == ".." || strings.HasPrefix(name, "../") ||
			name == logDir || strings.HasPrefix(name, logDir+"/") {
			t.Errorf("%q is served from %q", raw, name)
		}
	})
}

func FuzzParseSchema(f *testing.F) {
	f.Add(richSchema)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchema(text)
		if err != nil {
			return
		}
		_ = s.DDL()
		out, err := s.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSchema(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if twice, err := again.JSON(); err != nil || twice != out {
			t.Errorf("%s becomes %s, %v", out, twice, err)
		}
	})
}

// FuzzCheckpoint: whatever a checkpoint holds, reading it ends, and ends with
// an error or a table.
func FuzzCheckpoint(f *testing.F) {
	rows := []checkpointRow{{Protocol: plainProtocol()}, {Metadata: plainMetadata()}, {Add: plainAdd("a")}}
	f.Add([]byte(encodeCheckpoint(f, rows...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		st, err := store.OpenLocal(newFixture(t).write(checkpointName(1), string(data)).dir)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Open(context.Background(), st, Options{})
		if err != nil {
			return
		}
		defer table.Close()
		s, err := table.At(context.Background(), 1)
		if err != nil {
			return
		}
		for _, err := range s.Files(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for range s.AllAdds(context.Background()) {
		}
	})
}
