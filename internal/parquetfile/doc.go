// Package parquetfile looks into Parquet files as files: whether the bytes are
// a complete file, what its footer says, and the statistics of its columns.
//
// [Check] decides completeness from the footer and the page headers alone; it
// never decompresses anything, so its cost grows with the number of pages and
// not with the size of the data. A [Scanner] reads values, for what a footer
// does not say or cannot be trusted to say.
//
// [ReadFooter] reads nothing but a footer, and leaves as much of it encoded as it
// can, for those who make another footer of it.
//
// The package trusts nothing: every offset, length and count of a footer is
// checked against the bytes before it is used, what is allocated is bounded by
// bytes that were really read, and a panic of the Parquet library is an error.
// The Scanner leaves a column alone whose pages claim to be larger than a
// limit; what a compressed page unpacks to is otherwise up to its codec.
//
// The footer is decoded here, field by field, rather than with the library's
// structs: those do not tell an absent count from zero, know no
// is_max_value_exact, and size slices by what a list claims to hold.
//
// The package knows nothing of Delta. A [File] is immutable after Check.
package parquetfile
