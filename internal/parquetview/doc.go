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
// A file that has what is wanted already is served as it is.
//
// Footers are untrusted, as in package parquetfile. The package knows nothing of
// Delta.
package parquetview
