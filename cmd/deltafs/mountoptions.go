package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// ignoredMountOptions are options of fstab and mount(8) that are for others
// (the boot order, the kernel) or say what is true anyway.
var ignoredMountOptions = []string{
	"defaults", "rw", "_netdev", "nofail", "auto", "noauto", "user", "nouser", "users", "owner", "group",
	"dev", "nodev", "suid", "nosuid", "exec", "noexec", "sync", "async", "dirsync",
	"atime", "noatime", "relatime", "norelatime", "strictatime", "diratime", "nodiratime", "lazytime",
	"default_permissions",
}

// notMountOptions are flags of the mount command that make no sense behind -o.
var notMountOptions = []string{"o", "help", "h", "f", "d"}

// expandMountOptions replaces "-o a,b=c" by the flags "--a --b=c": the options
// of a line in fstab are the flags of the command, in either spelling
// (read-only, read_only).
func expandMountOptions(cmd *cli.Command, args []string) ([]string, error) {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		list, inline := optionList(arg)
		switch {
		case arg == "--":
			return append(out, args[i:]...), nil
		case arg == "-o" || arg == "--o":
			if i++; i == len(args) {
				return nil, usagef(cmd, "flag %s needs a value", arg)
			}
			list = args[i]
		case !inline:
			out = append(out, arg)
			if isFlag(arg) && takesValue(cmd, arg) && i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
			continue
		}
		flags, err := mountOptionFlags(cmd, list)
		if err != nil {
			return nil, err
		}
		out = append(out, flags...)
	}
	return out, nil
}

// optionList is the list in "-o=LIST" or "-oLIST".
func optionList(arg string) (string, bool) {
	if list, ok := strings.CutPrefix(arg, "--o="); ok {
		return list, true
	}
	list, ok := strings.CutPrefix(arg, "-o")
	if !ok || list == "" {
		return "", false
	}
	return strings.TrimPrefix(list, "="), true
}

func mountOptionFlags(cmd *cli.Command, list string) ([]string, error) {
	var flags []string
	for option := range strings.SplitSeq(list, ",") {
		key, value, hasValue := strings.Cut(option, "=")
		switch {
		case key == "" && !hasValue, strings.HasPrefix(key, "x-"), key == "comment",
			slices.Contains(ignoredMountOptions, key):
			continue
		case key == "ro":
			key = "read-only"
		}
		name := strings.ReplaceAll(key, "_", "-")
		f := findFlag(cmd, name)
		if f == nil || slices.Contains(notMountOptions, name) {
			return nil, usagef(cmd, "unknown mount option %q", key)
		}
		if doc, ok := f.(cli.DocGenerationFlag); ok && doc.TakesValue() && !hasValue {
			return nil, usagef(cmd, "mount option %q needs a value", key)
		}
		if hasValue {
			name += "=" + value
		}
		flags = append(flags, "--"+name)
	}
	return flags, nil
}
