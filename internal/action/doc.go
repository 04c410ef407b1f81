// Package action holds the actions of the Delta transaction log and their
// JSON codec (protocol section "Actions").
//
// Decoding is exact: longs stay 64-bit integers, member names match
// case-sensitively, a line may be of any length, duplicate members are
// refused, and members this program does not know are kept verbatim and
// written back (the Extra fields). An action of an unknown kind decodes to
// [Unknown].
//
// The package is a leaf: it imports nothing of the project, so that snapshot,
// writer and metacache can all speak of actions without importing in a
// circle. It never interprets an action.
package action
