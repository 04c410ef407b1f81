package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/internal/fault"
)

// normalize turns a command line as users write it into one that the cli
// library understands. The library takes everything behind the first argument
// for arguments: `mount SRC MNT --read-only` would mount read-write without a
// word. So flags are moved in front of the arguments, wherever they stood; "--"
// ends them. Called as mount(8)'s helper, the program's name says the command.
func normalize(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return []string{app.Name}, nil
	}
	args, err := fromMountHelper(args)
	if err != nil {
		return nil, err
	}
	if len(args) < 2 || args[len(args)-1] == "--generate-bash-completion" {
		return args, nil
	}
	if args[1] == "help" && len(args) > 2 && app.Command(args[2]) != nil {
		// The library leaves the commands of a command out.
		args = append(slices.Concat(args[:1], args[2:]), "--help")
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args, nil
	}
	command, rest := args[:2], args[2:]
	if len(rest) > 0 {
		if sub := cmd.Command(rest[0]); sub != nil {
			cmd, command, rest = sub, args[:3], args[3:]
		}
	}
	if cmd.Name == mountName {
		if rest, err = expandMountOptions(cmd, rest); err != nil {
			return nil, err
		}
	}
	flags, positional, err := splitFlags(cmd, rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(command, flags, []string{"--"}, positional), nil
}

// splitFlags separates the flags of cmd, with their values, from its
// arguments. A flag that cmd does not have stays among the flags, where the
// library refuses it.
func splitFlags(cmd *cli.Command, args []string) (flags, positional []string, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return flags, append(positional, args[i+1:]...), nil
		}
		if !isFlag(arg) {
			positional = append(positional, arg)
			continue
		}
		flags = append(flags, arg)
		if !takesValue(cmd, arg) {
			continue
		}
		if i++; i == len(args) || args[i] == "--" {
			return nil, nil, usagef(cmd, "flag %s needs a value", arg)
		}
		flags = append(flags, args[i])
	}
	return flags, positional, nil
}

func isFlag(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// takesValue reports whether the next word is the value of the flag arg.
func takesValue(cmd *cli.Command, arg string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	f := findFlag(cmd, name)
	if f == nil { // unknown, or --name=value
		return false
	}
	doc, ok := f.(cli.DocGenerationFlag)
	return ok && doc.TakesValue()
}

func findFlag(cmd *cli.Command, name string) cli.Flag {
	for _, f := range cmd.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// usagef is a usage error of a command.
func usagef(cmd *cli.Command, format string, args ...any) error {
	return fault.New(errUsage, format, args...).WithHint("see %s --help", helpName(cmd))
}

// exactArgs checks the number of arguments of a command.
func exactArgs(c *cli.Context, n int) error {
	if got := c.NArg(); got != n {
		want := c.Command.ArgsUsage
		if n == 0 {
			want = "no arguments"
		}
		return usagef(c.Command, "%s takes %s, got %d argument(s)", c.Command.Name, want, got)
	}
	if slices.Contains(c.Args().Slice(), "") {
		return usagef(c.Command, "an argument is empty")
	}
	return nil
}

// fromMountHelper understands the call of mount(8) for a file system type,
// "mount.deltafs SRC MNT [-sfnv] [-o OPTIONS]" (mount(8), External Helpers). It
// returns once the mount is ready.
func fromMountHelper(args []string) ([]string, error) {
	if name := filepath.Base(args[0]); name != "mount.deltafs" && name != "mount.fuse.deltafs" {
		return args, nil
	}
	out := []string{args[0], mountName, "--daemon"}
	for _, arg := range args[1:] {
		switch arg {
		case "-s", "-n", "-v": // tolerate unknown options, no mtab, verbose: nothing to do
		case "-f":
			return nil, fault.New(errUsage, "a fake mount (-f) is not supported")
		default:
			out = append(out, arg)
		}
	}
	return out, nil
}
