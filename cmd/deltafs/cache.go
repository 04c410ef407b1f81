package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/metacache"
)

// errDamagedCache: a part of the cache cannot be used.
var errDamagedCache = errors.New("damaged cache")

func cacheCommand() *cli.Command {
	const category = "Cache"
	return &cli.Command{
		Name:      "cache",
		Usage:     "Look at the metadata cache, or clear it",
		ArgsUsage: "ls|clear|verify [TABLE]",
		Description: `Mounts keep which files the versions of large tables have, so that the next
mount need not read that from the log again. Deleting it costs time only. What
is damaged, or no longer fits the table, is dropped and made anew.

Examples:
  deltafs cache ls
  deltafs cache verify sales
  deltafs cache clear`,
		Action: noSubcommand,
		Subcommands: []*cli.Command{{
			Name:      "ls",
			Usage:     "List the tables in the cache",
			ArgsUsage: "[TABLE]",
			Description: `Prints for each table, or for the one named, what it takes on disk, which
versions are kept, when it was last used, and the process that uses it.

Example:
  deltafs cache ls --json | jq -s 'map(.bytes) | add'`,
			Flags:  []cli.Flag{jsonFlag("one JSON object a line"), cacheDirFlag(category)},
			Action: listCache,
		}, {
			Name:      "clear",
			Usage:     "Delete the cache, or a table's part of it",
			ArgsUsage: "[TABLE]",
			Description: `Deletes what is kept of all tables, and what was rendered of their data files, or
what is kept of the one named. What a mount uses is left alone, and its process
named.

Example:
  deltafs cache clear sales`,
			Flags:  []cli.Flag{jsonFlag("one JSON object a line"), cacheDirFlag(category)},
			Action: clearCache,
		}, {
			Name:      "verify",
			Usage:     "Read and check the whole cache",
			ArgsUsage: "[TABLE]",
			Description: `Reads every byte that is kept, of all tables or of the one named, and says what
is damaged. It deletes nothing. The exit code is 1 if anything is damaged.

Example:
  deltafs cache verify --cache-dir /var/cache/deltafs`,
			Flags:  []cli.Flag{jsonFlag("one JSON object a line"), cacheDirFlag(category)},
			Action: verifyCache,
		}},
	}
}

func noSubcommand(c *cli.Context) error {
	if c.NArg() > 0 {
		return usagef(c.Command, "unknown command %q", "cache "+c.Args().First())
	}
	return usagef(c.Command, "%s takes %s", c.Command.Name, c.Command.ArgsUsage)
}

// cacheArg opens the cache and reads the argument TABLE, "" for all tables.
func cacheArg(c *cli.Context) (cache *metacache.Cache, root string, err error) {
	if c.NArg() > 1 {
		return nil, "", exactArgs(c, 1)
	}
	dir, err := cacheDir(c)
	if err != nil {
		return nil, "", err
	}
	cache = metacache.OpenCache(metacache.CacheOptions{Dir: dir})
	if c.NArg() == 0 {
		return cache, "", nil
	}
	path, err := localPath(c.Args().First())
	if err != nil {
		return nil, "", err
	}
	root, err = filepath.Abs(path)
	return cache, root, err
}

// cachedTable is the JSON form of a table in the cache.
type cachedTable struct {
	Table string       `json:"table"`
	Path  string       `json:"path"`
	Bytes int64        `json:"bytes"`
	Slots []cachedSlot `json:"slots"`
}

type cachedSlot struct {
	Path     string      `json:"path"`
	Bytes    int64       `json:"bytes"`
	Used     string      `json:"used"`
	PID      int         `json:"pid,omitzero"`
	Versions []cachedRun `json:"versions"`
}

type cachedRun struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Files int64  `json:"files"`
	Error string `json:"error,omitzero"`
}

func listCache(c *cli.Context) error {
	cache, root, err := cacheArg(c)
	if err != nil {
		return err
	}
	tables, err := cache.Tables(c.Context, root)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		for _, t := range tables {
			if err := writeJSON(c.App.Writer, tableLine(t)); err != nil {
				return err
			}
		}
		return nil
	}
	out := newColumns(c.App.Writer, ">SIZE", ">FILES", "VERSIONS", "LAST USED", "IN USE BY", "TABLE")
	for _, t := range tables {
		for _, s := range t.Slots {
			if err := out.row(slotRow(t, s)...); err != nil {
				return err
			}
		}
	}
	return out.flush()
}

func tableLine(t metacache.CachedTable) cachedTable {
	out := cachedTable{Table: t.Table, Path: t.Dir, Slots: []cachedSlot{}}
	for _, s := range t.Slots {
		out.Bytes += s.Bytes
		slot := cachedSlot{Path: s.Dir, Bytes: s.Bytes, Used: timeText(&s.Used), PID: s.PID, Versions: []cachedRun{}}
		for _, r := range s.Runs {
			run := cachedRun{First: r.Versions.First, Last: r.Versions.Last, Files: r.Files}
			if r.Err != nil {
				run.Error = r.Err.Error()
			}
			slot.Versions = append(slot.Versions, run)
		}
		out.Slots = append(out.Slots, slot)
	}
	return out
}

func slotRow(t metacache.CachedTable, s metacache.CachedSlot) []string {
	var versions []string
	var files int64
	for _, r := range s.Runs {
		files = max(files, r.Files)
		switch {
		case r.Err != nil:
			versions = append(versions, "damaged")
		case r.Versions.First == r.Versions.Last:
			versions = append(versions, fmt.Sprint(r.Versions.First))
		default:
			versions = append(versions, fmt.Sprintf("%d-%d", r.Versions.First, r.Versions.Last))
		}
	}
	user := "-"
	if s.PID != 0 {
		user = fmt.Sprintf("pid %d", s.PID)
	}
	if len(versions) == 0 {
		versions = []string{"-"}
	}
	name := printable(t.Table, 4096)
	if name == "" {
		name = "?"
	}
	return []string{
		strconv.FormatInt(s.Bytes, 10), strconv.FormatInt(files, 10), strings.Join(versions, " "),
		timeText(&s.Used), user, name,
	}
}

// clearedSlot is the JSON form of a slot that was to be deleted.
type clearedSlot struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	// PID is the process for which it was left as it is.
	PID     int  `json:"pid,omitzero"`
	Cleared bool `json:"cleared"`
}

func clearCache(c *cli.Context) error {
	cache, root, err := cacheArg(c)
	if err != nil {
		return err
	}
	cleared, busy, err := cache.Clear(c.Context, root)
	if root == "" {
		rendered, freed, failed := clearRendered(c)
		err = errors.Join(err, failed)
		if freed > 0 {
			cleared = append(cleared, metacache.CachedSlot{Dir: rendered, Bytes: freed})
		}
	}
	if c.Bool("json") {
		for i, s := range append(cleared, busy...) {
			line := clearedSlot{Path: s.Dir, Bytes: s.Bytes, PID: s.PID, Cleared: i < len(cleared)}
			if err := writeJSON(c.App.Writer, line); err != nil {
				return err
			}
		}
		return err
	}
	var bytes int64
	for _, s := range cleared {
		bytes += s.Bytes
	}
	fmt.Fprintf(c.App.Writer, "%d bytes freed\n", bytes)
	for _, s := range busy {
		fmt.Fprintf(c.App.Writer, "%s is in use by pid %d\n", s.Dir, s.PID)
	}
	return err
}

// clearRendered deletes what was rendered of the data files of all tables.
func clearRendered(c *cli.Context) (dir string, freed int64, err error) {
	if dir, err = cacheDir(c); err != nil {
		return "", 0, err
	}
	dir = filepath.Join(dir, renderedDir)
	freed, err = rendercache.Clear(dir)
	return dir, freed, err
}

// verifiedRun is the JSON form of a run that was checked.
type verifiedRun struct {
	Table string `json:"table"`
	Path  string `json:"path"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Files int64  `json:"files"`
	Error string `json:"error,omitzero"`
}

func verifyCache(c *cli.Context) error {
	cache, root, err := cacheArg(c)
	if err != nil {
		return err
	}
	tables, err := cache.Tables(c.Context, root)
	if err != nil {
		return err
	}
	runs, damaged := 0, 0
	for _, t := range tables {
		for _, s := range t.Slots {
			for _, r := range s.Runs {
				err := cache.Verify(c.Context, r)
				if c.Context.Err() != nil {
					return c.Context.Err()
				}
				runs++
				if err != nil {
					damaged++
				}
				if err := printVerified(c, t, r, err); err != nil {
					return err
				}
			}
		}
	}
	if damaged > 0 {
		return fault.New(errDamagedCache, "%d of %d cached runs of versions are damaged", damaged, runs).
			WithHint("they are made anew when a mount next uses the table; to delete them now: deltafs cache clear")
	}
	return nil
}

func printVerified(c *cli.Context, t metacache.CachedTable, r metacache.CachedRun, failure error) error {
	line := verifiedRun{
		Table: t.Table, Path: r.Dir, First: r.Versions.First, Last: r.Versions.Last, Files: r.Files,
	}
	if failure != nil {
		line.Error = failure.Error()
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, line)
	}
	results := []string{fmt.Sprintf("ok, versions %d to %d", line.First, line.Last)}
	if failure != nil {
		results = strings.Split(line.Error, "\n")
	}
	var err error
	for _, result := range results {
		_, failed := fmt.Fprintf(c.App.Writer, "%s: %s\n", line.Path, printable(result, 4096))
		err = errors.Join(err, failed)
	}
	return err
}
