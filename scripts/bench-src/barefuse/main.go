// Command barefuse serves a directory through go-fuse's own loopback file
// system, with passthrough where the kernel has it: what FUSE itself costs, for
// scripts/bench to compare with.
//
//	barefuse DIR MOUNTPOINT
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: barefuse DIR MOUNTPOINT")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "barefuse:", err)
		os.Exit(1)
	}
}

func serve(dir, point string) error {
	root, err := fs.NewLoopbackRoot(dir)
	if err != nil {
		return err
	}
	ttl := time.Minute
	server, err := fs.Mount(point, root, &fs.Options{
		EntryTimeout: &ttl, AttrTimeout: &ttl,
		MountOptions: fuse.MountOptions{FsName: dir, Name: "barefuse", MaxWrite: 1 << 20},
	})
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		server.Unmount()
	}()
	server.Wait()
	return nil
}
