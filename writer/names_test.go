package writer

import (
	"math/rand/v2"
	"os"
	"testing"
)

func TestNamesOfTools(t *testing.T) {
	const data, scratch, foreign, reserved = "data", "scratch", "foreign", "reserved"
	for name, want := range map[string]string{
		"x.parquet": data, "X.PARQUET": data, "part-00000-1.c000.snappy.parquet": data, "data_0.parquet": data, "a b.parquet": data,
		"rejected.part.parquet": data,
		// rsync, DuckDB, object_store, aws s3 cp, sed -i
		".x.parquet.AbC123": scratch, "tmp_x.parquet": scratch, "x.parquet#1": scratch, "x.parquet.A1b2C3d4": scratch, "sedAbCdEf": scratch,
		// gio, vim, emacs, LibreOffice
		".goutputstream-ABCDEF": scratch, ".x.parquet.swp": scratch, "4913": scratch, "x.parquet~": scratch, "#x.parquet#": scratch,
		".~lock.x.parquet#": scratch,
		// browsers, downloaders, azcopy, mc, gcloud, rclone, hdfs, sftp clients
		"x.parquet.crdownload": scratch, "x.parquet.part": scratch, "x.parquet.partial": scratch, ".azDownload-1-x.parquet": scratch,
		"x.abc.part.minio": scratch, "x.parquet_.gstmp": scratch, "x.1a2b3c4d.partial": scratch, "x.parquet._COPYING_": scratch,
		"x.parquet.filepart": scratch, "x.parquet.download": scratch, "x.parquet.tmp": scratch, "x.temp": scratch,
		// Flink, Spark, Hadoop, Dask, macOS, Windows
		"part-0.inprogress.1": scratch, "_SUCCESS": scratch, "._SUCCESS.crc": scratch, ".part-0.parquet.crc": scratch, "x.crc": scratch,
		"_metadata": scratch, "_common_metadata": scratch, "_x.parquet": scratch, ".DS_Store": scratch, "._x.parquet": scratch, "Thumbs.db": scratch,
		"README": scratch, "notes.txt": scratch, "x.parquet.bak": scratch, "parquet": scratch, ".parquet": scratch,
		"x.csv": foreign, "x.CSV.gz": foreign, "x.tsv": foreign, "x.json": foreign, "x.jsonl.zst": foreign, "x.ndjson": foreign,
		"x.orc": foreign, "x.avro": foreign, "x.parq": foreign, "x.pq": foreign, "x.parquet.gz": foreign,
		".x.csv.AbC123": scratch, "tmp_x.csv": scratch,
		"_delta_log": reserved, "_DELTA_LOG": reserved, "_change_data": reserved, ".deltafs": reserved, "deletion_vector_1a.bin": reserved,
	} {
		got := scratch
		switch {
		case isReserved(name):
			got = reserved
		case isData(name):
			got = data
		case isForeign(name):
			got = foreign
		}
		if got != want {
			t.Errorf("%q is %s, want %s", name, got, want)
		}
		if isScratch(name) == (isData(name) || isForeign(name)) {
			t.Errorf("%q is of two kinds", name)
		}
	}
}

func TestScratchDirectories(t *testing.T) {
	for name, want := range map[string]bool{
		".rp": true, "_temporary": true, ".spark-staging-1": true, "tmp_dir": true, "x.tmp": true,
		"out": false, "date=2024-05-01": false, "x.parquet": false,
	} {
		if got := isScratchDir(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestIntervalsAgreeWithABitmap(t *testing.T) {
	const size = 64
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var iv intervals
		var bits [size]bool
		for range 30 {
			from, to := rnd.Int64N(size+1), rnd.Int64N(size+1)
			if rnd.IntN(4) == 0 {
				iv.cut(from)
				clear(bits[from:])
			} else if from <= to {
				iv.add(from, to)
				for i := from; i < to; i++ {
					bits[i] = true
				}
			}
			first := int64(0)
			for first < size && bits[first] {
				first++
			}
			for n := int64(0); n <= size; n++ {
				if got := iv.covers(n); got != (n <= first) {
					t.Fatalf("seed %d: covers(%d) is %v in %v", seed, n, got, iv.spans)
				}
			}
			if gap := iv.gap(size); gap.from != first {
				t.Fatalf("seed %d: gap %v, want from %d, in %v", seed, gap, first, iv.spans)
			}
			for i, s := range iv.spans {
				if s.from >= s.to || i > 0 && iv.spans[i-1].to >= s.from {
					t.Fatalf("seed %d: not disjoint and ascending: %v", seed, iv.spans)
				}
			}
		}
	}
}

func TestThreadsBelongToTheirProcess(t *testing.T) {
	c := newCallers()
	self := uint32(os.Getpid())
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, th := range threads {
		var tid uint32
		for _, d := range th.Name() {
			tid = tid*10 + uint32(d-'0')
		}
		if got := c.process(Caller{PID: tid}); got != self {
			t.Errorf("thread %d belongs to %d, want %d", tid, got, self)
		}
	}
	if got := c.process(Caller{PID: 1 << 30}); got != 1<<30 {
		t.Errorf("an unknown thread belongs to %d", got)
	}
	if got := c.process(Caller{}); got != 0 {
		t.Errorf("the kernel belongs to %d", got)
	}
}
