// Package sql asks the SQL engine, DuckDB, which runs in a child process: this
// program again, with a hidden command that package worker answers. Nothing of
// the engine is in the process that asks, which may be a mount: a crash there,
// or a query that takes too much memory, ends the queries under way with
// [ErrCrashed] and nothing else. The next query starts another child.
//
// The child gets its work through descriptor 3: for each query one end of a
// socket pair, over which the query, its files and its rows go as frames. Who
// asks closes its end to cancel. Files go as open descriptors, and the engine
// is locked so that it opens nothing else: no path, no network, no extension.
// No text of a user and no text of a log is part of a statement, but for column
// names, quoted.
//
// The child ends when descriptor 3 is closed, after it was idle for a while, or
// with its parent, however that ended. What it spills to disk lies in a
// directory that is removed with the [Engine].
//
// Bounded: a query holds in this process what the reader asks for and no more,
// as a reader that waits makes the engine wait; in the child the engine's
// memory limit holds for all queries together.
//
// Locks: Engine.mu guards its fields and is never held during I/O but for the
// start of a child.
package sql
