package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func history(t *testing.T, table *Table) []Commit {
	t.Helper()
	var out []Commit
	for c, err := range table.History(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestHistoryListsEveryCommitNewestFirst(t *testing.T) {
	f := threeVersions(t)
	f.commit(4, addLine("x", 1), strings.Repeat(" ", 20000)+addLine("y", 1),
		` { "commitInfo" : {"operation":"MERGE","operationParameters":{"deep":[1]}}}`)
	f.commit(5, `{"commitInfo":{"operation":`)
	f.remove(CommitName(0))
	f.remove(CommitName(2))
	got := ""
	for _, c := range history(t, f.open()) {
		op := "-"
		if c.Info != nil {
			op, _ = c.Info.Operation()
		}
		got += fmt.Sprint(c.Version, " ", op, " ", c.Readable, " ", !c.Time.IsZero(), "; ")
	}
	want := "5 - true true; 4 MERGE true true; 3 - true true; 2 - true false; 1 - false true; "
	if got != want {
		t.Errorf("history %q, want %q", got, want)
	}
}

func TestReadCommitReturnsActionsInOrder(t *testing.T) {
	table := newFixture(t).plain(addLine("a", 1), removeLine("b")).open()
	actions, err := table.ReadCommit(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, a := range actions {
		kinds += a.Kind() + " "
	}
	if kinds != "protocol metaData add remove " {
		t.Errorf("actions %s", kinds)
	}
	if _, err := table.ReadCommit(context.Background(), 1); !errors.Is(err, ErrNoVersion) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

func TestDetail(t *testing.T) {
	clustering := `{"domainMetadata":{"domain":"delta.clustering","removed":false,` +
		`"configuration":"{\"clusteringColumns\":[[\"id\"],\"k\"]}"}}`
	f := newFixture(t).commit(0,
		`{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["clustering","appendOnly"]}}`,
		metadataLine(`"k"`, "x", "y"), clustering, addPartition("p", "1"), addPartition("q", "2"))
	f.setTime(CommitName(0), day(1, 0))
	d, err := at(t, f.open(), 0).Detail(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if d.Format != "delta" || d.ID != "a-b" || d.NumFiles != 2 || d.SizeInBytes != 2 || d.Location != f.dir ||
		fmt.Sprint(d.PartitionColumns, d.ClusteringColumns, d.TableFeatures, d.Properties) !=
			"[k] [id k] [appendOnly clustering] map[x:y]" ||
		!d.LastModified.Equal(day(1, 0)) || !d.CreatedAt.Equal(time.UnixMilli(1)) {
		t.Errorf("detail %+v", d)
	}
}

func TestLegacyProtocolsImplyFeatures(t *testing.T) {
	table := newFixture(t).plain().open()
	d, err := at(t, table, 0).Detail(context.Background())
	if err != nil || fmt.Sprint(d.TableFeatures) != "[appendOnly invariants]" {
		t.Errorf("features %v, %v", d.TableFeatures, err)
	}
}
