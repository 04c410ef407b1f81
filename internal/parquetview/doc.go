// Package parquetview shows a Parquet file as another one: with the names, types
// and order of columns that a table has, with constant columns, and without
// deleted rows.
//
// [Plan] decides everything from the footer: which bytes of the file are served
// as they lie, what the new footer says, and which column chunks have to be made
// anew (package parquetchunk) when one of their bytes is first read. The same
// input always gives the same plan, byte for byte, so a size that was promised
// can be promised again without having been remembered.
//
// A file that has what is wanted already is served as it is, unless its key-value
// metadata makes readers see other names or types (ARROW:schema, pandas).
//
// The footer is not decoded and encoded but edited: fields that are not changed
// are copied as they are encoded, known or not. Chunks that stay where they are
// keep their statistics, page indexes and bloom filters; those that are converted
// keep their bounds, converted; those that lose rows keep nothing, because there
// are readers that take a bound for a value whatever it is marked as.
//
// The file's layout of lists and maps, and what may be null, stay too: levels are
// never changed. A column that is missing inside of a group is made of the levels
// of a donor, a column of the same group.
//
// Footers are untrusted, as in package parquetfile: what is served refers to
// ranges inside of the file only, and what is made in memory is bounded. The
// package knows nothing of Delta.
package parquetview
