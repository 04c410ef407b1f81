package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
)

const allowPathName = "allow-path"

// pathList is a flag that may be given several times. A path may hold a comma.
type pathList []string

// Set implements cli.Generic.
func (p *pathList) Set(path string) error {
	*p = append(*p, path)
	return nil
}

// String implements cli.Generic.
func (p *pathList) String() string { return strings.Join(*p, " ") }

func allowPathFlag(category string) cli.Flag {
	return &cli.GenericFlag{Name: allowPathName, Category: category, Value: &pathList{},
		Usage: "show files outside the table (of a shallow clone) that lie below `DIR`; may be repeated"}
}

// allowedPaths returns the directories of --allow-path, by absolute paths.
func allowedPaths(c *cli.Context) ([]string, error) {
	list, ok := c.Generic(allowPathName).(*pathList)
	if !ok {
		return nil, nil
	}
	var out []string
	for _, path := range *list {
		if path == "" {
			return nil, usagef(c.Command, "--%s needs a directory", allowPathName)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, usagef(c.Command, "--%s %q: no such directory", allowPathName, path)
		}
		out = append(out, abs)
	}
	return out, nil
}
