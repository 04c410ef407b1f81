// Command soak lets programs work on one mount for as long as wished, and
// proves afterwards from the log that nothing was lost, doubled or shown wrong.
//
// The process that is started mounts the table and watches; readers, writers
// through the mount and a writer past it are processes of their own, which
// write down what they did and saw (see event). Every file that they make has a
// number, and its rows follow from the number (see content), so that whoever
// reads a file can tell whether it is whole, and the log can be matched with
// what was reported.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// roles are what the processes do that the soak starts.
var roles = map[string]func(context.Context, *actor) error{
	"reader":  readForever,
	"writer":  writeForever,
	"outside": commitForever,
}

func main() {
	var s soak
	var a actor
	flag.StringVar(&s.deltafs, "deltafs", "", "the deltafs binary")
	flag.StringVar(&s.python, "python", "", "Python with delta-rs")
	flag.StringVar(&s.engine, "engine", "", "the program that reads the table with delta-rs")
	flag.StringVar(&s.work, "work", "", "work directory")
	flag.Float64Var(&s.minutes, "minutes", 60, "how long")
	flag.Int64Var(&s.seed, "seed", time.Now().UnixNano(), "seed of what the processes do")
	flag.StringVar(&a.role, "role", "", "used for the processes that this one starts")
	flag.IntVar(&a.number, "number", 0, "the same")
	flag.StringVar(&a.table, "table", "", "the same")
	flag.StringVar(&a.mount, "mount", "", "the same")
	flag.StringVar(&a.events, "events", "", "the same")
	flag.Int64Var(&a.seed, "actor-seed", 0, "the same")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if a.role != "" {
		if err := a.run(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "soak: %s: %v\n", a.who(), err)
			os.Exit(1)
		}
		return
	}
	findings, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || findings > 0 {
		os.Exit(1)
	}
}
