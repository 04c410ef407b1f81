// Package mountpoint answers the questions around a mount that the file system
// itself cannot: is this directory fit to be mounted on, which mounts of ours
// exist, who keeps one busy, and is its server gone yet.
//
// It asks the kernel through /proc and never the mounted file system where it
// can avoid that: a server that hangs must not hang the command that ends it.
package mountpoint
