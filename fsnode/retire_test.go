package fsnode

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// stagedNodes counts the staged files that the kernel may ask for.
func (m *testMount) stagedNodes() int {
	m.fs.nodes.mu.Lock()
	defer m.fs.nodes.mu.Unlock()
	n := 0
	for _, in := range m.fs.nodes.byID {
		if _, ok := in.node.(*stagedFile); ok {
			n++
		}
	}
	return n
}

func TestCommittedFilesTakeNoMemoryForEver(t *testing.T) {
	m := mount(t, emptyTable(t))
	m.fs.retirees.mu.Lock()
	m.fs.retirees.after = 0
	m.fs.retirees.mu.Unlock()
	data := rowFile(3, "x")
	name := func(i int) string { return m.join("current", fmt.Sprintf("f%d.parquet", i)) }
	open := func(i int) *os.File {
		f, err := os.Create(name(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
		return f
	}
	kept := open(0)
	defer kept.Close()
	if err := kept.Sync(); err != nil { // commits
		t.Fatal(err)
	}
	const files = 50
	for i := 1; i < files; i++ {
		if err := open(i).Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel tells the end of a handle some time later.
	eventually(t, "dropped", func() bool {
		if err := write(m.join("current", "again.parquet"), data); err != nil {
			t.Fatal(err)
		}
		return m.stagedNodes() < 10
	})
	for i := range files {
		if got, err := os.ReadFile(name(i)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("file %d reads %d bytes, %v", i, len(got), err)
		}
	}
	if fi, err := kept.Stat(); err != nil || fi.Size() != int64(len(data)) {
		t.Errorf("what is open was dropped: %v", err)
	}
	if got := len(m.names("current")); got != files+1 {
		t.Errorf("current/ lists %d files", got)
	}
}
