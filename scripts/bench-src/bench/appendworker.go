package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// appendResult is what a worker prints: milliseconds for each of its files.
type appendResult struct {
	// Whole is from open to durable, Last from the last write to durable.
	Whole, Last []float64
	// End is when the last of them was durable.
	End time.Time
}

// appendWorkerArg is the first argument of a process that is a writer.
const appendWorkerArg = "append-worker"

// runAppendWorker is the main function of a writer, with its other arguments.
func runAppendWorker(args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("a writer has 5 arguments, not %d", len(args))
	}
	files, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	fsync, err := strconv.ParseBool(args[4])
	if err != nil {
		return err
	}
	return appendWorker(args[0], args[1], args[2], files, fsync)
}

// appendWorker is the process of one writer: it says that it is ready, waits
// for a line, and writes so many files with its own names into a directory. With
// fsync, file and directory are synced, as a careful program would; without,
// close is trusted.
func appendWorker(dir, source, prefix string, files int, fsync bool) error {
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var r appendResult
	for i := range files {
		whole, last, err := appendFile(dir, fmt.Sprintf("%s-%d.parquet", prefix, i), data, fsync)
		if err != nil {
			return err
		}
		r.Whole, r.Last = append(r.Whole, whole), append(r.Last, last)
	}
	r.End = time.Now()
	return json.NewEncoder(os.Stdout).Encode(r)
}

func appendFile(dir, name string, data []byte, fsync bool) (whole, last float64, err error) {
	start := time.Now()
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return 0, 0, err
	}
	if _, err := f.Write(data); err != nil {
		return 0, 0, err
	}
	written := time.Now()
	if fsync {
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
	}
	if err := f.Close(); err != nil {
		return 0, 0, err
	}
	if fsync {
		if err := syncDir(dir); err != nil {
			return 0, 0, err
		}
	}
	return inMilliseconds(time.Since(start)), inMilliseconds(time.Since(written)), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// worker is a process that appends.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startWorker starts one and waits until it is ready.
func startWorker(dir, source, prefix string, files int, fsync bool) (*worker, error) {
	cmd := exec.Command(os.Args[0], appendWorkerArg, dir, source, prefix, fmt.Sprint(files), fmt.Sprint(fsync))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &worker{cmd, in, bufio.NewReader(out)}
	if line, err := w.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != "ready" {
		return nil, fmt.Errorf("a writer does not start: %q: %w", line, err)
	}
	return w, nil
}

func (w *worker) result() (appendResult, error) {
	var r appendResult
	err := json.NewDecoder(w.out).Decode(&r)
	if ended := w.cmd.Wait(); ended != nil {
		err = ended
	}
	return r, err
}
