package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
	"github.com/deltafs/deltafs/snapshot"
)

// target is what the argument TABLE[@VERSION] and the flags beside it name.
type target struct {
	// name is the table as the user gave it, path its local path.
	name, path string
	// version or instant, or neither for the latest version.
	version *int64
	instant *time.Time
	// shown says how data files are shown; by default as they lie in storage.
	shown snapshot.Options
}

// versionFlags choose a version where the @ suffix is unwelcome.
func versionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "version", Category: "Which version", Usage: "version `N`, as TABLE@vN", DefaultText: "the latest"},
		&cli.StringFlag{Name: "timestamp", Category: "Which version", Usage: "the version of time `T`, as TABLE@T"},
		timezoneFlag("Which version"),
	}
}

func timezoneFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "timezone", Category: category, Value: "local",
		Usage: "time `ZONE` of timestamps that name none: an IANA name, or local"}
}

func jsonFlag(what string) cli.Flag {
	return &cli.BoolFlag{Name: "json", Category: "Output", Usage: "print " + what}
}

// location is the time zone that --timezone names.
func location(c *cli.Context) (*time.Location, error) {
	name := c.String("timezone")
	if name == "local" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "" {
		return nil, usagef(c.Command, "unknown time zone %q: want an IANA name like Europe/Vienna, or local", name)
	}
	return loc, nil
}

// targetArg reads the one argument TABLE[@VERSION] and the version flags.
func targetArg(c *cli.Context) (target, error) {
	if err := exactArgs(c, 1); err != nil {
		return target{}, err
	}
	return firstTarget(c)
}

// firstTarget reads the first argument, TABLE[@VERSION], and the version flags.
func firstTarget(c *cli.Context) (target, error) {
	loc, err := location(c)
	if err != nil {
		return target{}, err
	}
	t, err := parseTarget(c.Args().First(), loc)
	if err != nil {
		return target{}, err
	}
	given := 0
	for _, set := range []bool{t.version != nil || t.instant != nil, c.IsSet("version"), c.IsSet("timestamp")} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		return target{}, usagef(c.Command, "more than one version is named")
	case c.IsSet("version"):
		v := c.Int64("version")
		if v < 0 {
			return target{}, usagef(c.Command, "%d is not a version", v)
		}
		t.version = &v
	case c.IsSet("timestamp"):
		when, err := snapshot.ParseTime(c.String("timestamp"), loc)
		if err != nil {
			return target{}, fault.Wrap(errUsage, err, "--timestamp %q", c.String("timestamp")).WithHint(timestampHint)
		}
		t.instant = &when
	}
	return t, nil
}

const timestampHint = "write 2024-05-01, or 2024-05-01T10:00:00Z"

// parseTarget splits the version off TABLE@v3 or TABLE@2024-05-01. A path that
// exists as it stands is never split.
func parseTarget(arg string, loc *time.Location) (target, error) {
	path, err := localPath(arg)
	if err != nil {
		return target{}, err
	}
	at := strings.LastIndexByte(path, '@')
	if at <= 0 || exists(path) {
		return target{name: arg, path: path}, nil
	}
	t := target{name: arg[:strings.LastIndexByte(arg, '@')], path: path[:at]}
	suffix := path[at+1:]
	if digits, ok := strings.CutPrefix(suffix, "v"); ok {
		if v, err := strconv.ParseInt(digits, 10, 64); err == nil && strconv.FormatInt(v, 10) == digits && v >= 0 {
			t.version = &v
			return t, nil
		}
	}
	when, err := snapshot.ParseTime(suffix, loc)
	if err != nil {
		return target{}, fault.Wrap(errUsage, err, "%q is neither a version nor a time", "@"+suffix).
			AtTable(t.name).WithHint("write %s@v3, or %s@2024-05-01", t.name, t.name)
	}
	t.instant = &when
	return t, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// localPath is the path of a path or file: URL.
func localPath(arg string) (string, error) {
	scheme, _, isURL := strings.Cut(arg, "://")
	if !isURL || strings.ContainsAny(scheme, "/.") {
		return arg, nil
	}
	if !strings.EqualFold(scheme, "file") {
		return "", fault.New(errStorage, "%s:// tables are not supported yet", scheme).
			AtTable(arg).WithHint("copy the table, with its _delta_log, to a local directory")
	}
	u, err := url.Parse(arg)
	if err != nil {
		return "", fault.Wrap(errUsage, err, "not a URL").AtTable(arg)
	}
	if u.Host != "" && u.Host != "localhost" {
		return "", fault.New(errUsage, "a file URL cannot name the host %q", u.Host).
			AtTable(arg).WithHint("write file:///path")
	}
	return u.Path, nil
}

// open opens the table.
func (t target) open(ctx context.Context) (*snapshot.Table, error) {
	info, err := os.Stat(t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(snapshot.ErrNotTable, "no such directory").AtTable(t.name)
	case err != nil:
		return nil, fault.Wrap(snapshot.ErrNotTable, err, "cannot be opened").AtTable(t.name)
	case !info.IsDir():
		return nil, fault.New(snapshot.ErrNotTable, "not a directory").AtTable(t.name).
			WithHint("name the directory that holds _delta_log")
	}
	abs, err := filepath.Abs(t.path)
	if err != nil {
		return nil, err
	}
	st, err := store.OpenLocal(abs)
	if err != nil {
		return nil, err
	}
	o := t.shown
	o.Name = t.name
	return snapshot.Open(ctx, st, o)
}

// snapshot opens the table at the version that the target names.
func (t target) snapshot(ctx context.Context) (*snapshot.Table, *snapshot.Snapshot, error) {
	table, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := t.at(ctx, table)
	if err != nil {
		table.Close()
		return nil, nil, err
	}
	return table, s, nil
}

func (t target) at(ctx context.Context, table *snapshot.Table) (*snapshot.Snapshot, error) {
	version := table.Latest()
	switch {
	case t.version != nil:
		version = *t.version
	case t.instant != nil:
		var err error
		if version, err = table.VersionAsOf(ctx, *t.instant); err != nil {
			return nil, err
		}
	}
	return table.At(ctx, version)
}
