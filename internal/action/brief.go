package action

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeBrief decodes a line as Decode does, but leaves out of adds and removes
// what listing a table does not need: see Reader.Brief.
func decodeBrief(line []byte) (Action, error) {
	s := briefScan{text: line}
	if a := s.action(); a != nil {
		return a, nil
	}
	return Decode(line)
}

// briefScan reads adds and removes as writers spell them: known members, each
// once, with plain integers. It gives up on every other line, also on one that
// is wrong; Decode has the last word.
type briefScan struct {
	text []byte
	at   int
}

// action returns nil when it gives up.
func (s *briefScan) action() Action {
	var found Action
	ok := s.object(func(name []byte) bool {
		switch {
		case found != nil:
			return false
		case string(name) == "add":
			add := &Add{}
			found = add
			return s.add(add)
		case string(name) == "remove":
			remove := &Remove{}
			found = remove
			return s.remove(remove)
		}
		return false
	})
	if s.space(); !ok || s.at != len(s.text) {
		return nil
	}
	return found
}

func (s *briefScan) add(a *Add) bool {
	var seen members64
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "path":
			return seen.first(0) && s.string(&a.Path)
		case "size":
			return seen.first(1) && s.long(&a.Size)
		case "partitionValues":
			return seen.first(2) && s.strings(&a.PartitionValues)
		case "modificationTime":
			return seen.first(3) && s.long(&a.ModificationTime)
		case "dataChange":
			return seen.first(4) && s.boolean(&a.DataChange)
		case "stats":
			return seen.first(5) && (s.null() || s.passString())
		case "tags":
			return seen.first(6) && s.strings(&a.Tags)
		case "deletionVector":
			return seen.first(7) && s.vector(&a.DeletionVector)
		case "baseRowId":
			return seen.first(8) && (s.null() || s.passLong())
		case "defaultRowCommitVersion":
			return seen.first(9) && (s.null() || s.passLong())
		case "clusteringProvider":
			return seen.first(10) && (s.null() || s.passString())
		}
		return false
	})
	return ok && a.Path != "" && seen.has(1) && a.Size >= 0
}

func (s *briefScan) remove(r *Remove) bool {
	var seen members64
	var values map[string]*string
	r.DataChange = true
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "path":
			return seen.first(0) && s.string(&r.Path)
		case "dataChange":
			return seen.first(1) && (s.null() || s.boolean(&r.DataChange))
		case "deletionVector":
			return seen.first(2) && s.vector(&r.DeletionVector)
		case "deletionTimestamp":
			return seen.first(3) && (s.null() || s.passLong())
		case "extendedFileMetadata":
			var extended bool
			return seen.first(4) && (s.null() || s.boolean(&extended))
		case "partitionValues":
			return seen.first(5) && s.strings(&values)
		case "size":
			return seen.first(6) && (s.null() || s.passLong())
		case "stats":
			return seen.first(7) && (s.null() || s.passString())
		case "tags":
			return seen.first(8) && s.strings(&values)
		case "baseRowId":
			return seen.first(9) && (s.null() || s.passLong())
		case "defaultRowCommitVersion":
			return seen.first(10) && (s.null() || s.passLong())
		}
		return false
	})
	return ok && r.Path != ""
}

func (s *briefScan) vector(out **DeletionVector) bool {
	if s.null() {
		return true
	}
	d := &DeletionVector{}
	*out = d
	var seen members64
	return s.object(func(name []byte) bool {
		switch string(name) {
		case "storageType":
			return seen.first(0) && s.string(&d.StorageType)
		case "pathOrInlineDv":
			return seen.first(1) && s.string(&d.PathOrInlineDV)
		case "offset":
			if !seen.first(2) || s.null() {
				return seen.has(2)
			}
			d.Offset = new(int64)
			return s.long(d.Offset)
		case "sizeInBytes":
			return seen.first(3) && s.long(&d.SizeInBytes)
		case "cardinality":
			return seen.first(4) && s.long(&d.Cardinality)
		}
		return false
	})
}

// members64 are the members that an object had so far.
type members64 uint64

// first reports whether the member comes for the first time.
func (m *members64) first(n int) bool {
	before := *m
	*m |= 1 << n
	return before != *m
}

func (m *members64) has(n int) bool { return *m>>n&1 != 0 }

func (s *briefScan) space() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r' || s.text[s.at] == '\n') {
		s.at++
	}
}

// next passes over white space and the byte c.
func (s *briefScan) next(c byte) bool {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// object passes over an object; member reads the value of each member.
func (s *briefScan) object(member func(name []byte) bool) bool {
	if !s.next('{') {
		return false
	}
	if s.next('}') {
		return true
	}
	for {
		name, plain := s.quoted()
		if !plain || !s.next(':') || !member(name) {
			return false
		}
		if !s.next(',') {
			return s.next('}')
		}
	}
}

// quoted passes over a string and returns what is between its quotes; plain
// says that this is its value. nil when it gives up.
func (s *briefScan) quoted() (inner []byte, plain bool) {
	if !s.next('"') {
		return nil, false
	}
	text, at := s.text, s.at
	plain, ascii := true, true
	for ; at < len(text); at++ {
		c := text[at]
		switch {
		case c == '"':
			inner = text[s.at:at:at]
			s.at = at + 1
			if !ascii && !utf8.Valid(inner) {
				return nil, false
			}
			return inner, plain
		case c == '\\':
			plain = false
			if at++; at == len(text) || !escapes(text[at]) {
				return nil, false
			}
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// escapes reports whether a backslash before c stands for one character.
func escapes(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	}
	return false
}

func (s *briefScan) passString() bool {
	inner, _ := s.quoted()
	return inner != nil
}

func (s *briefScan) string(out *string) bool {
	s.space()
	start := s.at
	inner, plain := s.quoted()
	if inner == nil {
		return false
	}
	if !plain {
		text, err := jsontext.AppendUnquote(nil, s.text[start:s.at])
		if err != nil {
			return false
		}
		inner = text
	}
	*out = string(inner)
	return true
}

// strings reads an object of strings and nulls.
func (s *briefScan) strings(out *map[string]*string) bool {
	if s.null() {
		return true
	}
	values := map[string]*string{}
	*out = values
	return s.object(func(name []byte) bool {
		if _, again := values[string(name)]; again {
			return false
		}
		if s.null() {
			values[string(name)] = nil
			return true
		}
		value := new(string)
		values[string(name)] = value
		return s.string(value)
	})
}

// maxDigits of a decimal number always fit an int64.
const maxDigits = 18

// number passes over an integer.
func (s *briefScan) number() []byte {
	s.space()
	start := s.at
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	first := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	digits := s.at - first
	if digits == 0 || digits > maxDigits || digits > 1 && s.text[first] == '0' {
		return nil
	}
	if s.at < len(s.text) && bytes.IndexByte([]byte(".eE"), s.text[s.at]) >= 0 {
		return nil
	}
	return s.text[start:s.at]
}

func (s *briefScan) passLong() bool { return s.number() != nil }

func (s *briefScan) long(out *int64) (ok bool) {
	n, err := strconv.ParseInt(string(s.number()), 10, 64)
	*out = n
	return err == nil
}

func (s *briefScan) boolean(out *bool) bool {
	*out = s.word("true")
	return *out || s.word("false")
}

func (s *briefScan) null() bool { return s.word("null") }

func (s *briefScan) word(word string) bool {
	s.space()
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}
