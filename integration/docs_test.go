package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	claimed = regexp.MustCompile("`((?:Test|test_)[A-Za-z0-9_]+)`")
	defined = regexp.MustCompile(`(?m)^(?:func|def) ((?:Test|test_)[A-Za-z0-9_]+)\(`)
)

// TestSemanticsNamesExistingTests checks that every claim in docs/SEMANTICS.md
// names a test, and that each named test exists.
func TestSemanticsNamesExistingTests(t *testing.T) {
	data, err := os.ReadFile("../docs/SEMANTICS.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := definedTests(t)
	claims := 0
	for _, section := range strings.Split(string(data), "\n## ")[1:] {
		for _, claim := range strings.Split(section, "\n- ")[1:] {
			claims++
			names := claimed.FindAllStringSubmatch(claim, -1)
			if len(names) == 0 {
				t.Errorf("names no test: %s", claim)
			}
			for _, n := range names {
				if !exists[n[1]] {
					t.Errorf("%s does not exist: %s", n[1], claim)
				}
			}
		}
	}
	if claims < 40 {
		t.Errorf("found only %d claims", claims)
	}
}

// definedTests finds the Go and Python tests of the whole tree.
func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && len(name) > 2 && name[0] == '.' {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".py") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range defined.FindAllSubmatch(data, -1) {
			out[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
