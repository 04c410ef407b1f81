package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/snapshot"
)

func detailCommand() *cli.Command {
	return &cli.Command{
		Name:      "detail",
		Usage:     "Describe a table: location, size, properties, protocol",
		ArgsUsage: "TABLE[@VERSION]",
		Description: `Prints what DESCRIBE DETAIL does, of the latest version or the one named.

Examples:
  deltafs detail sales
  deltafs detail sales@v3 --json
  deltafs detail sales --timestamp 2024-05-01`,
		Flags:  append([]cli.Flag{jsonFlag("one JSON object")}, versionFlags()...),
		Action: showDetail,
	}
}

func showDetail(c *cli.Context) error {
	t, err := targetArg(c)
	if err != nil {
		return err
	}
	table, s, err := t.snapshot(c.Context)
	if err != nil {
		return err
	}
	defer table.Close()
	d, err := s.Detail(c.Context)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, d)
	}
	out := newColumns(c.App.Writer, "KEY", "VALUE")
	for _, row := range detailRows(d) {
		if err := out.row(row[0], cell(row[1], 1000)); err != nil {
			return err
		}
	}
	return out.flush()
}

func detailRows(d snapshot.Detail) [][2]string {
	rows := [][2]string{
		{"location", d.Location},
		{"version", strconv.FormatInt(d.Version, 10)},
		{"format", d.Format},
		{"id", d.ID},
		{"name", text(d.Name)},
		{"description", text(d.Description)},
		{"created", timeText(d.CreatedAt)},
		{"modified", timeText(d.LastModified)},
		{"partition columns", strings.Join(d.PartitionColumns, ", ")},
		{"clustering columns", strings.Join(d.ClusteringColumns, ", ")},
		{"files", strconv.FormatInt(d.NumFiles, 10)},
		{"size", strconv.FormatInt(d.SizeInBytes, 10) + " bytes"},
		{"protocol", "reader " + strconv.Itoa(d.MinReaderVersion) + ", writer " + strconv.Itoa(d.MinWriterVersion)},
		{"features", strings.Join(d.TableFeatures, ", ")},
	}
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		rows = append(rows, [2]string{"property " + key, d.Properties[key]})
	}
	return rows
}

// text is a value for people, "-" if there is none.
func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// timeText is a time as @<time> links spell it, but with colons.
func timeText(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
