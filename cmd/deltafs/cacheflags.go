package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/metacache"
)

// rootCacheDir is the default of --cache-dir for root.
const rootCacheDir = "/var/cache/deltafs"

func cacheDirFlag(category string) cli.Flag {
	return &cli.PathFlag{Name: "cache-dir", Category: category,
		Usage: "keep metadata of tables in `DIR`", DefaultText: "$XDG_CACHE_HOME/deltafs or ~/.cache/deltafs; " + rootCacheDir + " for root"}
}

// cacheFlags are those of a command that fills the cache.
func cacheFlags(category string) []cli.Flag {
	size := byteSize(metacache.DefaultCacheSize)
	return []cli.Flag{
		cacheDirFlag(category),
		&cli.GenericFlag{Name: "cache-size", Category: category, Value: &size,
			Usage: "take at most `SIZE` there, as 500M or 4G"},
		&cli.BoolFlag{Name: "no-disk-cache", Category: category, Usage: "keep metadata in memory alone"},
	}
}

// cacheDir is the absolute path that --cache-dir names, or its default.
func cacheDir(c *cli.Context) (string, error) {
	dir := c.Path("cache-dir")
	switch {
	case c.IsSet("cache-dir") && dir == "":
		return "", usagef(c.Command, "--cache-dir is empty")
	case dir != "":
	case os.Geteuid() == 0:
		dir = rootCacheDir
	default:
		base, err := os.UserCacheDir()
		if err != nil {
			return "", fault.Wrap(errUsage, err, "no place for a cache").WithHint("name one with --cache-dir")
		}
		dir = filepath.Join(base, "deltafs")
	}
	return filepath.Abs(dir)
}

// cacheOptions reads the flags of a command that fills the cache; nil if there
// is to be none. Where the environment names no place for it, as that of a
// service may, the command does without.
func cacheOptions(c *cli.Context) (o *metacache.CacheOptions, without, err error) {
	if c.Bool("no-disk-cache") {
		if c.IsSet("cache-dir") || c.IsSet("cache-size") {
			return nil, nil, usagef(c.Command, "--no-disk-cache excludes --cache-dir and --cache-size")
		}
		return nil, nil, nil
	}
	dir, err := cacheDir(c)
	if err != nil && !c.IsSet("cache-dir") {
		return nil, err, nil
	}
	if err != nil {
		return nil, nil, err
	}
	size, _ := c.Generic("cache-size").(*byteSize)
	return &metacache.CacheOptions{
		Dir: dir, Size: int64(*size), Floor: metacache.DefaultCacheFloor,
		MinFiles: metacache.DefaultCacheMinFiles, MinVersions: metacache.DefaultCacheMinVersions,
		Small: metacache.DefaultCacheSmall,
	}, nil, nil
}

// renderedDir is where in the directory of the cache rendered data is kept.
const renderedDir = "rendered"

func renderedSizeFlag(category string) cli.Flag {
	size := byteSize(rendercache.DefaultSize)
	return &cli.GenericFlag{Name: "render-cache-size", Category: category, Value: &size,
		Usage: "keep at most `SIZE` of what was made of data files that are not shown as they lie in storage"}
}

// renderedOptions reads the flag of a command that renders data files. Without a
// cache, what is rendered is not kept longer than the command runs.
func renderedOptions(c *cli.Context, cache *metacache.CacheOptions) rendercache.Options {
	o := rendercache.Options{Size: rendercache.DefaultSize, Floor: rendercache.DefaultFloor}
	if size, ok := c.Generic("render-cache-size").(*byteSize); ok {
		o.Size = int64(*size)
	}
	if cache != nil {
		o.Dir = filepath.Join(cache.Dir, renderedDir)
	}
	return o
}

// byteSize is a number of bytes. It is a flag.Value.
type byteSize int64

const byteUnits = "KMGT"

// Set reads a number with a unit, which is a power of 1024.
func (b *byteSize) Set(s string) error {
	digits := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	shift := 0
	if n := len(digits); n > 0 {
		if unit := strings.IndexByte(byteUnits, digits[n-1]); unit >= 0 {
			digits, shift = digits[:n-1], 10*(unit+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63-shift)
	if err != nil {
		return fault.New(errUsage, "%q is not a size", s).WithHint("write 500M or 4G")
	}
	*b = byteSize(n << shift)
	return nil
}

// String is the inverse of Set.
func (b *byteSize) String() string {
	n, unit := int64(*b), ""
	for _, u := range byteUnits {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, string(u)
	}
	return strconv.FormatInt(n, 10) + unit
}
