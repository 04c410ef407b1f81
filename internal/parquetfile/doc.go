// Package parquetfile looks into Parquet files as files: whether the bytes are
// a complete file, what its footer says, and the statistics of its columns.
//
// It trusts nothing: every offset and count of a footer is checked against the
// bytes before it is used, and a panic of the Parquet library is an error. It
// knows nothing of Delta.
package parquetfile
