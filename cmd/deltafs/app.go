package main

import (
	"cmp"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
)

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                 "deltafs",
		Usage:                "Delta Lake tables as versioned directories",
		UsageText:            "deltafs COMMAND [OPTIONS] [ARGUMENTS]",
		Version:              buildVersion(),
		Description:          appDescription,
		EnableBashCompletion: true,
		HideHelpCommand:      false,
		Writer:               stdout,
		ErrWriter:            stderr,
		// Errors are reported in one place, by run.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError:   usageError,
		Action:         noCommand,
		Commands: []*cli.Command{
			mountCommand(),
			umountCommand(),
			historyCommand(),
			detailCommand(),
			filesCommand(),
			cacheCommand(),
			checkpointCommand(),
			catCommand(),
			exportCommand(),
			versionCommand(),
			workerCommand(),
		},
	}
	prepare(app.Commands)
	return app
}

// prepare sets what all commands have in common.
func prepare(commands []*cli.Command) {
	for _, cmd := range commands {
		cmd.OnUsageError = usageError
		// Else a table named "help" could not be an argument.
		cmd.HideHelpCommand = true
		for _, f := range cmd.Flags {
			if b, ok := f.(*cli.BoolFlag); ok && b.DefaultText == "" {
				b.DisableDefaultText = true // "(default: false)" says nothing
			}
		}
		for _, sub := range cmd.Subcommands {
			sub.HelpName = helpName(cmd) + " " + sub.Name
		}
		prepare(cmd.Subcommands)
	}
}

// helpName is a command as it is called. The library does not know it before
// it runs.
func helpName(cmd *cli.Command) string { return cmp.Or(cmd.HelpName, "deltafs "+cmd.Name) }

const appDescription = `A mounted table is a directory with the live table in current/, every old
version in @v<N>/, and a link @<time> to the version of each commit. Reading
any version is reading files; writing is dropping a Parquet file into current/.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 not a Delta table or no
such version, 4 unsupported table feature or storage, 5 mount point problem,
6 not permitted.`

// usageError turns the library's complaint about flags into ours.
func usageError(c *cli.Context, err error, _ bool) error {
	if c.Command == nil || c.Command.Name == "" || c.Command.Name == c.App.Name {
		return fault.Wrap(errUsage, err, "wrong usage").WithHint("see deltafs --help")
	}
	return fault.Wrap(errUsage, err, "%s", c.Command.Name).WithHint("see %s --help", helpName(c.Command))
}

// noCommand runs when the first argument is not a command.
func noCommand(c *cli.Context) error {
	if c.NArg() == 0 {
		return cli.ShowAppHelp(c)
	}
	return fault.New(errUsage, "unknown command %q", c.Args().First()).WithHint("see deltafs --help")
}
