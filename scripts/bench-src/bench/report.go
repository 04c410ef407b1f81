package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// unit is what a value counts, and whether more of it is better.
type unit struct {
	name       string
	moreBetter bool
}

var (
	milliseconds = unit{"ms", false}
	megabytes    = unit{"MB", false}
	mbPerSecond  = unit{"MB/s", true}
	perSecond    = unit{"/s", true}
)

// line is one line of the table: ours beside a peer's.
type line struct {
	row, what    string
	unit         unit
	ours         float64
	peer         string
	theirs       float64
	incomparable bool
}

// report collects lines.
type report struct {
	// row is the name of the row that adds lines.
	row   string
	lines []line
	notes []string
}

// add adds a line whose last column says how many times better deltafs is.
func (r *report) add(what string, u unit, ours float64, peer string, theirs float64) {
	r.lines = append(r.lines, line{row: r.row, what: what, unit: u, ours: ours, peer: peer, theirs: theirs})
}

// inform adds a line whose peer does something else or less, without a ratio.
func (r *report) inform(what string, u unit, ours float64, peer string, theirs float64) {
	r.add(what, u, ours, peer, theirs)
	r.lines[len(r.lines)-1].incomparable = true
}

// alone adds a line without a peer.
func (r *report) alone(what string, u unit, ours float64) {
	r.inform(what, u, ours, "", 0)
}

// note adds a sentence below the table.
func (r *report) note(format string, args ...any) {
	note := r.row + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(r.notes, note) {
		r.notes = append(r.notes, note)
	}
}

func (r *report) markdown() string {
	var s strings.Builder
	s.WriteString("| row | measured | deltafs | beside | | times better |\n|---|---|---:|---|---:|---:|\n")
	for _, l := range r.lines {
		theirs, ratio := "", ""
		if l.peer != "" {
			theirs = l.unit.format(l.theirs)
		}
		if !l.incomparable {
			ratio = l.ratio()
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s |\n", l.row, l.what, l.unit.format(l.ours), l.peer, theirs, ratio)
	}
	for _, n := range r.notes {
		s.WriteString("\n- " + n)
	}
	if len(r.notes) > 0 {
		s.WriteString("\n")
	}
	return s.String()
}

func (l line) ratio() string {
	better, worse := l.theirs, l.ours
	if l.unit.moreBetter {
		better, worse = worse, better
	}
	if worse == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", better/worse)
}

func (u unit) format(v float64) string {
	switch {
	case u == milliseconds && v >= 1000:
		return fmt.Sprintf("%.2f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, u.name)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, u.name)
	default:
		return fmt.Sprintf("%.2f %s", v, u.name)
	}
}

// What stands between these is replaced by --write.
const (
	beginMarker = "<!-- begin: made by scripts/bench -->\n"
	endMarker   = "<!-- end: made by scripts/bench -->"
)

func putBetweenMarkers(path, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(data), beginMarker)
	_, after, ended := strings.Cut(rest, endMarker)
	if !found || !ended {
		return fmt.Errorf("%s lacks the lines %q and %q", path, strings.TrimSpace(beginMarker), endMarker)
	}
	return os.WriteFile(path, []byte(before+beginMarker+"\n"+text+"\n"+endMarker+after), 0o644)
}
