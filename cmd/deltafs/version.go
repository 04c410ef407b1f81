package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/urfave/cli/v2"
)

// version is set by the linker for a release: -ldflags "-X main.version=1.2.3".
var version string

// build describes the binary.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitzero"`
	Dirty   bool   `json:"dirty,omitzero"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "Print the version of the program",
		Description: `Prints the version, the commit it was built from, the Go release and the
platform.

Example:
  deltafs version --json`,
		Flags:  []cli.Flag{jsonFlag("one JSON object")},
		Action: showVersion,
	}
}

func showVersion(c *cli.Context) error {
	if err := exactArgs(c, 0); err != nil {
		return err
	}
	b := buildInfo()
	if c.Bool("json") {
		return writeJSON(c.App.Writer, b)
	}
	_, err := fmt.Fprintln(c.App.Writer, b)
	return err
}

// String is one line for people.
func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = "commit " + b.Commit
		if b.Dirty {
			commit += " with changes"
		}
		commit += ", "
	}
	return fmt.Sprintf("deltafs %s (%s%s, %s/%s)", b.Version, commit, b.Go, b.OS, b.Arch)
}

func buildInfo() build {
	b := build{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if main := info.Main.Version; b.Version == "" && main != "(devel)" {
		b.Version = strings.TrimPrefix(main, "v")
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	return b
}

func buildVersion() string { return buildInfo().Version }

// engineInfo is what commits name as their writer.
func engineInfo() string { return "deltafs/" + buildVersion() }

// writeJSON prints v as one line. What a log holds is passed on as it is.
func writeJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v, json.Deterministic(true),
		jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}
