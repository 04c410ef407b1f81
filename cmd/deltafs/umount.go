package main

import (
	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/mountpoint"
)

func umountCommand() *cli.Command {
	return &cli.Command{
		Name:      "umount",
		Aliases:   []string{"unmount"},
		Usage:     "Unmount what deltafs mount mounted",
		ArgsUsage: "MOUNTPOINT",
		Description: `Takes the mount away and returns when its process has ended, so everything
written to it is committed. A mount in use is left alone, and its users are named.

Examples:
  deltafs umount /mnt/sales
  deltafs umount --lazy /mnt/sales`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "lazy", Category: "Unmounting",
				Usage: "detach now and let the mount end with its last user; removes a mount whose process died"},
		},
		Action: runUmount,
	}
}

func runUmount(c *cli.Context) error {
	if err := exactArgs(c, 1); err != nil {
		return err
	}
	m, err := mountpoint.Own(c.Args().First())
	if err != nil {
		return err
	}
	servers := mountpoint.Connect(m)
	defer servers.Close()
	lazy := c.Bool("lazy")
	if err := mountpoint.Unmount(c.Context, m, lazy); err != nil || lazy {
		return err
	}
	return servers.Wait(c.Context)
}
