package mountpoint

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMountinfoReadsEscapesTagsAndUser(t *testing.T) {
	const text = `22 1 0:20 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:45 / /mnt/my\040table rw,nosuid,nodev shared:7 master:2 - fuse.deltafs /data/a\134b rw,user_id=1000,group_id=1000
32 22 0:46 / /mnt/x rw - fuse.other none rw
`
	got, err := parseMountinfo(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Mount{
		{Device: "0:20", Point: "/", FSType: "ext4", Source: "/dev/vda", UID: -1},
		{Device: "0:45", Point: "/mnt/my table", FSType: "fuse.deltafs", Source: `/data/a\b`, UID: 1000},
		{Device: "0:46", Point: "/mnt/x", FSType: "fuse.other", Source: "none", UID: -1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestParseMountinfoRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, line := range []string{"31 22 0:45 / /mnt rw", "31 - fuse x rw"} {
		if _, err := parseMountinfo(strings.NewReader(line)); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestFindSeesTheRootMount(t *testing.T) {
	m, ok, err := Find("/")
	if err != nil || !ok || m.Device == "" {
		t.Errorf("Find(/) = %+v, %v, %v", m, ok, err)
	}
	if _, ok, _ := Find(t.TempDir()); ok {
		t.Error("a fresh directory is called a mount point")
	}
}
