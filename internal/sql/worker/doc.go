// Package worker is the SQL engine's side of package sql: the child process that
// holds DuckDB. Only the command line imports it.
//
// It makes statements from a [sql.Query] itself. A column's vectors are read as
// the file has them, and written as text of the wanted type by package rowtext;
// the engine casts only where it writes Parquet. A file whose columns cannot be
// shown exactly as the wanted types is refused by the column's name.
//
// The engine is locked before the first query: it opens nothing but descriptors
// of this process, loads no extension, and its settings cannot be changed. Each
// query has its own connection and goroutines; a query whose peer has hung up is
// interrupted.
package worker
