package snapshot

import (
	"path"
	"strings"
	"testing"
	"time"
)

func TestVisibleName(t *testing.T) {
	long := strings.Repeat("n", 255)
	for _, c := range []struct {
		tag, path, want string
	}{
		{"", "d=1/part-0.parquet", "part-0.parquet"},
		{"sales.parquet", "d=1/part-0.parquet", "sales.parquet"},
		{long, "part-0.parquet", long},
		{long + "x", "part-0.parquet", "part-0.parquet"},
		{"a/b", "part-0.parquet", "part-0.parquet"},
		{"..", "part-0.parquet", "part-0.parquet"},
		{".", "part-0.parquet", "part-0.parquet"},
		{"a\x00b", "part-0.parquet", "part-0.parquet"},
		{"_delta_log", "part-0.parquet", "part-0.parquet"},
		{"", "..", "file~"},
		{"", "x/a\x00b.parquet", "a_b~"},
		{"", "x/_delta_log", "file~"},
		{"", "x/" + long + "y.parquet", "nnn"},
	} {
		got := visibleName(c.tag, path.Base(c.path), c.path)
		exact := !strings.HasSuffix(c.want, "~") && c.want != "nnn"
		if exact && got != c.want || !strings.HasPrefix(got, c.want) || !saneName(got) {
			t.Errorf("tag %q, path %q: %q, want %q", c.tag, c.path, got, c.want)
		}
	}
	a := visibleName("", long+"1.parquet", "x/"+long+"1.parquet")
	b := visibleName("", long+"2.parquet", "x/"+long+"2.parquet")
	if a == b || !strings.HasSuffix(a, ".parquet") {
		t.Errorf("long names become %q and %q", a, b)
	}
}

func TestCollisionNameIsReversible(t *testing.T) {
	for _, name := range []string{
		"a.parquet", "a", ".hidden", "a.tar.gz", "a~12345678.parquet", strings.Repeat("n", 250) + ".txt",
		strings.Repeat("ü", 120) + ".parquet", "x.averyveryverylongextension",
	} {
		shown := collisionName(name, "some/path")
		if len(shown) > 255 || !saneName(shown) {
			t.Errorf("%q is shown as %q", name, shown)
		}
		stem, hash, ext, cut, ok := splitCollisionName(shown)
		if !ok || hash != shortHash("some/path", collisionHash) {
			t.Errorf("%q does not split: %q %q", shown, stem, hash)
		}
		if stem+ext != name && !(cut && strings.HasPrefix(name, stem) && strings.HasSuffix(name, ext)) {
			t.Errorf("%q splits into %q and %q", shown, stem, ext)
		}
	}
	if shown := collisionName("name.parquet", "p"); !strings.HasPrefix(shown, "name~") || !strings.HasSuffix(shown, ".parquet") {
		t.Errorf("shown as %q", shown)
	}
}

func TestModTimePrefersTheWritersTime(t *testing.T) {
	written := time.Date(2023, 1, 2, 3, 4, 5, 123456789, time.UTC)
	if got := modTime(1700000000123, "2023-01-02T03:04:05.123456789Z"); got != written.UnixMilli() {
		t.Errorf("mtime %v", got)
	}
	if got := modTime(1700000000123, "yesterday"); got != 1700000000123 {
		t.Errorf("mtime %v", got)
	}
}
