package writer

import (
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// slot is the name of a staged file in the area: "s<base>-<id>". The id is
// unique and becomes a part of the name of the data file, and the commit comes
// after the version base. So the name alone tells what to look for in the log
// when nothing else is known of the file.
type slot string

func newSlot(base int64) slot {
	return slot("s" + strconv.FormatInt(max(base, 0), 10) + "-" + uuid.NewString())
}

// parse takes the name apart.
func (s slot) parse() (base int64, id string, ok bool) {
	rest, ok := strings.CutPrefix(string(s), "s")
	if !ok {
		return 0, "", false
	}
	number, id, ok := strings.Cut(rest, "-")
	if !ok || uuid.Validate(id) != nil || len(id) != idLen {
		return 0, "", false
	}
	base, err := strconv.ParseInt(number, 10, 64)
	return base, id, err == nil && base >= 0
}

// id is the unique part of the name.
func (s slot) id() string {
	_, id, _ := s.parse()
	return id
}

// isSlot reports whether a directory entry is a staged file.
func isSlot(name string) bool {
	_, _, ok := slot(name).parse()
	return ok
}
