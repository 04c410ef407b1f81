package writer

import (
	"os"
	"testing"
)

func TestLastCheckpointHasTheChecksumOfTheProtocol(t *testing.T) {
	got := string(lastCheckpoint{NumOfAddFiles: 1, Size: 4, SizeInBytes: 5000, Version: 10}.encode())
	// md5 of "numOfAddFiles"=1,"size"=4,"sizeInBytes"=5000,"version"=10
	const want = `{"numOfAddFiles":1,"size":4,"sizeInBytes":5000,"version":10,"checksum":"59fe2c83bff2958309aa7d2d75fe51a1"}`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLastCheckpointNeverGoesBack(t *testing.T) {
	for _, tt := range []struct{ before, after string }{
		{"", "1"},
		{`{"version":0,"size":1}`, "1"},
		{`{"version":1,"size":1}`, "other"},
		{`{"version":7,"size":1,"parts":2}`, "other"},
		{"garbage", "1"},
		{`{"size":1}`, "1"},
		{`{"version":null}`, "1"},
	} {
		c := newCheckpointTable(t).commit(testProtocol(1, 2), testMetadata()).commit(testAdd("a"))
		name := c.st.Path(lastCheckpointName)
		if tt.before != "" {
			if err := os.WriteFile(name, []byte(tt.before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := c.checkpoint()
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := tt.before
		if tt.after == "1" {
			want = string(lastCheckpoint{NumOfAddFiles: 1, Size: 3, SizeInBytes: out.Size, Version: 1}.encode())
		}
		if string(got) != want {
			t.Errorf("%q became %s, want %s", tt.before, got, want)
		}
	}
}
