// Command bench measures deltafs for scripts/bench: reading a large file of a
// snapshot, cold and warm, against the plain file and against a bare go-fuse
// passthrough file system; and appending a file, from open to a durable commit,
// against cp with fsync of file and directory. Everything is measured
// alternately in one run, and medians are printed with their ratios.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/deltafs/deltafs/integration/fixture"
	"golang.org/x/sys/unix"
)

type config struct {
	deltafs, barefuse string
	dir               string
	megabytes, runs   int
	appends, reads    int
}

func main() {
	var c config
	flag.StringVar(&c.deltafs, "deltafs", "", "the deltafs binary")
	flag.StringVar(&c.barefuse, "barefuse", "", "the barefuse binary")
	flag.StringVar(&c.dir, "dir", "", "work directory, on the disk to measure")
	flag.IntVar(&c.megabytes, "mb", 512, "size of the file to read")
	flag.IntVar(&c.runs, "runs", 7, "runs of each measurement")
	flag.IntVar(&c.appends, "appends", 100, "appends to measure")
	flag.IntVar(&c.reads, "reads", 4000, "random reads in a run")
	flag.Parse()
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (c *config) run() error {
	table := filepath.Join(c.dir, "table")
	if err := makeTable(table, c.megabytes); err != nil {
		return err
	}
	delta, stop, err := c.mount(filepath.Join(c.dir, "mnt"), c.deltafs, "mount", "--log-level", "warn", table)
	if err != nil {
		return err
	}
	defer stop()
	bare, stop, err := c.mount(filepath.Join(c.dir, "bare"), c.barefuse, table)
	if err != nil {
		return err
	}
	defer stop()

	c.header()
	if err := c.reading([]target{
		{"plain file", filepath.Join(table, "big.parquet")},
		{"bare go-fuse", filepath.Join(bare, "big.parquet")},
		{"deltafs", filepath.Join(delta, "@v1", "big.parquet")},
	}); err != nil {
		return err
	}
	return c.appending(filepath.Join(delta, "current"))
}

// makeTable makes a table whose version 1 holds one file of the given size.
// The bytes are noise between a Parquet file's ends: nothing decodes them.
func makeTable(table string, megabytes int) error {
	t, err := fixture.Create(table, fixture.Spec{})
	if err != nil {
		return err
	}
	line, err := t.AddLine("big.parquet", fixture.Rows(1, 1))
	if err != nil {
		return err
	}
	path := filepath.Join(table, "big.parquet")
	small, err := os.Stat(path)
	if err != nil {
		return err
	}
	size := int64(megabytes) << 20
	if err := fill(path, size); err != nil {
		return err
	}
	line = strings.Replace(line, fmt.Sprintf(`"size":%d`, small.Size()), fmt.Sprintf(`"size":%d`, size), 1)
	return t.Commit("WRITE", line)
}

func (c *config) mount(point, binary string, args ...string) (string, func(), error) {
	if err := os.Mkdir(point, 0o755); err != nil {
		return "", nil, err
	}
	cmd := exec.Command(binary, append(args, point)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() {
		if err := cmd.Wait(); err != nil {
			ended <- err
		}
		close(ended)
	}()
	stop := func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		os.Remove(point)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		data, err := os.ReadFile("/proc/self/mountinfo")
		if err == nil && strings.Contains(string(data), " "+point+" ") {
			return point, stop, nil
		}
		select {
		case err := <-ended:
			return "", nil, errors.Join(fmt.Errorf("%s ended before it was mounted", binary), err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("%s does not mount", binary)
		}
	}
}

func (c *config) header() {
	var u unix.Utsname
	unix.Uname(&u)
	fmt.Printf("machine: %d CPUs (%s), Linux %s, %s, root: %v\n", runtime.NumCPU(), cpu(),
		unix.ByteSliceToString(u.Release[:]), runtime.Version(), os.Geteuid() == 0)
	if out, err := exec.Command(c.deltafs, "version").Output(); err == nil {
		fmt.Printf("%s; go-fuse %s; work directory on %s\n", strings.TrimSpace(string(out)), moduleVersion("github.com/hanwen/go-fuse/v2"), fileSystem(c.dir))
	}
	fmt.Printf("medians of %d runs, %d MiB file, %d random reads a run, %d appends; ratios to the plain file\n\n",
		c.runs, c.megabytes, c.reads, c.appends)
}

func cpu() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(data), "\n") {
		if name, ok := strings.CutPrefix(l, "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return runtime.GOARCH
}

func moduleVersion(path string) string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func fileSystem(dir string) string {
	out, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
