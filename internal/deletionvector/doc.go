// Package deletionvector reads deletion vectors (protocol section "Deletion
// Vectors"): the descriptor of an add action, the file that it names or the text
// that it holds, and the bitmap of physical row numbers in there.
//
// A vector decides which rows exist, and whoever wrote it is not trusted.
// Invariants:
//   - a vector is returned whole and as its descriptor says, or not at all:
//     version, size, CRC-32, structure and cardinality are checked;
//   - the bitmap library sees only bytes whose structure was checked before,
//     as it trusts counts;
//   - memory is bounded by what the storage really holds and by [MaxSize],
//     never by a number in a file.
//
// The package opens nothing: where a path may lead is its caller's business.
package deletionvector
