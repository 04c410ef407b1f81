package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// What an event says that a process did or saw.
const (
	opAdd     = "add"     // made File under Name; Old is the file it replaced
	opRemove  = "remove"  // unlinked or removed File, which had Name
	opRefused = "refused" // was refused a file that is not one, as it should be
	opSample  = "sample"  // saw Version with the fingerprint Print
	opMissing = "missing" // listed Name in current/ and could not open it: it was not there
	opPartial = "partial" // listed Name in current/ and read what is not a whole file: Text
	opListing = "listing" // found Names in the directory Name of current/
	opRead    = "read"    // read Count files in current/
	opFinding = "finding" // saw what must not be: Text
)

// event is a line of a process's report. An add or a remove is written when it
// was reported as done, and only then.
type event struct {
	Who     string    `json:"who"`
	Op      string    `json:"op"`
	Name    string    `json:"name,omitempty"`
	Names   []string  `json:"names,omitempty"`
	File    int64     `json:"file,omitempty"`
	Old     int64     `json:"old,omitempty"`
	Version int64     `json:"version,omitempty"`
	Print   string    `json:"print,omitempty"`
	Count   int       `json:"count,omitempty"`
	Text    string    `json:"text,omitempty"`
	Start   time.Time `json:"start"`
	End     time.Time `json:"end"`
}

// eventLog is the report of one process.
type eventLog struct {
	who  string
	file *os.File
}

func newEventLog(dir, who string) (*eventLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, who+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return &eventLog{who, f}, err
}

// write adds a line at once. A report that cannot be written ends the process:
// the soak would prove nothing.
func (l *eventLog) write(e event) {
	e.Who = l.who
	if e.End.IsZero() {
		e.End = time.Now()
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// eventReader follows the reports of all processes.
type eventReader struct {
	dir  string
	read map[string]int64
}

// next returns the events since the last call.
func (r *eventReader) next() ([]event, error) {
	paths, err := filepath.Glob(filepath.Join(r.dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []event
	for _, p := range paths {
		events, err := r.follow(p)
		if err != nil {
			return nil, err
		}
		out = append(out, events...)
	}
	return out, nil
}

func (r *eventReader) follow(path string) ([]event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(r.read[path], io.SeekStart); err != nil {
		return nil, err
	}
	var out []event
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // what is there of a line comes again, whole
		}
		if err != nil {
			return nil, err
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		r.read[path] += int64(len(line))
		out = append(out, e)
	}
}
