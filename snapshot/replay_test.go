package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReplayRemovesAndReadds(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1), addLine("b", 2))
	f.commit(1, addLine("c", 3), removeLine("a"))
	f.commit(2, addLine("a", 7))
	f.commit(3, addLine("b", 5), removeLine("b"))
	f.commit(4, removeLine("never-there"), removeLine("c"))
	table := f.open()
	// Newest first, so that older versions are loaded beside newer ones.
	wantPaths(t, table, 4, "a b")
	wantPaths(t, table, 0, "a b")
	wantPaths(t, table, 1, "b c")
	wantPaths(t, table, 2, "a b c")
	wantPaths(t, table, 3, "a b c")
	file, ok, err := at(t, table, 4).ByPath(context.Background(), "a")
	if err != nil || !ok || file.Size != 7 {
		t.Errorf("a is %+v, %v, %v", file, ok, err)
	}
	first, _, _ := at(t, table, 0).ByPath(context.Background(), "a")
	if first.ID != file.ID || first.Size != 1 {
		t.Errorf("the first a is %+v, the second %+v", first, file)
	}
}

func TestReplayMatchesDifferentlySpelledPaths(t *testing.T) {
	f := newFixture(t).plain(addLine("/abs/a%20b", 1), addLine("d=1%2F2/x", 1), addLine("file:/abs/c", 1))
	f.commit(1, removeLine("file:///abs/a%20b"), removeLine("d=1/2/x"), removeLine("/abs/c"))
	table := f.open()
	wantPaths(t, table, 1, "")
}

func TestReplaySurvivesOddLines(t *testing.T) {
	stats := strings.Repeat("s", 1<<20)
	f := newFixture(t)
	f.write(CommitName(0), strings.Join([]string{
		`{"commitInfo":{"operation":"WRITE","nested":{"a":[1,{"b":null}]}}}`,
		addLine("early", 1),
		`{"someday":{"add":{"path":"x"}}}`,
		`{"Add":{"path":"wrong-case","size":1}}`,
		``,
		`  ` + protocolLine + "\r",
		metadataLine(""),
		`{"add":{"path":"big","partitionValues":{},"size":9007199254740993,"modificationTime":1,"dataChange":true,` +
			`"stats":"` + stats + `","unknown":{"z":1}}}`,
		addLine("last", 1), // no newline at the end
	}, "\n"))
	table := f.open()
	wantPaths(t, table, 0, "big early last")
	s := at(t, table, 0)
	file, _, err := s.ByPath(context.Background(), "big")
	if err != nil || file.Size != 9007199254740993 {
		t.Errorf("big has size %d: %v", file.Size, err)
	}
	add := addOf(t, s, file)
	if len(add.Stats) != len(stats) || !strings.Contains(string(add.Extra), `"unknown"`) {
		t.Errorf("stats or unknown members are lost: %d bytes, %s", len(add.Stats), add.Extra)
	}
}

func TestCorruptCommitsAreRefusedAndHarmOnlyLaterVersions(t *testing.T) {
	for name, data := range map[string]string{
		"truncated":      addLine("b", 1)[:40],
		"empty":          "",
		"blank":          "\n\n",
		"duplicate keys": `{"add":{"path":"b","path":"c","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}`,
		"no size":        `{"add":{"path":"b","partitionValues":{},"modificationTime":1,"dataChange":true}}`,
		"negative size":  addLine("b", -1),
		"not JSON":       "PAR1",
		"zeros":          "\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).plain(addLine("a", 1))
			f.write(CommitName(1), data)
			f.commit(2, addLine("c", 1))
			table := f.open()
			for _, v := range []int64{1, 2} {
				_, err := table.At(context.Background(), v)
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "00000000000000000001.json") {
					t.Errorf("version %d: %v", v, err)
				}
			}
			wantPaths(t, table, 0, "a")
			// A repair is noticed as a log that was rewritten.
			f.commit(1, addLine("b", 1))
			f.commit(2, addLine("c", 1), addLine("d", 1))
			if _, err := table.Refresh(context.Background()); err != nil {
				t.Fatal(err)
			}
			wantPaths(t, table, 2, "a b c d")
		})
	}
}

func TestCorruptTailIsReadOnceRepaired(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	f.write(CommitName(1), addLine("b", 1)[:40])
	table := f.open()
	if _, err := table.At(context.Background(), 1); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("read a truncated commit: %v", err)
	}
	f.commit(1, addLine("b", 1))
	if _, err := table.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantPaths(t, table, 1, "a b")
}

func TestGapsNameTheFirstMissingVersion(t *testing.T) {
	f := newFixture(t).plain(addLine("a", 1))
	for _, v := range []int64{1, 3, 4, 6} {
		f.commit(v, addLine(fmt.Sprint("f", v), 1))
	}
	table := f.open()
	for _, v := range []int64{2, 3, 4, 5, 6} {
		_, err := table.At(context.Background(), v)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "version 2 is missing") {
			t.Errorf("version %d: %v", v, err)
		}
	}
	for _, v := range []int64{-1, 7, 1 << 60} {
		if _, err := table.At(context.Background(), v); !errors.Is(err, ErrNoVersion) {
			t.Errorf("version %d: %v", v, err)
		}
	}
	spans, err := table.Versions(context.Background())
	if err != nil || len(spans) != 1 || spans[0].First != 0 || spans[0].Last != 1 {
		t.Errorf("versions %v, %v", spans, err)
	}
	wantPaths(t, table, 1, "a f1")
}

func TestVersionZeroNeedsProtocolAndMetadata(t *testing.T) {
	for missing, line := range map[string]string{"protocol": metadataLine(""), "metaData": protocolLine} {
		table := newFixture(t).commit(0, line, addLine("a", 1)).open()
		_, err := table.At(context.Background(), 0)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "no "+missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestHeaderKeepsTransactionsAndDomains(t *testing.T) {
	f := newFixture(t).plain(`{"txn":{"appId":"x","version":9}}`,
		`{"domainMetadata":{"domain":"d","configuration":"1","removed":false}}`)
	for v := int64(1); v <= 100; v++ {
		f.commit(v, fmt.Sprintf(`{"txn":{"appId":"app","version":%d}}`, v))
	}
	f.commit(101, `{"domainMetadata":{"domain":"d","configuration":"","removed":true}}`, `{"txn":{"appId":"x","version":3}}`)
	table := f.open()
	last := at(t, table, 101)
	if v, ok := last.Txn("x"); !ok || v != 3 {
		t.Errorf("x is at %d, %v", v, ok)
	}
	if len(last.Domains()) != 0 || len(at(t, table, 100).Domains()) != 1 {
		t.Errorf("domains %v, before %v", last.Domains(), at(t, table, 100).Domains())
	}
	for v := int64(1); v <= 100; v++ {
		if got, ok := at(t, table, v).Txn("app"); !ok || got != v {
			t.Fatalf("version %d: app is at %d, %v", v, got, ok)
		}
	}
	if _, ok := last.Txn("nobody"); ok {
		t.Error("nobody has a transaction")
	}
}

func TestLaterMetadataInACommitGovernsEarlierAdds(t *testing.T) {
	f := newFixture(t).commit(0, addPartition("p", "x"), metadataLine(`"k"`), protocolLine)
	s := at(t, f.open(), 0)
	if got := names(t, s, "", ""); len(got) != 1 || got[0] != "k=x" {
		t.Errorf("root lists %q", got)
	}
}

func TestRepartitioningMovesTheFilesThatStay(t *testing.T) {
	f := newFixture(t).commit(0, protocolLine, metadataLine(`"k"`), addPartition("p", "x"), addPartition("q", "y"))
	f.commit(1, metadataLine(""), addLine("r", 1), removeLine("q"))
	f.commit(2, addLine("s", 1))
	table := f.open()
	if got := fmt.Sprint(names(t, at(t, table, 2), "", "")); got != "[p r s]" {
		t.Errorf("after: %s", got)
	}
	if got := fmt.Sprint(names(t, at(t, table, 0), "", "")); got != "[k=x k=y]" {
		t.Errorf("before: %s", got)
	}
	before, _ := at(t, table, 0).Lookup(context.Background(), "k=x", "p")
	after, _ := at(t, table, 2).Lookup(context.Background(), "", "p")
	if before.File == nil || after.File == nil || before.File.ID != after.File.ID {
		t.Errorf("before %v, after %v", before.File, after.File)
	}
}

func TestGateNamesFeatures(t *testing.T) {
	protocol := func(text string) string { return `{"protocol":` + text + `}` }
	for _, c := range []struct{ protocol, property, names string }{
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["timestampNtz","vacuumProtocolCheck","columnMapping","deletionVectors"],"writerFeatures":["x"]}`, "", ""},
		{`{"minReaderVersion":2,"minWriterVersion":7,"writerFeatures":["anything"]}`, "", ""},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":[]}`, "", ""},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "delta.columnMapping.mode=none", ""},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "delta.columnMapping.mode=Name", ""},
		{`{"minReaderVersion":2,"minWriterVersion":5}`, "delta.columnMapping.mode=guess", "columnMapping (mode guess)"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["typeWidening"],"writerFeatures":[]}`, "", ""},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["sparkle"],"writerFeatures":[]}`, "", "sparkle"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint","variantType","variantType-preview",` +
			`"variantShredding","variantShredding-preview"],"writerFeatures":[]}`, "", ""},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["v2Checkpoint","catalogManaged"],"writerFeatures":[]}`, "", "catalogManaged"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["catalogOwned-preview"],"writerFeatures":[]}`, "", "catalogOwned-preview"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["adaptiveMetadata-preview"],"writerFeatures":[]}`, "", "adaptiveMetadata-preview"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["redirectReaderWriter-preview"],"writerFeatures":[]}`, "", "redirectReaderWriter-preview"},
		{`{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["geospatial"],"writerFeatures":[]}`, "", "geospatial"},
		{`{"minReaderVersion":4,"minWriterVersion":8}`, "", "reader version 4"},
	} {
		var conf []string
		if key, value, ok := strings.Cut(c.property, "="); ok {
			conf = []string{key, value}
		}
		table := newFixture(t).commit(0, protocolLine, metadataLine("")).
			commit(1, protocol(c.protocol), metadataLine("", conf...)).open()
		_, err := table.At(context.Background(), 1)
		if c.names == "" {
			if err != nil {
				t.Errorf("%s: %v", c.protocol, err)
			}
			continue
		}
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s %s: %v", c.protocol, c.property, err)
		}
		wantPaths(t, table, 0, "")
		if p, m, err := table.Header(context.Background(), 1); err != nil || p.MinReaderVersion < 2 || m.ID != "a-b" {
			t.Errorf("header of a refused version: %v, %v, %v", p, m, err)
		}
	}
}
