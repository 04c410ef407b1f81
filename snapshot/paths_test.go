package snapshot

import (
	"errors"
	"testing"
)

func TestCanonicalPath(t *testing.T) {
	for raw, want := range map[string]string{
		"part-0.parquet":                       "part-0.parquet",
		"k=a%20b%252Fc%253Dd%2525e/p.parquet":  "k=a b%2Fc%3Dd%25e/p.parquet",
		"c2=+%20%253D%25250/p":                 "c2=+ %3D%250/p",
		"100%/p":                               "100%/p",
		"100%zz%20/p":                          "100%zz%20/p",
		"a:b.parquet":                          "a:b.parquet",
		"./x//y":                               "x/y",
		"a/../b":                               "b",
		"../b":                                 "../b",
		"a/%2e%2e/%2e%2e/b":                    "../b",
		"/abs/p":                               "/abs/p",
		"file:/abs/p":                          "/abs/p",
		"file:///abs/p":                        "/abs/p",
		"FILE://localhost/abs/p":               "/abs/p",
		"/abs/special%20p%40%23h":              "/abs/special p@#h",
		"file:///abs/special%20p%40%23h":       "/abs/special p@#h",
		"file:/lake/t/d=1/p":                   "d=1/p",
		"/lake/t/../t/p":                       "p",
		"/lake/t2/p":                           "/lake/t2/p",
		"/lake/t/../other/p":                   "/lake/other/p",
		"s3://bucket/t/a%20b":                  "s3://bucket/t/a b",
		"S3://bucket/t":                        "s3://bucket/t",
		"_delta_log/00000000000000000000.json": "_delta_log/00000000000000000000.json",
	} {
		if got := CanonicalPath(raw, "/lake/t"); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

func TestStoreNameNeverLeavesTheTable(t *testing.T) {
	for _, raw := range []string{
		"../p", "a/../../p", "..", "%2e%2e/p", "/etc/passwd", "file:///etc/passwd", "s3://b/p", "%2Fetc%2Fpasswd",
		"_delta_log/00000000000000000000.json", "./_delta_log/x", "a/../_delta_log/x", "%5Fdelta_log/x", "_delta_log",
		"file:/lake/t/_delta_log/x", "", ".", "a%00b",
	} {
		if name, err := storeName(CanonicalPath(raw, "/lake/t")); !errors.Is(err, ErrOutside) {
			t.Errorf("%q is served from %q: %v", raw, name, err)
		}
	}
	for _, raw := range []string{"a", "..a/b", "_delta_log2/p", "x/_delta_log/p", "/lake/t/p"} {
		if _, err := storeName(CanonicalPath(raw, "/lake/t")); err != nil {
			t.Errorf("%q is refused: %v", raw, err)
		}
	}
}
