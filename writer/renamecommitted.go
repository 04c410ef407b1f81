package writer

import (
	"context"
	"errors"
	"maps"
	"os"
	"time"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/snapshot"
)

// renameCommitted moves a committed file, in one commit: to another name by a
// new tag, to another partition by a second link with other partition values,
// and out of the table by removing it and keeping its bytes as scratch.
func (l *Live) renameCommitted(ctx context.Context, f snapshot.File, m move, noReplace bool) error {
	ctx = context.WithoutCancel(ctx)
	defer l.keys.lock(m.oldKey(), m.newKey())()
	// Reported to who unlinked; what could not be removed is in the way again.
	_ = l.burst.flush(ctx, everywhere)
	target, err := l.moveTarget(ctx, m, noReplace)
	if err != nil {
		return err
	}
	b := binding{place: m.to, name: m.newName, bound: true, replaces: target.File, process: m.process}
	switch {
	case !b.commits():
		err = l.takeOut(ctx, f, m, b)
	case m.from.dir == m.to.dir && target.File == nil:
		err = l.retag(ctx, f, m)
	default:
		err = l.relink(ctx, f, target.File, m)
	}
	if err == nil && target.Staged != nil {
		l.vanish(target.Staged, m.newKey())
	}
	return err
}

// current returns the file as the version holds it. ErrConflict if another
// writer changed or removed it.
func (l *Live) current(ctx context.Context, v view, f snapshot.File) (snapshot.File, error) {
	now, ok, err := v.ByPath(ctx, f.Path)
	if err == nil && (!ok || now.ID != f.ID) {
		err = l.fault(ErrConflict, joinPath(f.Dir, f.Name), "another writer changed or removed the file since it was opened").
			WithHint("look at what is there now, and do it again")
	}
	return now, err
}

// retag renames a file in its directory: the same file is added again with
// another name in its tags, which the protocol allows and no row notices.
func (l *Live) retag(ctx context.Context, f snapshot.File, m move) error {
	_, err := l.commitChange(ctx, func(v view) (*TxnSpec, error) {
		now, err := l.current(ctx, v, f)
		if err != nil {
			return nil, err
		}
		adds, err := v.Adds(ctx, now)
		if err != nil {
			return nil, err
		}
		add := *adds[0]
		add.DataChange = false
		add.Tags = renamed(adds[0], m.newName)
		return &TxnSpec{
			Operation: "Manual Update", Parameters: map[string]any{}, Metrics: map[string]string{},
			ReadFiles: []string{add.Path}, Actions: []action.Action{&add},
		}, nil
	})
	return err
}

func renamed(a *action.Add, name string) map[string]*string {
	tags := maps.Clone(a.Tags)
	if tags == nil {
		tags = map[string]*string{}
	}
	tags[snapshot.TagName] = &name
	return tags
}

// relink gives the file's bytes a second name on disk and replaces the file by
// it, under other partition values or in the place of another file.
func (l *Live) relink(ctx context.Context, f snapshot.File, target *snapshot.File, m move) error {
	if err := l.removable(ctx, m.shown()); err != nil {
		return err
	}
	old, file, err := l.openRaw(ctx, f)
	if err != nil {
		return err
	}
	defer old.Close()
	f.Size = old.Size()
	to := binding{place: m.to, name: m.newName, bound: true, replaces: target}
	v, err := l.judge(ctx, file, old.Size(), to)
	if errors.Is(err, errNotYet) {
		err = l.fault(ErrIncomplete, m.oldKey().String(), "the committed file is damaged")
	}
	if err != nil {
		return err
	}
	// An empty staged file stands for the second name until it is committed.
	note, none, err := l.area.create(l.Version(), stagedMeta{Dir: m.to.dir, Name: m.newName})
	if err != nil {
		return err
	}
	none.Close()
	var object, addPath string
	_, err = l.commitChange(ctx, func(now view) (*TxnSpec, error) {
		if object == "" {
			object, addPath = l.back.DataPath(now, m.to, note.id(), v.Codec)
			if err := l.publishAgain(ctx, file, note, m, object); err != nil {
				return nil, err
			}
		}
		spec, err := l.relinkSpec(ctx, now, f, target, m, v, addPath)
		if err == nil {
			spec.Published = []string{object}
		}
		return spec, err
	})
	if errors.Is(err, ErrUnsure) {
		return err // for recovery to decide
	}
	if err != nil && object != "" {
		if gone := l.back.Unpublish(ctx, object); gone != nil {
			l.opts.Report("unpublish", object, gone)
			return err
		}
	}
	l.area.drop(note)
	return err
}

// publishAgain gives the bytes of a committed file a second name. Not every
// engine makes them durable.
func (l *Live) publishAgain(ctx context.Context, file *os.File, note slot, m move, object string) error {
	if err := l.area.announce(note, stagedMeta{Dir: m.to.dir, Name: m.newName}, object); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return l.back.Publish(ctx, file, object)
}

func (l *Live) relinkSpec(ctx context.Context, now view, f snapshot.File, target *snapshot.File, m move, v *verdict, addPath string) (*TxnSpec, error) {
	spec := &TxnSpec{Operation: "WRITE", Parameters: overwriteParameters(now)}
	for _, gone := range []*snapshot.File{&f, target} {
		if gone == nil {
			continue
		}
		live, err := l.current(ctx, now, *gone)
		if err != nil {
			return nil, err
		}
		if err := spec.remove(ctx, now, live); err != nil {
			return nil, err
		}
	}
	old, err := now.Adds(ctx, f)
	if err != nil {
		return nil, err
	}
	tags := renamed(old[0], m.newName)
	if tags[snapshot.TagModTime] == nil {
		when := f.ModTime.UTC().Format(time.RFC3339Nano)
		tags[snapshot.TagModTime] = &when
	}
	values := m.to.values
	if values == nil {
		values = map[string]*string{}
	}
	spec.Actions = append(spec.Actions, &action.Add{
		Path: addPath, PartitionValues: values, Size: f.Size, ModificationTime: time.Now().UnixMilli(),
		DataChange: true, Stats: v.Stats, Tags: tags,
	})
	return spec, nil
}

// openRaw opens a committed file whose content is the file as it lies on disk.
func (l *Live) openRaw(ctx context.Context, f snapshot.File) (committedReader, *os.File, error) {
	r, err := l.back.OpenFile(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	if r.File() == nil || f.DV != "" {
		r.Close()
		return nil, nil, l.fault(ErrReserved, joinPath(f.Dir, f.Name), "the file is not served as it lies on disk and cannot move").
			WithHint("copy it and remove it")
	}
	return r, r.File(), nil
}

// takeOut removes a committed file from the table and keeps its bytes as
// scratch under the new name. The scratch file has them before the commit, for
// VACUUM may take the table's afterwards.
func (l *Live) takeOut(ctx context.Context, f snapshot.File, m move, b binding) error {
	if err := l.removable(ctx, m.oldKey().String()); err != nil {
		return err
	}
	s, err := l.scratchCopy(ctx, f, b)
	if err != nil {
		return err
	}
	_, err = l.commitChange(ctx, func(v view) (*TxnSpec, error) {
		now, err := l.current(ctx, v, f)
		if err != nil {
			return nil, err
		}
		return removalSpec(ctx, v, []unlinked{{file: now}})
	})
	if err != nil && !errors.Is(err, ErrUnsure) {
		l.area.drop(s.slot)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bindTo(s, b)
	return err
}

// scratchCopy makes a staged file with the bytes of a committed one: a second
// link where that can be, which is copied before anybody writes to it.
func (l *Live) scratchCopy(ctx context.Context, f snapshot.File, b binding) (*Staged, error) {
	r, err := l.back.OpenFile(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := l.newStaged(b)
	s.size, s.modTime, s.timeSet, s.touched = r.Size(), f.ModTime, true, true
	s.written.add(0, r.Size())
	var own *os.File
	if r.File() != nil {
		if s.slot, own, err = l.area.adopt(r.File(), l.Version(), s.meta()); err == nil {
			s.shared = true
			return s, own.Close()
		}
	}
	if s.slot, own, err = l.area.create(l.Version(), s.meta()); err != nil {
		return nil, err
	}
	if err = copyBytes(own, r, r.File(), r.Size()); err == nil {
		err = own.Sync()
	}
	if err = errors.Join(err, own.Close()); err != nil {
		l.area.drop(s.slot)
		return nil, err
	}
	return s, nil
}
