package snapshot

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/internal/store"
)

// FileLine describes a data file of a version in one line of text.
type FileLine struct {
	// Name is the path that a mount shows below the version's directory, Path
	// the one in the log.
	Name string `json:"name"`
	Path string `json:"path"`
	// Size is what is served, RawSize what the log says of the file, in bytes.
	Size    int64 `json:"size"`
	RawSize int64 `json:"rawSize"`
	// Rows are those that readers see: NumRecords of the statistics without the
	// DeletedRows of the deletion vector. Both are null if the log does not say.
	Rows        *int64 `json:"rows"`
	NumRecords  *int64 `json:"numRecords"`
	DeletedRows int64  `json:"deletedRows"`
	Modified    string `json:"modified"`
	// PartitionValues are by the logical names of the columns.
	PartitionValues map[string]*string `json:"partitionValues"`
}

// lineTime is how a line spells a time: ISO 8601 in UTC, milliseconds.
const lineTime = "2006-01-02T15:04:05.000Z"

// ChangeLine describes what a commit does to one data file in one line of text.
type ChangeLine struct {
	// Action is "add" or "remove". A file whose deletion vector changes is
	// removed and added.
	Action string `json:"action"`
	// Path is the one in the log; Size is in bytes.
	Path        string `json:"path"`
	Size        *int64 `json:"size"`
	DataChange  bool   `json:"dataChange"`
	Rows        *int64 `json:"rows"`
	DeletedRows int64  `json:"deletedRows"`
}

// FileLines describes every file, in order of directory and name.
func (s *Snapshot) FileLines(ctx context.Context) iter.Seq2[FileLine, error] {
	return func(yield func(FileLine, error) bool) {
		for f, err := range s.servedAdds(ctx) {
			var line FileLine
			if err == nil {
				line = s.fileLine(f)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func (s *Snapshot) fileLine(f FileAdd) FileLine {
	rows, records, deleted := rowCounts(f.Add.NumRecords(), f.Add.DeletionVector)
	return FileLine{
		Name: path.Join(f.Dir, f.Name), Path: f.Add.Path, Size: f.Size, RawSize: f.Add.Size,
		Rows: rows, NumRecords: records, DeletedRows: deleted,
		Modified: f.ModTime.UTC().Format(lineTime), PartitionValues: s.partitionValues(f.Add),
	}
}

// partitionValues are the partition values of a file by logical name.
func (s *Snapshot) partitionValues(a *action.Add) map[string]*string {
	out := make(map[string]*string, len(s.PartitionFields()))
	for _, f := range s.PartitionFields() {
		out[f.Name] = partitionValue(f, a.PartitionValues)
	}
	return out
}

// rowCounts are the rows that readers see, the records in the file, each nil if
// it is not known (negative), and the rows that are deleted.
func rowCounts(numRecords int64, dv *action.DeletionVector) (rows, records *int64, deleted int64) {
	if dv != nil {
		deleted = dv.Cardinality
	}
	if numRecords < 0 {
		return nil, nil, deleted
	}
	left := numRecords - deleted
	return &left, &numRecords, deleted
}

// Changes describes what commit v adds and removes, in the order of the commit.
// ErrNoVersion if the log does not have the commit, ErrCorrupt.
func (t *Table) Changes(ctx context.Context, v int64) iter.Seq2[ChangeLine, error] {
	return func(yield func(ChangeLine, error) bool) {
		object, err := t.OpenCommit(ctx, v)
		if err != nil {
			yield(ChangeLine{}, err)
			return
		}
		defer object.Close()
		err = readCommit(newActionReader(ctx, object), v, func(a action.Action) error {
			if line, ok := changeLine(a); ok && !yield(line, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(ChangeLine{}, t.fault(err))
		}
	}
}

// errStop ends the reading of a commit of which nobody wants more.
var errStop = errors.New("enough was read")

func changeLine(a action.Action) (ChangeLine, bool) {
	switch a := a.(type) {
	case *action.Add:
		rows, _, deleted := rowCounts(a.NumRecords(), a.DeletionVector)
		return ChangeLine{
			Action: a.Kind(), Path: a.Path, Size: &a.Size, DataChange: a.DataChange, Rows: rows, DeletedRows: deleted,
		}, true
	case *action.Remove:
		rows, _, deleted := rowCounts((&action.Add{Stats: a.Stats}).NumRecords(), a.DeletionVector)
		return ChangeLine{
			Action: a.Kind(), Path: a.Path, Size: a.Size, DataChange: a.DataChange, Rows: rows, DeletedRows: deleted,
		}, true
	}
	return ChangeLine{}, false
}

// OpenCommit opens the commit file of a version. ErrNoVersion if the log has
// none.
func (t *Table) OpenCommit(ctx context.Context, v int64) (store.Object, error) {
	object, err := t.store.Open(ctx, CommitName(v))
	if errors.Is(err, store.ErrNotExist) {
		err = fault.Wrap(ErrNoVersion, err, "the commit is not in the log").AtVersion(v)
	}
	return object, t.fault(err)
}

// WriteLines writes values as JSON, one a line.
func WriteLines[T any](out io.Writer, lines iter.Seq2[T, error]) error {
	enc := jsontext.NewEncoder(out, jsontext.AllowInvalidUTF8(true))
	for line, err := range lines {
		if err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, line, json.Deterministic(true)); err != nil {
			return err
		}
	}
	return nil
}
