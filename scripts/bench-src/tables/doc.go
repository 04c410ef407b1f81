// Package tables makes the Delta tables that scripts/bench measures on. They
// are the same on every machine: every name, size and statistic follows from a
// number and a fixed seed.
//
// A table is made beside its place and renamed there when it is whole, so that
// a kept one can be trusted. Logs are written here by hand, without the
// product's code.
package tables
