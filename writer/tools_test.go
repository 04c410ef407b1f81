package writer

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// toolCases are what tools do to a file system, as traced.
var toolCases = []struct {
	tool   string
	before string // one process before the tool; its commits do not count
	script string
	// commits are those of the tool; files maps names to contents afterwards.
	commits  int
	files    map[string]string
	rejected int
}{
	{tool: "cp", script: "create h x.parquet; write h A; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "cp onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet; truncate h 0; write h B; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "cp of the same bytes", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet; truncate h 0; write h A; flush h; close h",
		commits: 0, files: map[string]string{"x.parquet": "A"}},
	{tool: "cp in many writes", script: "create h x.parquet; write h A 0 10; write h A 10 30; write h A 30; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "cp of a text file", script: "create h x.parquet; write h TEXT; !incomplete flush h; close h"},
	{tool: "cp of a file that does not fit", script: "create h x.parquet; !misfit write h MISFIT; !misfit flush h; close h; !noent stat x.parquet",
		rejected: 1},
	{tool: "cp -p, mv from another file system", script: "create h x.parquet; write h A; mtime h; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "install, shutil.copy2", script: "create h x.parquet; write h A; flush h; mtime h; close h; stat x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "rsync", script: "create h .x.parquet.AbC123; write h A; mtime h; flush h; close h;" +
		"read r .x.parquet.AbC123; flush r; close r; rename .x.parquet.AbC123 x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "rsync onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h .x.parquet.AbC123; write h B; flush h; close h; rename .x.parquet.AbC123 x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "rsync of the same bytes", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h .x.parquet.AbC123; write h A; flush h; close h; rename .x.parquet.AbC123 x.parquet",
		commits: 0, files: map[string]string{"x.parquet": "A"}},
	{tool: "rsync of a file that does not fit", script: "create h .x.parquet.AbC123; write h MISFIT; flush h; close h;" +
		"!misfit rename .x.parquet.AbC123 x.parquet; unlink .x.parquet.AbC123", rejected: 1},
	{tool: "rsync --inplace", script: "create h x.parquet; write h A; truncate h size; flush h; mtime h; close h; stat x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "rsync --inplace onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet; write h B 0 half; write h B half; truncate h size; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "rsync --append", before: "create h x.parquet; write h A 0 half; !incomplete flush h; close h",
		script: "read r x.parquet; read q x.parquet; open h x.parquet; write h A half; truncate h size; flush h; close r; close q; close h",
		// The bytes of both runs are one file, committed by the second.
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "rsync --delay-updates", script: "create h .x.parquet.AbC123; write h A; flush h; close h; mkdir .rp;" +
		"rename .x.parquet.AbC123 .rp/x.parquet; rename .rp/x.parquet x.parquet; rmdir .rp",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "tar, curl, wget", script: "create h x.parquet; write h A 0 20; write h A 20 40; write h A 40; mtime h; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "cat >, dd", script: "create h x.parquet; flush h; write h A; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "cat > onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet trunc; flush h; write h B; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "dd conv=fsync", script: "create h x.parquet; flush h; write h A; sync h; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "dd seek", script: "create h x.parquet; flush h; truncate h half; write h A half; !incomplete flush h; write h A 0 half; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "cat a b >", script: "create h x.parquet; flush h; write h A; !incomplete writeat h B size; !incomplete flush h; close h", rejected: 1},
	{tool: ">> of another file", before: "create h x.parquet; write h A; flush h; close h",
		script: "open h x.parquet; flush h; !incomplete writeat h B size; !incomplete flush h; close h",
		files:  map[string]string{"x.parquet": "A"}, rejected: 1},
	{tool: ">> of nothing", before: "create h x.parquet; write h A; flush h; close h",
		script: "open h x.parquet; flush h; flush h; close h", files: map[string]string{"x.parquet": "A"}},
	{tool: "touch", script: "create h x.parquet; flush h; mtime h; flush h; close h"},
	{tool: "truncate -s", script: "create h x.parquet; truncate h 100; !incomplete flush h; close h"},
	{tool: "fallocate", script: "create h x.parquet; allocate h size; sync h; !incomplete flush h; close h"},
	{tool: "preallocating downloader", script: "create h x.parquet; allocate h size; write h A half; write h A 0 half; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "scp", script: "create h x.parquet; write h A; truncate h size; mtime h; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "scp onto longer", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet; write h C; truncate h size; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "C"}},
	{tool: "truncate after", script: "create h x.parquet; truncate h 200; write h A; truncate h size; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "python os.replace", script: "create h x.parquet.tmp; write h A; sync h; flush h; close h; rename x.parquet.tmp x.parquet; syncdir",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "gio, renamed before it is closed", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h .goutputstream-ABCD; write h B; sync h; rename .goutputstream-ABCD x.parquet; flush h; close h; stat x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "renamed while incomplete", script: "create h .x.tmp; write h A 0 half; rename .x.tmp x.parquet; write h A half; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "renamed while incomplete onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h .x.tmp; write h B 0 half; rename .x.tmp x.parquet; write h B half; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "sed -i", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h sedAbCdEf; write h B; flush h; close h; rename sedAbCdEf x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "DuckDB COPY onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "create h tmp_x.parquet; write h B; flush h; close h; rename tmp_x.parquet x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "DuckDB OVERWRITE", before: "create h a.parquet; write h A; flush h; close h; create h b.parquet; write h B; flush h; close h",
		script:  "unlink a.parquet; unlink b.parquet; create h data_0.parquet; write h C; flush h; close h",
		commits: 1, files: map[string]string{"data_0.parquet": "C"}},
	{tool: "Polars sink", script: "create h x.parquet; flush h; close h; open h x.parquet; truncate h 0; write h A; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "Polars sink onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script:  "open h x.parquet trunc; flush h; close h; open h x.parquet; truncate h 0; write h B; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "object_store", script: "create h x.parquet#1; write h A; link h x.parquet; unlink x.parquet#1; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "aws s3 cp", script: "create h x.parquet.A1b2C3d4; write h A half; write h A 0 half; flush h; close h; rename x.parquet.A1b2C3d4 x.parquet",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "fork and exec while writing", script: "create h x.parquet; open g x.parquet; write h A 0 half; flush g; write h A half; flush h; close g; close h",
		commits: 1, files: map[string]string{"x.parquet": "A"}},
	{tool: "killed writer", script: "create h x.parquet; write h A 0 half; !incomplete flush h; close h; stat x.parquet"},
	{tool: "killed writer onto existing", before: "create h x.parquet; write h A; flush h; close h",
		script: "open h x.parquet trunc; write h B 0 half; !incomplete flush h; close h",
		files:  map[string]string{"x.parquet": "A"}},
	{tool: "rm", before: "create h x.parquet; write h A; flush h; close h",
		script: "unlink x.parquet; !noent stat x.parquet; syncdir", commits: 1},
	{tool: "rm and cp", before: "create h x.parquet; write h A; flush h; close h",
		script:  "unlink x.parquet; create h x.parquet; write h B; flush h; close h",
		commits: 1, files: map[string]string{"x.parquet": "B"}},
	{tool: "mv", before: "create h x.parquet; write h A; flush h; close h",
		script: "rename x.parquet y.parquet; !noent stat x.parquet", commits: 1, files: map[string]string{"y.parquet": "A"}},
	{tool: "mv onto existing", before: "create h x.parquet; write h A; flush h; close h; create h y.parquet; write h B; flush h; close h",
		script: "rename x.parquet y.parquet; !noent stat x.parquet", commits: 1, files: map[string]string{"y.parquet": "A"}},
	{tool: "mv -n onto existing", before: "create h x.parquet; write h A; flush h; close h; create h y.parquet; write h B; flush h; close h",
		script: "!exist rename x.parquet y.parquet noreplace", files: map[string]string{"x.parquet": "A", "y.parquet": "B"}},
	{tool: "mv out of the table and back", before: "create h x.parquet; write h A; flush h; close h",
		script:  "rename x.parquet x.bak; read r x.bak; expect r A; close r; rename x.bak x.parquet",
		commits: 2, files: map[string]string{"x.parquet": "A"}},
	{tool: "csv", script: "!misfit create h x.csv; !misfit create h x.csv.gz; create h x.txt; write h TEXT; flush h; close h"},
	{tool: "delta-rs", script: "!reserved stat _delta_log; !reserved mkdir _delta_log; !reserved create h _delta_log;" +
		"!reserved mkdir _change_data; !reserved create h deletion_vector_1.bin"},
}

func TestToolsCommitExactlyWhatTheyMean(t *testing.T) {
	for _, c := range toolCases {
		t.Run(c.tool, func(t *testing.T) {
			back := newFakeBack(t)
			l := back.open(t, Options{})
			newKernel(l, 1).run(t, c.before)
			before := back.commits()
			newKernel(l, 2).run(t, c.script)
			if got := back.commits() - before; got != c.commits {
				t.Errorf("%d commits, want %d", got, c.commits)
			}
			want := map[string]string{}
			for name, letter := range c.files {
				want[name] = string(content(letter))
				if got := meaning(l, 3, name); got != "committed" {
					t.Errorf("for others %s is %q", name, got)
				}
				if got := meaning(l, 2, name); got != "committed" {
					t.Errorf("for the tool %s is %q", name, got)
				}
			}
			if got := back.contents(t); !maps.Equal(got, want) {
				t.Errorf("table holds %q, want %q", got, want)
			}
			rejected, err := l.Rejected(context.Background())
			if err != nil || len(rejected) != c.rejected {
				t.Errorf("rejected: %+v, %v", rejected, err)
			}
			checkClosed(t, l, back)
		})
	}
}

// checkClosed closes the tree and looks for leftovers: only rejected files may
// stay.
func checkClosed(t *testing.T, l *Live, back *fakeBack) {
	t.Helper()
	if err := l.close(context.Background()); err != nil {
		t.Errorf("close: %v", err)
	}
	rejected, err := l.Rejected(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(back.root, areaDir))
	if gone := errors.Is(err, os.ErrNotExist); gone != (len(rejected) == 0) {
		t.Errorf(".deltafs gone: %v, with %d rejected files", gone, len(rejected))
	}
	if _, err := os.Stat(filepath.Join(back.root, areaDir, mountsDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the mount left something behind")
	}
}
