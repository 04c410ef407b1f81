package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// judge checks a complete file against the newest version.
func (l *Live) judge(ctx context.Context, f *os.File, size int64, b binding) (*verdict, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	p := b.place
	if b.replaces != nil && !p.full() {
		// The name of an odd directory says nothing; the old file does.
		old, err := v.Adds(ctx, *b.replaces)
		if err != nil {
			return nil, err
		}
		p.values, p.fields, p.next, p.scratch = old[0].PartitionValues, v.PartitionFields(), nil, false
	}
	verdict, err := l.back.Judge(ctx, v, f, size, p)
	if err != nil {
		var known *fault.Error
		if errors.As(err, &known) && known.File == "" {
			known.AtTable(l.back.Name()).InFile(b.key().String())
		}
		return nil, err
	}
	return verdict, nil
}

// errNotPlaced is the refusal of a file outside the partition directories.
func (p place) errNotPlaced() error {
	return fault.New(ErrMisfit, "the table is partitioned by %q, and the directory does not say its value", p.next.Name).
		OnColumn(p.next.Name).
		WithHint("put the file into %s=<value>/", joinPath(p.shown, snapshot.EscapeHive(p.next.Name)))
}

// commitStaged commits a complete file where it is bound; s.op is held. It
// does not stop when ctx is cancelled. A file that lost its name meanwhile has
// nothing to commit.
func (l *Live) commitStaged(ctx context.Context, s *Staged) error {
	ctx = context.WithoutCancel(ctx)
	b := s.binding()
	defer l.keys.lock(b.key())()
	if now := s.binding(); !now.bound || now.key() != b.key() {
		return nil
	}
	err := l.commitAs(ctx, s, b)
	if err == nil || errors.Is(err, ErrUnsure) {
		return err
	}
	if errors.Is(err, ErrConflict) || isRefusal(err) {
		return l.refuse(s, err)
	}
	return err
}

// commitAs commits a complete file as b says, together with what the same
// process has unlinked; s.op and the lock of b's name are held.
func (l *Live) commitAs(ctx context.Context, s *Staged, b binding) error {
	ours := func(u unlinked) bool { return b.process != 0 && u.process == b.process }
	// What others unlinked came first, and is theirs to be told.
	_ = l.burst.flush(ctx, func(u unlinked) bool { return !ours(u) })
	if b.replaces != nil && b.drops == nil {
		same, err := l.sameFile(ctx, s, *b.replaces)
		if err != nil {
			return err
		}
		if same != nil {
			l.sealUnchanged(s, b, *same)
			return nil
		}
	}
	removes, done := l.burst.carry(ours)
	defer done()
	p, ended := s.publicationFor(ctx, b, removes)
	defer ended()
	version, err := l.commitChange(ctx, func(v view) (*TxnSpec, error) { return p.build(ctx, v) })
	if err == nil {
		object := p.object
		l.seal(s, b, version, p.addPath, func(ctx context.Context) (committedReader, error) {
			return l.back.OpenObject(ctx, object)
		})
		return nil
	}
	p.undo(ctx, err)
	for _, u := range removes {
		l.burst.add(u)
	}
	return err
}

// publication is the commit of one staged file on its way.
type publication struct {
	live    *Live
	s       *Staged
	b       binding
	removes []unlinked
	// values are the partition values, never nil.
	values map[string]*string
	// object and addPath are set once the bytes are published.
	object, addPath string
	modified        int64
	// early is the append that lies ready, if it was this one.
	early *early
}

// build makes the transaction for a version: the file checked against its
// schema, and what it replaces still there.
func (p *publication) build(ctx context.Context, v view) (*TxnSpec, error) {
	if p.early != nil && p.early.suits(v) {
		return p.early.spec, p.live.area.check(p.slot())
	}
	verdict, err := p.recheck(ctx, v)
	if err != nil {
		return nil, err
	}
	return p.assemble(ctx, v, verdict)
}

// assemble publishes the bytes and makes the transaction.
func (p *publication) assemble(ctx context.Context, v view, verdict *verdict) (*TxnSpec, error) {
	if err := p.publish(ctx, v, verdict); err != nil {
		return nil, err
	}
	spec := &TxnSpec{Operation: "WRITE"}
	if p.values = p.b.place.values; p.values == nil {
		p.values = map[string]*string{}
	}
	if p.b.replaces != nil {
		old, err := p.live.current(ctx, v, *p.b.replaces)
		if err != nil {
			return nil, err
		}
		if err := spec.remove(ctx, v, old); err != nil {
			return nil, err
		}
		if !p.b.place.full() {
			p.values = spec.Actions[0].(*action.Remove).PartitionValues
		}
	}
	removes := p.removes
	if p.b.drops != nil {
		removes = append(slices.Clone(removes), *p.b.drops)
	}
	left, err := p.live.stillLive(ctx, v, removes)
	if err != nil {
		return nil, err
	}
	if err := spec.remove(ctx, v, filesOf(left)...); err != nil {
		return nil, err
	}
	if len(spec.Actions) > 0 {
		spec.Parameters = overwriteParameters(v)
	}
	spec.Actions = append(spec.Actions, p.add(verdict))
	spec.Published = []string{p.object}
	return spec, nil
}

// overwriteParameters are those of a write that also removes.
func overwriteParameters(v view) map[string]any {
	columns := v.Metadata().PartitionColumns
	if columns == nil {
		columns = []string{}
	}
	text, err := json.Marshal(columns)
	if err != nil {
		text = []byte("[]")
	}
	return map[string]any{"mode": "Overwrite", "partitionBy": string(text)}
}

// recheck judges the file again if the table's metadata is not what it was
// judged by.
func (p *publication) recheck(ctx context.Context, v view) (*verdict, error) {
	p.s.mu.Lock()
	verdict, size := p.s.verdict, p.s.size
	p.s.mu.Unlock()
	if sameMetadata(verdict.For, v.Metadata()) {
		return verdict, nil
	}
	err := p.s.use(ctx, func() (err error) {
		verdict, err = p.live.judge(ctx, p.s.file, size, p.b)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.s.mu.Lock()
	p.s.verdict = verdict
	p.s.mu.Unlock()
	return verdict, nil
}

func sameMetadata(a, b *action.Metadata) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil || a.SchemaString != b.SchemaString || len(a.Configuration) != len(b.Configuration) {
		return false
	}
	for k, v := range a.Configuration {
		if b.Configuration[k] != v {
			return false
		}
	}
	return slices.Equal(a.PartitionColumns, b.PartitionColumns)
}

// publish makes the bytes a data file of the table, once. Where is recorded
// first, so that a killed mount leaves no file behind. The bytes are durable;
// that the name is too before the commit is what TxnSpec.Published asks for.
func (p *publication) publish(ctx context.Context, v view, verdict *verdict) error {
	slot := p.slot()
	if p.modified != 0 {
		return p.live.area.check(slot)
	}
	object, addPath := p.live.back.DataPath(v, p.b.place, slot.id(), verdict.Codec)
	meta := stagedMeta{Dir: p.b.place.dir, Name: p.b.name}
	if err := p.live.area.announce(slot, meta, object); err != nil {
		return err
	}
	p.object, p.addPath = object, addPath
	return p.s.use(ctx, func() error {
		if err := p.live.back.Publish(ctx, p.s.file, object); err != nil {
			return err
		}
		info, err := p.s.file.Stat()
		if err == nil {
			p.modified = info.ModTime().UnixMilli() // publishing sets it to now
		}
		return err
	})
}

func (p *publication) slot() slot {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.s.slot
}

// add is the action that puts the file into the table under its name.
func (p *publication) add(v *verdict) *action.Add {
	name := p.b.name
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	a := &action.Add{
		Path: p.addPath, PartitionValues: p.values, Size: p.s.size, ModificationTime: p.modified,
		DataChange: true, Stats: v.Stats, Tags: map[string]*string{snapshot.TagName: &name},
	}
	if p.s.timeSet {
		when := p.s.modTime.UTC().Format(time.RFC3339Nano)
		a.Tags[snapshot.TagModTime] = &when
	}
	return a
}

// undo takes the data file back after a commit that surely failed. When the
// commit may exist, everything stays as it is for recovery to decide.
func (p *publication) undo(ctx context.Context, cause error) {
	if errors.Is(cause, ErrUnsure) {
		p.s.mu.Lock()
		p.s.state, p.s.result = stateUnsure, cause
		p.s.mu.Unlock()
		return
	}
	if p.takeBack(ctx) {
		p.live.record(p.s)
	}
}

// takeBack takes the data file back and reports whether it is gone.
func (p *publication) takeBack(ctx context.Context) bool {
	if p.object == "" {
		return false
	}
	if err := p.live.back.Unpublish(ctx, p.object); err != nil {
		p.live.opts.Report("unpublish", p.object, err)
		return false // the note on disk still knows of the file
	}
	return true
}

// sealUnchanged ends a replacement by the same bytes: the committed file is
// what was wanted, and nothing is committed.
func (l *Live) sealUnchanged(s *Staged, b binding, old snapshot.File) {
	l.seal(s, b, 0, old.Path, func(ctx context.Context) (committedReader, error) {
		return l.back.OpenFile(ctx, old)
	})
}

// seal notes that the file is committed. As soon as the tree shows the version
// its name means the committed file, until then the sealed one, for everybody;
// s.op is held.
func (l *Live) seal(s *Staged, b binding, version int64, addPath string, become func(context.Context) (committedReader, error)) {
	l.mu.Lock()
	s.mu.Lock()
	slot := s.slot
	s.state, s.addPath, s.become, s.sealedAt, s.result = stateSealed, addPath, become, version, nil
	s.verdict = nil // the kernel may know the file for long, and statistics are large
	s.mu.Unlock()
	l.unbind(s, b.key())
	for k := range l.replacing {
		l.unbind(s, k) // it may have been meant for another name first
	}
	if s.sealedKey = b.key(); l.now.Version() < version {
		b.replaces = nil
		l.bindTo(s, b)
	}
	for dir := b.place.dir; dir != ""; dir, _ = splitPath(dir) {
		delete(l.made, dir)
	}
	l.mu.Unlock()
	l.area.drop(slot)
}

// unbindSealed takes the name from a committed file whose version the tree
// shows; l.mu is held.
func (l *Live) unbindSealed(s *Staged) {
	s.mu.Lock()
	shown := s.state == stateSealed && s.sealedAt <= l.now.Version()
	s.mu.Unlock()
	if shown {
		l.unbind(s, s.sealedKey)
	}
}

// sameFile returns the committed file if the staged one would replace it by
// itself: by the bytes that the tree shows, or by those that lie in storage, which
// whoever wrote them may still have. What lies there with a deletion vector has
// other rows.
func (l *Live) sameFile(ctx context.Context, s *Staged, f snapshot.File) (*snapshot.File, error) {
	v, err := l.view(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := l.current(ctx, v, f); err != nil {
		return nil, nil // the commit says so
	}
	same, err := l.sameBytes(ctx, s, f)
	if !same && err == nil && f.SchemaOrdinal != 0 && f.DV == "" {
		f.SchemaOrdinal = 0
		same, err = l.sameBytes(ctx, s, f)
	}
	if !same || err != nil {
		return nil, err
	}
	return &f, nil
}

func (l *Live) sameBytes(ctx context.Context, s *Staged, f snapshot.File) (bool, error) {
	old, err := l.back.OpenFile(ctx, f)
	if err != nil {
		return false, nil // gone from storage: a replacement repairs it
	}
	defer old.Close()
	if s.Attr().Size != old.Size() {
		return false, nil
	}
	same := false
	err = s.use(ctx, func() error {
		same, err = equalBytes(s.file, old, old.Size())
		return err
	})
	return same, err
}

func equalBytes(a, b io.ReaderAt, size int64) (bool, error) {
	const chunk = 256 << 10
	left, right := make([]byte, chunk), make([]byte, chunk)
	for at := int64(0); at < size; at += chunk {
		n := min(chunk, size-at)
		if err := readFull(a, left[:n], at); err != nil {
			return false, fmt.Errorf("reading the staged file: %w", err)
		}
		if err := readFull(b, right[:n], at); err != nil {
			return false, nil
		}
		if !bytes.Equal(left[:n], right[:n]) {
			return false, nil
		}
	}
	return true, nil
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	return err
}
