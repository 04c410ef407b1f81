package main

import (
	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// viewFlags say how data files are shown.
func viewFlags(category string) []cli.Flag {
	view := viewFlag(snapshot.ViewTable)
	return []cli.Flag{
		&cli.GenericFlag{Name: "view", Category: category, Value: &view,
			Usage: "show data files as `HOW`: table, with the rows, names and types of the table, or raw, as they lie in storage"},
		&cli.BoolFlag{Name: "fill-partitions", Category: category, Usage: "give data files the partition columns too"},
	}
}

// shownAs reads those flags, and --allow-path.
func shownAs(c *cli.Context) (o snapshot.Options, err error) {
	o.View, o.FillPartitions = snapshot.ViewTable, c.Bool("fill-partitions")
	if view, ok := c.Generic("view").(*viewFlag); ok {
		o.View = snapshot.View(*view)
	}
	if o.FillPartitions && o.View == snapshot.ViewRaw {
		return o, usagef(c.Command, "--fill-partitions does nothing with --view raw")
	}
	o.AllowPaths, err = allowedPaths(c)
	return o, err
}

// viewFlag is a flag.Value.
type viewFlag snapshot.View

const (
	viewTable = "table"
	viewRaw   = "raw"
)

// Set reads one of the names.
func (v *viewFlag) Set(s string) error {
	switch s {
	case viewTable:
		*v = viewFlag(snapshot.ViewTable)
	case viewRaw:
		*v = viewFlag(snapshot.ViewRaw)
	default:
		return fault.New(errUsage, "%q is neither %s nor %s", s, viewTable, viewRaw)
	}
	return nil
}

// String is the inverse of Set.
func (v *viewFlag) String() string {
	if *v == viewFlag(snapshot.ViewRaw) {
		return viewRaw
	}
	return viewTable
}
