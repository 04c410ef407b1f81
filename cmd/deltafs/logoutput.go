package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/urfave/cli/v2"
)

// logOutput is where the log goes: standard error, or a file that can be
// opened again after it was rotated away.
type logOutput struct {
	logger *slog.Logger
	path   string // "" is standard error

	mu   sync.Mutex // guards file and w
	file *os.File   // nil without a path
	w    io.Writer
}

// newLogOutput reads the flags; nothing is opened yet.
func newLogOutput(c *cli.Context) (*logOutput, error) {
	o := &logOutput{w: c.App.ErrWriter}
	if path := c.Path("log-file"); path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		o.path = abs
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.String("log-level"))); err != nil {
		return nil, usagef(c.Command, "--log-level %q: want debug, info, warn or error", c.String("log-level"))
	}
	options := &slog.HandlerOptions{Level: level}
	switch format := c.String("log-format"); format {
	case "text":
		o.logger = slog.New(slog.NewTextHandler(o, options))
	case "json":
		o.logger = slog.New(slog.NewJSONHandler(o, options))
	default:
		return nil, usagef(c.Command, "--log-format %q: want text or json", format)
	}
	return o, nil
}

// Write implements io.Writer.
func (o *logOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

func (o *logOutput) open() error {
	if o.path == "" {
		return nil
	}
	f, err := os.OpenFile(o.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("the log file cannot be opened: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
	o.file, o.w = f, f
	return nil
}

// reopen goes on in a new file under the old name.
func (o *logOutput) reopen() error { return o.open() }

func (o *logOutput) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil {
		o.file.Close()
	}
}
