package main

import (
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/deltafs/deltafs/integration/harness"
)

func TestWrongUsageIsRefusedInOneLine(t *testing.T) {
	for _, c := range []struct {
		args, word string
	}{
		{"frobnicate", `"frobnicate"`},
		{"--frobnicate", "frobnicate"},
		{"--frobnicate version", "frobnicate"},
		{"help frobnicate", "frobnicate"},
		{"version extra", "takes no arguments"},
		{"version --frobnicate", "frobnicate"},
		{"mount", "TABLE MOUNTPOINT"},
		{"mount a", "TABLE MOUNTPOINT"},
		{"mount a b c", "TABLE MOUNTPOINT"},
		{"mount a b --frobnicate", "frobnicate"},
		{"mount a --frobnicate b", "frobnicate"},
		{"mount a b -x", "-x"},
		{"mount a b --uid", "--uid"},
		{"mount a b --uid root", "--uid"},
		{"mount a b --uid 4294967295", "--uid"},
		{"mount a b --gid -1", "--gid"},
		{"mount a b --file-mode 0888", "an octal number"},
		{"mount a b --dir-mode 1777", "--dir-mode"},
		{"mount a b --timezone Mars/Olympus", "Mars/Olympus"},
		{"mount a b --list-versions some", "some"},
		{"mount a b --list-versions -1", "-1"},
		{"mount a b --grace soon", "soon"},
		{"mount a b --grace -1s", "--grace"},
		{"mount a b --log-level loud", "loud"},
		{"mount a b --log-format xml", "xml"},
		{"mount a b --read-only=perhaps", "perhaps"},
		{"mount a b -f -d", "exclude each other"},
		{"mount a b -o frobnicate", `"frobnicate"`},
		{"mount file://elsewhere/a b", "elsewhere"},
		{"umount", "MOUNTPOINT"},
		{"umount a b", "MOUNTPOINT"},
		{"umount a --laxy", "laxy"},
		{"history", "TABLE"},
		{"history a b", "TABLE"},
		{"history a --limit x", "limit"},
		{"history a --limit -1", "--limit"},
		{"detail", "TABLE"},
		{"detail a@never", "not a timestamp (write a@v3, or a@2024-05-01)"},
		{"detail a@v03", "v03"},
		{"files a --version -1", "-1"},
		{"files a --timestamp never", "never"},
		{"files a@v1 --version 1", "more than one"},
		{"files a --version 1 --timestamp 2024-01-01", "more than one"},
		{"files a@v1 --timezone Mars/Olympus", "Mars/Olympus"},
		{"mount a b --cache-size 4X", "4X"},
		{"mount a b --cache-dir=", "--cache-dir"},
		{"mount a b --no-disk-cache --cache-size 1G", "--no-disk-cache"},
		{"cache", "ls|clear|verify"},
		{"cache frobnicate", `"cache frobnicate"`},
		{"cache ls a b", "see deltafs cache ls --help"},
		{"cache clear --frobnicate", "see deltafs cache clear --help"},
		{"cache verify a --cache-dir", "--cache-dir"},
	} {
		t.Run(c.args, func(t *testing.T) {
			refused(t, deltafs(t, strings.Fields(c.args)...), exitUsage, c.word)
		})
	}
}

// A flag that is ignored behind the arguments would mount read-write.
func TestMistypedFlagBehindTheArgumentsDoesNotMount(t *testing.T) {
	mnt := harness.MountPoint(t)
	refused(t, deltafs(t, "mount", newTable(t), mnt, "--readonly"), exitUsage, "readonly")
	if harness.Mounted(mnt) {
		t.Error("it is mounted")
	}
}

// allCommands yields all commands for users by name, those of a command too.
func allCommands() iter.Seq2[string, *cli.Command] {
	return func(yield func(string, *cli.Command) bool) {
		for _, cmd := range newApp(nil, nil).VisibleCommands() {
			if !yield(cmd.Name, cmd) {
				return
			}
			for _, sub := range cmd.Subcommands {
				if !yield(cmd.Name+" "+sub.Name, sub) {
					return
				}
			}
		}
	}
}

func TestHelpShowsGroupsAndAnExample(t *testing.T) {
	for name := range allCommands() {
		words := strings.Fields(name)
		help := must(t, append(words, "--help")...)
		if !strings.Contains(help, "deltafs "+name) || !strings.Contains(help, "Example") {
			t.Errorf("help of %s lacks an example:\n%s", name, help)
		}
		if must(t, append(words, "-h")...) != help || must(t, append([]string{"help"}, words...)...) != help {
			t.Errorf("-h and help %s differ from --help", name)
		}
	}
	mount := must(t, "mount", "--help")
	for _, group := range []string{"Access", "Tree", "Cache", "Logging", "Process"} {
		if !strings.Contains(mount, "   "+group+"\n") {
			t.Errorf("help of mount lacks the group %s:\n%s", group, mount)
		}
	}
	if top := must(t); top != must(t, "--help") || !strings.Contains(top, "Exit codes") {
		t.Errorf("deltafs alone does not print its help:\n%s", top)
	}
}

func TestBashCompletesCommandsFlagsAndPaths(t *testing.T) {
	script, err := filepath.Abs(filepath.Join("..", "..", "docs", "deltafs.bash"))
	check(t, err)
	for _, c := range []struct{ words, want string }{
		{"deltafs hi", "history"},
		{"deltafs mount --rea", "--read-only"},
		{"deltafs mount a b --app", "--append-only"},
		{"deltafs cache cl", "clear"},
		{"deltafs cache verify --cac", "--cache-dir"},
		{"deltafs mount /no", ""}, // left to bash, which completes paths
	} {
		bash := `source "$0"; COMP_WORDS=("$1" "${@:2}"); COMP_CWORD=$(($# - 1)); _deltafs; echo "${COMPREPLY[*]}"`
		args := append([]string{"-c", bash, script, harness.Binary()}, strings.Fields(c.words)[1:]...)
		if r := execute(t, exec.Command("bash", args...)); strings.TrimSpace(r.stdout) != c.want || r.stderr != "" {
			t.Errorf("%s: got %q, want %q (%s)", c.words, r.stdout, c.want, r.stderr)
		}
	}
}

func TestManPageNamesEveryCommandAndFlag(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deltafs.1.md"))
	check(t, err)
	for name, cmd := range allCommands() {
		_, section, ok := strings.Cut(string(page), "\n## deltafs "+name)
		if !ok {
			t.Errorf("the manual lacks a section on %s", name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, f := range cmd.Flags {
			flag := "`--" + f.Names()[0]
			if len(f.Names()[0]) == 1 {
				flag = "`-" + f.Names()[0]
			}
			if !strings.Contains(section, flag) {
				t.Errorf("the section on %s lacks %s", name, flag)
			}
		}
	}
}
