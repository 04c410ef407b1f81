package writer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"syscall"
)

// stagedMeta is what recovery would like to know of a staged file.
type stagedMeta struct {
	// Dir and Name are where the file was dropped.
	Dir  string `json:"dir"`
	Name string `json:"name"`
	// Object is the data file in storage, if its name does not follow from the
	// slot and Dir.
	Object string `json:"object,omitempty"`
}

// objects are the names that the data file may have in storage; id is that of
// the slot.
func (m stagedMeta) objects(id string) []string {
	if m.Object != "" {
		return []string{m.Object}
	}
	return dataFiles(m.Dir, id)
}

// notes are what is recorded of the staged files of a mount: one file, a line
// for each note, of which the last one of a slot counts. A note costs one write
// and no fsync: it outlives the process, and after a power failure, which may
// take it, the name of the slot finds the file in the log.
type notes struct {
	dir *os.Root

	mu   sync.Mutex
	file *os.File
	// size is that of the file; live has the last line of each staged file, of
	// the length needed in total.
	size, needed int64
	live         map[slot][]byte
}

// notedSlot is a line of the notes.
type notedSlot struct {
	Slot slot `json:"slot"`
	stagedMeta
}

const (
	notesFile = "notes"
	// notesSlack is how much the file may outgrow what is needed.
	notesSlack = 256 << 10
	// maxNote bounds a line that is read: two names of the longest path.
	maxNote = 64 << 10
)

func newNotes(dir *os.Root) *notes { return &notes{dir: dir, live: map[slot][]byte{}} }

// put adds a note, unless it is the last one.
func (n *notes) put(s slot, m stagedMeta) error {
	line, err := json.Marshal(notedSlot{s, m})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	n.mu.Lock()
	defer n.mu.Unlock()
	if bytes.Equal(line, n.live[s]) && n.file != nil {
		return nil
	}
	n.needed += int64(len(line) - len(n.live[s]))
	n.live[s] = line
	if n.file == nil || n.size > 2*n.needed+notesSlack {
		err = n.rewrite()
	} else if err = n.write(n.file, line); err != nil {
		n.file.Close()
		n.file = nil // it may end in the middle of a line
	}
	return err
}

// drop forgets a slot that is gone.
func (n *notes) drop(s slot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.needed -= int64(len(n.live[s]))
	delete(n.live, s)
}

// rewrite replaces the file by one with what is needed; n.mu is held.
func (n *notes) rewrite() error {
	const temp = notesFile + ".tmp"
	f, err := n.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	n.size = 0
	for _, line := range n.live {
		if err == nil {
			err = n.write(f, line)
		}
	}
	if err == nil {
		err = n.dir.Rename(temp, notesFile)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if n.file != nil {
		n.file.Close()
	}
	n.file = f
	return nil
}

func (n *notes) write(f *os.File, line []byte) error {
	wrote, err := f.Write(line)
	n.size += int64(wrote)
	return err
}

func (n *notes) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.file != nil {
		n.file.Close()
		n.file = nil
	}
}

// readNotes returns what is recorded of the wanted slots. What does not read
// is passed over.
func readNotes(dir *os.Root, wanted map[slot]bool) map[slot]stagedMeta {
	out := map[slot]stagedMeta{}
	f, err := dir.OpenFile(notesFile, os.O_RDONLY|syscall.O_NONBLOCK, 0) // waits for no pipe
	if err != nil {
		return out
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return out
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxNote)
	for lines.Scan() {
		var note notedSlot
		if json.Unmarshal(lines.Bytes(), &note) == nil && wanted[note.Slot] && note.Name != "" {
			out[note.Slot] = note.stagedMeta
		}
	}
	return out
}
