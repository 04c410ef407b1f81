// Command testreport reads the output of `go test -json` and prints what a
// person wants to see: a line a package, everything a failed test said, why
// tests were skipped, and the totals. With -strict a skipped test is a failure.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
)

// event is a line of test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

type report struct {
	passed, failed, skipped int
	// output of a running test or package, by package and test.
	output map[string][]string
	skips  []string
	broken bool
}

func main() {
	strict := flag.Bool("strict", false, "a skipped test is a failure")
	flag.Parse()
	r := &report{output: map[string][]string{}}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		r.line(in.Bytes())
	}
	if err := in.Err(); err != nil {
		fmt.Println(err)
		r.broken = true
	}
	sort.Strings(r.skips)
	for _, s := range r.skips {
		fmt.Println("skipped:", s)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if r.failed > 0 || r.broken || r.passed == 0 {
		os.Exit(1)
	}
	if *strict && r.skipped > 0 {
		fmt.Println("no test may be skipped here")
		os.Exit(1)
	}
}

func (r *report) line(text []byte) {
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		fmt.Printf("%s\n", text) // what the go command itself says
		return
	}
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Print(e.Output)
	case "build-fail":
		r.broken = true
	case "pass", "fail", "skip":
		r.end(e, key)
		delete(r.output, key)
	}
}

func (r *report) end(e event, key string) {
	said := strings.Join(r.output[key], "")
	if e.Test == "" {
		r.endPackage(e, said)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		fmt.Printf("--- FAIL %s %s\n%s", e.Package, e.Test, said)
	case "skip":
		r.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, reason(said)))
	}
}

func (r *report) endPackage(e event, said string) {
	switch e.Action {
	case "fail":
		r.broken = true
		fmt.Printf("FAIL %s (%.1f s)\n%s", e.Package, e.Elapsed, said)
	case "pass":
		fmt.Printf("ok   %s (%.1f s)\n", e.Package, e.Elapsed)
	}
}

// reason is what a skipped test said, on one line.
func reason(said string) string {
	var out []string
	for _, l := range strings.Split(said, "\n") {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "---") {
			out = append(out, l)
		}
	}
	return strings.Join(out, " ")
}
