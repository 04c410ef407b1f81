package main

import (
	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/internal/sql/worker"
)

// workerCommand is the child process of the SQL engine. Users do not call it.
func workerCommand() *cli.Command {
	return &cli.Command{
		Name:   sql.WorkerCommand,
		Usage:  "Answer the queries of another deltafs process",
		Hidden: true,
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "memory", Usage: "`BYTES` of memory for the engine", Value: sql.DefaultMemory},
			&cli.IntFlag{Name: "threads", Usage: "`N` threads", DefaultText: "one a core"},
			&cli.PathFlag{Name: "spill", Usage: "`DIR` for what does not fit into memory"},
		},
		Action: func(c *cli.Context) error {
			return worker.Run(c.Context, worker.Options{
				MemoryLimit: c.Int64("memory"), Threads: c.Int("threads"), Spill: c.Path("spill"),
			})
		},
	}
}
