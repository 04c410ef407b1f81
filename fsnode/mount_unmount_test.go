package fsnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBusyMountGoesOnAndNamesTheFile(t *testing.T) {
	m := mount(t, emptyTable(t))
	w, err := os.Create(m.join("current", "busy.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = m.srv.Unmount(context.Background())
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "busy.parquet") {
		t.Fatalf("unmount: %v", err)
	}
	if _, err := w.Write(rowFile(3, "x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := write(m.join("current", "next.parquet"), rowFile(3, "y")); err != nil {
		t.Errorf("after the attempt: %v", err)
	}
	if got := m.latest(); got != "@v2" {
		t.Errorf("latest is %s", got)
	}
}

func TestUnmountCommitsPendingUnlinks(t *testing.T) {
	dir := emptyTable(t)
	m := mount(t, dir)
	for _, name := range []string{"a.parquet", "b.parquet"} {
		if err := write(m.join("current", name), rowFile(3, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.parquet", "b.parquet"} {
		if err := os.Remove(m.join("current", name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.names("current"); len(got) != 0 {
		t.Errorf("unlinked names are listed: %v", got)
	}
	m.close()
	if _, err := os.Stat(filepath.Join(dir, logDir, "00000000000000000003.json")); err != nil {
		t.Errorf("two unlinks made no commit: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, logDir, "00000000000000000004.json")); err == nil {
		t.Error("two unlinks of a burst made two commits")
	}
}
