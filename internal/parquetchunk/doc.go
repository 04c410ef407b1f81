// Package parquetchunk encodes a column chunk of a Parquet file anew: without
// the rows that a deletion vector removes, as a wider type, or as nulls that
// follow the levels of another column.
//
// What the footer must say of the new chunk is known before a page is read: the
// region that it takes is an upper bound, and what the pages leave of it is one
// data page without values, which readers pass over. Pages are read before only
// to count the values of a repeated column that loses rows, and where a footer's
// size cannot be believed; see [Job.CountValues] and [Job.Measure].
//
// The pages are those of the source: each is unpacked, changed and written
// uncompressed in an encoding that never takes more room than the bound allows,
// so that memory is that of a page, not of a chunk.
//
// Pages are untrusted: counts and lengths are checked before they are used, and
// nothing is allocated for a claim that the bytes do not bear out.
//
// The package knows nothing of schemas and footers.
package parquetchunk
