package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/writer"
)

func checkpointCommand() *cli.Command {
	return &cli.Command{
		Name:      "checkpoint",
		Usage:     "Write a checkpoint of the latest version now",
		ArgsUsage: "TABLE",
		Description: `Writes a classic checkpoint, from which every engine opens the table fast, and
deletes log files that have expired by the table's properties. A mount does so
by itself after every delta.checkpointInterval commits.

Examples:
  deltafs checkpoint sales
  deltafs checkpoint sales --json`,
		Flags:  []cli.Flag{jsonFlag("one JSON object")},
		Action: writeCheckpoint,
	}
}

// checkpointLine is the JSON form of what was done.
type checkpointLine struct {
	Version int64 `json:"version"`
	// Written is false if the version had a checkpoint; then the next three
	// are missing.
	Written         bool   `json:"written"`
	NumFiles        *int64 `json:"numFiles,omitempty"`
	NumActions      *int64 `json:"numActions,omitempty"`
	SizeInBytes     *int64 `json:"sizeInBytes,omitempty"`
	DeletedLogFiles int    `json:"deletedLogFiles"`
}

func writeCheckpoint(c *cli.Context) error {
	if err := exactArgs(c, 1); err != nil {
		return err
	}
	t := target{name: c.Args().First()}
	var err error
	if t.path, err = localPath(t.name); err != nil {
		return err
	}
	table, err := t.open(c.Context)
	if err != nil {
		return err
	}
	defer table.Close()
	r, err := writer.Checkpoint(c.Context, table, writer.Options{})
	if err != nil {
		return err
	}
	if c.Bool("json") {
		line := checkpointLine{Version: r.Version, Written: r.Written, DeletedLogFiles: r.Deleted}
		if r.Written {
			line.NumFiles, line.NumActions, line.SizeInBytes = &r.Files, &r.Actions, &r.Size
		}
		return writeJSON(c.App.Writer, line)
	}
	what := "has a checkpoint"
	if r.Written {
		what = fmt.Sprintf("checkpointed: %d files, %d bytes", r.Files, r.Size)
	}
	if r.Deleted > 0 {
		what += fmt.Sprintf("; deleted %d expired log files", r.Deleted)
	}
	_, err = fmt.Fprintf(c.App.Writer, "version %d %s\n", r.Version, what)
	return err
}
