// Package indextest is the test suite that every implementation of
// metacache.Index has to pass.
package indextest
