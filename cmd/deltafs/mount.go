package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/fsnode"
	"github.com/deltafs/deltafs/internal/daemon"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/mountpoint"
	"github.com/deltafs/deltafs/internal/rendercache"
	"github.com/deltafs/deltafs/internal/sql"
	"github.com/deltafs/deltafs/metacache"
)

const mountName = "mount"

// readyLimit is how long --daemon waits for the mount.
const readyLimit = 60 * time.Second

func mountCommand() *cli.Command {
	return &cli.Command{
		Name:      mountName,
		Usage:     "Mount a table, or a directory of tables",
		ArgsUsage: "TABLE MOUNTPOINT",
		Description: `Shows TABLE (a path or a file:// URL) as a directory tree at MOUNTPOINT, an
empty directory. A directory with tables below it shows each of them in its
place. The command stays until the mount ends: by ctrl-C, SIGTERM, or
deltafs umount. A second ctrl-C detaches a mount that is in use.

SIGHUP opens the log file again; SIGUSR1 writes all goroutines to the log.

Examples:
  deltafs mount sales /mnt/sales
  deltafs mount lake /mnt/lake --read-only --daemon --log-file /var/log/deltafs.log
  deltafs mount sales /mnt/sales -o ro,uid=1000,list_versions=all

As root, the fstab line
  /data/sales  /mnt/sales  fuse.deltafs  ro,nofail,x-systemd.automount  0 0
needs a link /sbin/mount.fuse.deltafs to this program.`,
		Flags:  mountFlags(),
		Action: runMount,
	}
}

func mountFlags() []cli.Flag {
	const access, tree, cache, log, process = "Access", "Tree", "Cache", "Logging", "Process"
	list := fsnode.ListVersions(fsnode.DefaultListVersions)
	return slices.Concat([]cli.Flag{
		&cli.BoolFlag{Name: "read-only", Category: access, Usage: "refuse every change"},
		&cli.BoolFlag{Name: "append-only", Category: access, Usage: "refuse whatever removes or replaces data"},
		&cli.BoolFlag{Name: "allow-other", Category: access, Value: os.Geteuid() == 0, DefaultText: "true for root",
			Usage: "let other users in; permissions are checked"},
		&cli.StringFlag{Name: "uid", Category: access, Usage: "user `ID` that owns everything", DefaultText: "yours"},
		&cli.StringFlag{Name: "gid", Category: access, Usage: "group `ID` that owns everything", DefaultText: "yours"},
		&cli.StringFlag{Name: "file-mode", Category: access, Value: "0644", Usage: "permissions of files, `OCTAL`"},
		&cli.StringFlag{Name: "dir-mode", Category: access, Value: "0755", Usage: "permissions of directories, `OCTAL`"},
		allowPathFlag(access),

		&cli.GenericFlag{Name: "list-versions", Category: tree, Value: &list,
			Usage: "list the newest `N` versions, all, or none; the others open by name all the same"},
		timezoneFlag(tree),
		&cli.DurationFlag{Name: "grace", Category: tree, Value: 10 * time.Minute,
			Usage: "how `LONG` a file that another writer removed still opens by name"},
		&cli.DurationFlag{Name: "refresh", Category: tree, Value: fsnode.DefaultRefresh,
			Usage: "probe a table in use this `OFTEN` for commits where the kernel does not tell of them"},
	}, viewFlags(tree), cacheFlags(cache), []cli.Flag{
		renderedSizeFlag(cache),
		&cli.StringFlag{Name: "log-level", Category: log, Value: "info", Usage: "`LEVEL`: debug, info, warn or error"},
		&cli.StringFlag{Name: "log-format", Category: log, Value: "text", Usage: "`FORMAT`: text or json"},
		&cli.PathFlag{Name: "log-file", Category: log, Usage: "append to `FILE`", DefaultText: "standard error"},

		&cli.BoolFlag{Name: "foreground", Aliases: []string{"f"}, Category: process,
			Usage: "stay in the foreground (the default)"},
		&cli.BoolFlag{Name: "daemon", Aliases: []string{"d"}, Category: process,
			Usage: "go to the background once the mount is ready; else say why not"},
		&cli.BoolFlag{Name: "allow-non-empty", Category: process, Usage: "hide what is in the mount point"},
		&cli.StringFlag{Name: "o", Category: process,
			Usage: "`OPTIONS` as in fstab: flags of this command, separated by commas; ro is read-only"},
	})
}

func runMount(c *cli.Context) error {
	child := daemon.FromParent()
	if child == nil && c.Bool("daemon") {
		if c.Bool("foreground") {
			return usagef(c.Command, "--foreground and --daemon exclude each other")
		}
		ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
		defer stop()
		_, err := daemon.Start(ctx, os.Args, readyLimit)
		return err
	}
	job, err := newMountJob(c)
	if err == nil {
		job.child = child
		err = job.run(c.Context)
	}
	if child != nil && err != nil {
		// The parent tells it, if it still listens.
		child.Fail(err)
		return reported{err}
	}
	return err
}

// mountJob is one run of the mount command.
type mountJob struct {
	opts          fsnode.Options
	source, point string
	allowNonEmpty bool
	cache         *metacache.CacheOptions // nil without one
	rendered      rendercache.Options
	noCache       error // why there is none
	log           *logOutput
	child         *daemon.Child
}

// newMountJob reads the command line.
func newMountJob(c *cli.Context) (*mountJob, error) {
	if err := exactArgs(c, 2); err != nil {
		return nil, err
	}
	opts, err := mountOptions(c)
	if err != nil {
		return nil, err
	}
	source, err := localPath(c.Args().Get(0))
	if err != nil {
		return nil, err
	}
	job := &mountJob{opts: opts, point: c.Args().Get(1), allowNonEmpty: c.Bool("allow-non-empty")}
	if job.cache, job.noCache, err = cacheOptions(c); err != nil {
		return nil, err
	}
	job.rendered = renderedOptions(c, job.cache)
	if job.source, err = filepath.Abs(source); err != nil {
		return nil, fault.Wrap(fsnode.ErrNoSource, err, "cannot be resolved").AtTable(source).
			WithHint("use an absolute path")
	}
	job.log, err = newLogOutput(c)
	return job, err
}

// run mounts and serves until the mount ends.
func (j *mountJob) run(ctx context.Context) error {
	if err := j.check(); err != nil {
		return err
	}
	if err := j.log.open(); err != nil {
		return err
	}
	defer j.log.close()
	j.opts.Source, j.opts.Logger = j.source, j.log.logger
	ballast := saveMemory()
	defer runtime.KeepAlive(ballast)
	j.opts.OnIdle = debug.FreeOSMemory // the collector lets go of it slowly, and not at all when nothing is allocated
	if j.cache != nil {
		j.cache.Logger = j.log.logger
		j.opts.Cache = metacache.OpenCache(*j.cache)
		j.opts.SpoolDir = j.cache.Dir
	}
	j.rendered.Logger = j.log.logger
	j.opts.Rendered = rendercache.New(j.rendered)
	defer j.opts.Rendered.Close()
	j.opts.SQL = sql.New(sql.Options{SpillDir: j.opts.SpoolDir, Logger: j.log.logger})
	defer j.opts.SQL.Close()
	if j.noCache != nil {
		j.log.logger.Warn("metadata is kept in memory alone", "op", "cache", "err", j.noCache)
	}

	// From here on a signal ends the mount in order, however far it is.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)
	tree, server, err := j.mount(ctx)
	if err != nil {
		return err
	}
	serving := &session{server: server, point: j.point, log: j.log, child: j.child}
	err = serving.run(ctx, signals, j.ready)
	if err = errors.Join(err, tree.Close(context.WithoutCancel(ctx))); err != nil {
		// In the background nobody else hears of it.
		j.log.logger.Error("the mount ended badly", "path", j.point, "err", err)
		return err
	}
	j.log.logger.Info("unmounted", "path", j.point)
	return nil
}

// check looks at everything that can be known to fail, before anything is
// opened or made.
func (j *mountJob) check() error {
	err := checkSource(j.source)
	if err != nil {
		return err
	}
	if j.point, err = mountpoint.Check(j.point, j.allowNonEmpty); err != nil {
		return err
	}
	if err := mountpoint.CheckOverlap(j.point, "table", j.source); err != nil {
		return err
	}
	if j.log.path != "" {
		if err := mountpoint.CheckOutside(j.point, "log file", j.log.path); err != nil {
			return err
		}
	}
	if j.cache != nil {
		if err := mountpoint.CheckOutside(j.point, "cache directory", j.cache.Dir); err != nil {
			return err
		}
	}
	for _, path := range j.opts.AllowPaths {
		if err := mountpoint.CheckOutside(j.point, "directory of --"+allowPathName, path); err != nil {
			return err
		}
	}
	return mountpoint.CheckFUSE(j.opts.AllowOther)
}

// mount makes the mount; a signal meanwhile gives it up.
func (j *mountJob) mount(ctx context.Context) (*fsnode.FS, *fsnode.Server, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	tree, err := fsnode.New(ctx, j.opts)
	if err != nil {
		return nil, nil, err
	}
	server, err := tree.Mount(j.point)
	if err != nil {
		return nil, nil, errors.Join(err, tree.Close(ctx))
	}
	return tree, server, nil
}

// ready tells everybody who waits that the mount can be used.
func (j *mountJob) ready() error {
	if err := j.child.Ready(j.log.file); err != nil {
		return fmt.Errorf("going to the background: %w", err)
	}
	if err := daemon.Notify(fmt.Sprintf("READY=1\nMAINPID=%d", os.Getpid())); err != nil {
		j.log.logger.Warn("service manager was not told", "err", err)
	}
	j.log.logger.Info("mounted", "table", j.source, "path", j.point, "pid", os.Getpid())
	return nil
}
