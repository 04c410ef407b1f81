package metacache

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// versionLog is the file with the versions of a run, beginning with that of
// its base. A record is length, checksum and body. What lies behind the first
// record that is not whole does not count: of a run whose last versions are
// lost, the rest is still right.
type versionLog struct {
	file *os.File
	// size is that of the whole records.
	size int64
	// next is the version that the next record has to be of, note that of the
	// one before.
	next int64
	note []byte
}

const (
	recordHead = 8
	// maxRecord bounds a record; a commit of a million files may be too large,
	// and the run ends before it.
	maxRecord = 128 << 20
)

// createVersions makes the log of a run that begins with this version.
func createVersions(name string, first int64) (*versionLog, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &versionLog{file: f, next: first}, nil
}

// openVersions reads the log of a run. Only an appendable one may be written
// to, and what is not whole is cut off there.
func openVersions(name string, s *seal, appendable bool) (*versionLog, []keptVersion, error) {
	mode := os.O_RDONLY
	if appendable {
		mode = os.O_RDWR
	}
	f, err := openRegular(name, mode)
	if err != nil {
		return nil, nil, damaged(err, "the versions cannot be opened")
	}
	l := &versionLog{file: f, next: s.Version}
	versions, err := l.read(s.count())
	if err == nil && len(versions) == 0 {
		err = damaged(nil, "the first version is lost")
	}
	if err == nil && appendable {
		err = f.Truncate(l.size)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return l, versions, nil
}

// read returns the versions of all whole records.
func (l *versionLog) read(files int) ([]keptVersion, error) {
	info, err := l.file.Stat()
	if err != nil {
		return nil, damaged(err, "the versions cannot be read")
	}
	var out []keptVersion
	r := bufio.NewReaderSize(l.file, 1<<16)
	for {
		body, err := readRecord(r, info.Size()-l.size)
		if err != nil || body == nil {
			return out, err
		}
		v, err := decodeVersion(string(body), files, l.note)
		if err != nil || v.version != l.next {
			return out, nil
		}
		out = append(out, v)
		l.next++
		l.note = v.note
		l.size += recordHead + int64(len(body))
	}
}

// readRecord returns the next record out of what is left of the file, nil if
// none is whole.
func readRecord(r io.Reader, left int64) ([]byte, error) {
	var head [recordHead]byte
	_, err := io.ReadFull(r, head[:])
	n := int64(binary.BigEndian.Uint32(head[:]))
	if err == nil && n <= min(maxRecord, left-recordHead) {
		body := make([]byte, n)
		if _, err = io.ReadFull(r, body); err == nil && crc32.Checksum(body, castagnoli) == binary.BigEndian.Uint32(head[4:]) {
			return body, nil
		}
	}
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, damaged(err, "the versions cannot be read")
	}
	return nil, nil
}

// encodeRecord appends a version as a record, which may refer to the note of
// the version before.
func encodeRecord(buf []byte, v keptVersion, before []byte) ([]byte, error) {
	e := encoder{append(buf, make([]byte, recordHead)...)}
	encodeVersion(&e, v, before)
	body := e.buf[len(buf)+recordHead:]
	if len(body) > maxRecord {
		return buf, errors.New("the commit is too large")
	}
	head := e.buf[len(buf):]
	binary.BigEndian.PutUint32(head, uint32(len(body)))
	binary.BigEndian.PutUint32(head[4:], crc32.Checksum(body, castagnoli))
	return e.buf, nil
}

// append writes the records of so many versions, the last of which has this
// note. After an error the log is as it was, or ends in a record that is not
// whole.
func (l *versionLog) append(records []byte, versions int, note []byte) error {
	n, err := l.file.WriteAt(records, l.size)
	if err != nil {
		if n > 0 {
			_ = l.file.Truncate(l.size)
		}
		return err
	}
	l.size += int64(n)
	l.next += int64(versions)
	l.note = note
	return nil
}

func (l *versionLog) close() error { return l.file.Close() }

// Most versions have the note of the one before.
const (
	ownNote = iota
	sameNote
)

const (
	hasEnded = 1 << iota
	hasInBase
)

func encodeVersion(e *encoder, v keptVersion, before []byte) {
	e.int(v.version)
	if bytes.Equal(v.note, before) {
		e.byte(sameNote)
	} else {
		e.byte(ownNote)
		e.text(string(v.note))
	}
	e.int(v.totals.Files)
	e.int(v.totals.Bytes)
	e.int(v.totals.DVs)
	e.uint(uint64(len(v.changes)))
	files := fileCoder{ids: true}
	for _, c := range v.changes {
		var has byte
		if c.ended {
			has |= hasEnded
		}
		if c.inBase {
			has |= hasInBase
		}
		e.byte(has)
		e.uint(uint64(c.rank - unranked))
		files.encode(e, c.file)
	}
}

// decodeVersion reads a version of a run whose base has this many files.
func decodeVersion(body string, baseFiles int, before []byte) (keptVersion, error) {
	d := decoder{rest: body}
	v := keptVersion{version: d.int(), note: before}
	if d.byte() == ownNote {
		v.note = []byte(d.text())
	}
	v.totals = Totals{Files: d.int(), Bytes: d.int(), DVs: d.int()}
	n := d.count()
	if n > 0 {
		v.changes = make([]change, 0, min(n, 1<<12))
	}
	files := fileCoder{ids: true}
	for range n {
		has := d.byte()
		rank := d.uint()
		if rank > uint64(baseFiles-unranked) {
			d.fail()
		}
		v.changes = append(v.changes, change{
			ended: has&hasEnded != 0, inBase: has&hasInBase != 0, rank: int(rank) + unranked, file: files.decode(&d),
		})
	}
	return v, d.end()
}

// greatestID is the greatest ID of the versions' files.
func greatestID(versions []keptVersion) FileID {
	var last FileID
	for _, v := range versions {
		for _, c := range v.changes {
			last = max(last, c.file.ID)
		}
	}
	return last
}

// appendAll writes versions as they come.
func (l *versionLog) appendAll(versions []keptVersion, room func(n int) error) error {
	var buf []byte
	for _, v := range versions {
		var err error
		if buf, err = encodeRecord(buf[:0], v, l.note); err == nil {
			err = room(len(buf))
		}
		if err == nil {
			err = l.append(buf, 1, v.note)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
