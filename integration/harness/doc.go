// Package harness runs the built deltafs binary on a real mount for tests.
//
// The file system is always a subprocess: a test that served a mount from its
// own process could block on itself. Every mount is unmounted when its test
// ends, whatever happened, and its log is printed if the test failed. Nothing
// here sleeps for a fixed time: what is waited for is an event or a condition
// with a deadline.
package harness
