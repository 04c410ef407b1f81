package main

import (
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/fsnode"
)

// mountOptions turns the flags of mount into options of the file system.
func mountOptions(c *cli.Context) (fsnode.Options, error) {
	o := fsnode.Options{
		ReadOnly:   c.Bool("read-only"),
		AppendOnly: c.Bool("append-only"),
		AllowOther: c.Bool("allow-other"),
		Grace:      c.Duration("grace"),
		Refresh:    c.Duration("refresh"),
		EngineInfo: engineInfo(),
	}
	if o.Grace < 0 {
		return o, usagef(c.Command, "--grace cannot be negative")
	}
	if o.Refresh <= 0 {
		return o, usagef(c.Command, "--refresh must be positive")
	}
	shown, err := shownAs(c)
	if err != nil {
		return o, err
	}
	o.View, o.FillPartitions, o.AllowPaths = shown.View, shown.FillPartitions, shown.AllowPaths
	o.ListVersions, _ = c.Generic("list-versions").(*fsnode.ListVersions)
	if o.Location, err = location(c); err != nil {
		return o, err
	}
	for flag, field := range map[string]**uint32{"uid": &o.UID, "gid": &o.GID} {
		if *field, err = number(c, flag, 10, 1<<32-2); err != nil {
			return o, err
		}
	}
	for flag, field := range map[string]**uint32{"file-mode": &o.FileMode, "dir-mode": &o.DirMode} {
		if *field, err = number(c, flag, 8, 0o777); err != nil {
			return o, err
		}
	}
	return o, nil
}

// number reads a flag as a number from 0 to limit; nil if it was not given.
func number(c *cli.Context, flag string, base int, limit uint64) (*uint32, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	n, err := strconv.ParseUint(c.String(flag), base, 32)
	if err != nil || n > limit {
		kind := "a decimal"
		if base == 8 {
			kind = "an octal"
		}
		return nil, usagef(c.Command, "--%s %q: want %s number up to %s", flag, c.String(flag), kind, strconv.FormatUint(limit, base))
	}
	v := uint32(n)
	return &v, nil
}
