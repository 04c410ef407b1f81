package writer

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/deltafs/deltafs/snapshot"
	"github.com/google/uuid"
)

const dataName = `part-00000-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.c000`

func TestDataPathNamesTheCodec(t *testing.T) {
	for codec, suffix := range map[string]string{
		"SNAPPY": ".snappy", "snappy": ".snappy", "GZIP": ".gz", "ZSTD": ".zstd", "LZ4_RAW": ".lz4raw",
		"UNCOMPRESSED": "", "": "", "../x": "",
	} {
		disk, addPath := dataPath("", uuid.NewString(), nil, codec)
		want := "^" + dataName + regexp.QuoteMeta(suffix) + `\.parquet$`
		if !regexp.MustCompile(want).MatchString(disk) || addPath != disk {
			t.Errorf("codec %q: %q and %q, want %s", codec, disk, addPath, want)
		}
	}
}

// The values that other writers are known to have encoded once too often or
// once too little.
func TestDataPathOfPartitionValues(t *testing.T) {
	tests := []struct{ column, value, disk, path string }{
		{"k", "a b/c=d%e", "k=a b%2Fc%3Dd%25e", "k=a%20b%252Fc%253Dd%2525e"},
		{"region", "US/East", "region=US%2FEast", "region=US%252FEast"},
		{"k", "A/A", "k=A%2FA", "k=A%252FA"},
		{"k", "B B", "k=B B", "k=B%20B"},
		{"k", "R&D", "k=R&D", "k=R&D"},
		{"k", "ID$", "k=ID$", "k=ID$"},
		{"k", "you%2Fthere", "k=you%252Fthere", "k=you%25252Fthere"},
		{"k", "2023-06-07 13:00:00", "k=2023-06-07 13%3A00%3A00", "k=2023-06-07%2013%253A00%253A00"},
		{"k", "/%20%f", "k=%2F%2520%25f", "k=%252F%252520%2525f"},
		{"k", "+ =%0", "k=+ %3D%250", "k=+%20%253D%25250"},
		{"c1+c2/c3", "a?b%c", "c1+c2%2Fc3=a%3Fb%25c", "c1+c2%252Fc3=a%253Fb%2525c"},
		{"k", "a b+c", "k=a b+c", "k=a%20b+c"},
		{"k", "😈", "k=😈", "k=😈"},
		{"k", "é\u00a0è", "k=é\u00a0è", "k=é%C2%A0è"},
		{"k", "|x|<y>`z`}", "k=|x|<y>`z`}", "k=%7Cx%7C%3Cy%3E%60z%60%7D"},
		{"k", "\xff", "k=\xff", "k=%FF"},
		{"k", "", "k=__HIVE_DEFAULT_PARTITION__", "k=__HIVE_DEFAULT_PARTITION__"},
	}
	for _, tt := range tests {
		fields := []snapshot.Field{{Name: tt.column, Type: &snapshot.Primitive{Name: "string"}}}
		dir := snapshot.PartitionDir(fields, map[string]*string{tt.column: &tt.value})
		disk, addPath := dataPath(dir, uuid.NewString(), nil, "SNAPPY")
		if got := path.Dir(disk); got != tt.disk {
			t.Errorf("%s=%q: directory %q, want %q", tt.column, tt.value, got, tt.disk)
		}
		if got := path.Dir(addPath); got != tt.path {
			t.Errorf("%s=%q: add.path in %q, want %q", tt.column, tt.value, got, tt.path)
		}
		if decoded, err := url.PathUnescape(addPath); err != nil || decoded != disk {
			t.Errorf("%q decodes to %q (%v), want %q", addPath, decoded, err, disk)
		}
		if got := snapshot.CanonicalPath(addPath, "/table"); got != disk {
			t.Errorf("readers take %q for %q, want %q", addPath, got, disk)
		}
	}
}

func TestEncodePathEncodesControlsAndSpaces(t *testing.T) {
	for disk, want := range map[string]string{
		"a\tb\x00c\x7f":       "a%09b%00c%7F",
		"a\u0085b\u2028c":     "a%C2%85b%E2%80%A8c",
		"-_.!~*'():@&=+$,;/é": "-_.!~*'():@&=+$,;/é",
	} {
		if got := encodePath(disk); got != want {
			t.Errorf("%q: %q, want %q", disk, got, want)
		}
	}
}

func TestDataPathWithRandomPrefix(t *testing.T) {
	for _, tt := range []struct {
		config map[string]string
		length int
	}{
		{map[string]string{"delta.randomizeFilePrefixes": "true"}, 2},
		{map[string]string{"delta.randomizeFilePrefixes": "TRUE", "delta.randomPrefixLength": "5"}, 5},
		{map[string]string{"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "no number"}, 2},
	} {
		disk, addPath := dataPath("k=1", uuid.NewString(), tt.config, "")
		prefix, name, _ := strings.Cut(disk, "/")
		if len(prefix) != tt.length || strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%v: prefix %q", tt.config, prefix)
		}
		if !strings.HasPrefix(name, "part-00000-") || addPath != disk {
			t.Errorf("%v: %q, %q", tt.config, disk, addPath)
		}
	}
	if disk, _ := dataPath("k=1", uuid.NewString(), map[string]string{"delta.randomizeFilePrefixes": "false"}, ""); path.Dir(disk) != "k=1" {
		t.Errorf("prefix although it is off: %q", disk)
	}
}
