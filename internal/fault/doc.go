// Package fault is the one error type of deltafs.
//
// A user who sees a failed file operation gets an errno and nothing else, so
// everything that can be said is said in the error: which table, version,
// file and column, what was wrong, and the way out. The packages that detect
// a failure wrap one of their own sentinels in an [Error]; fsnode maps the
// sentinel to an errno and writes the rest to .delta/errors.jsonl and the log;
// cmd prints it as one line.
//
// The package knows no sentinel itself and imports nothing of the project.
package fault
