// Package daemon starts this program again in the background and tells its
// parent, and systemd, when it is ready.
//
// Go cannot fork, so the parent executes the same binary with the same
// arguments in a new session ([Start]); the child finds out by [FromParent]
// and reports over a pipe that it is ready, or why it is not. Until then the
// child shares the parent's standard error, so that nothing it says is lost;
// afterwards it lets go of the terminal.
package daemon
