// Command deltafs mounts Delta Lake tables as versioned directories and tells
// what is in them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	os.Exit(run(context.Background(), os.Args, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	args, err := normalize(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err != nil && !silent(err) {
		fmt.Fprintf(stderr, "deltafs: %s\n", oneLine(err))
	}
	return exitCode(err)
}

// oneLine is the error's text without line breaks: one failure, one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
