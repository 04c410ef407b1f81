package writer

import (
	"strconv"
	"strings"

	"github.com/deltafs/deltafs/snapshot"
)

// columnSet is a set of column paths, in lower case.
type columnSet map[string]bool

// columnKey joins a path with a byte that no name holds.
func columnKey(path []string) string { return strings.ToLower(strings.Join(path, "\x00")) }

func (s columnSet) has(path []string) bool { return s[columnKey(path)] }

// indexedColumns are the leaves that get statistics: those that
// delta.dataSkippingStatsColumns names, else the first
// delta.dataSkippingNumIndexedCols in schema order (-1 means all), and the
// clustering columns in any case. Partition columns do not count.
func indexedColumns(t *target) columnSet {
	set := columnSet{}
	limit := defaultIndexedColumns
	if text, ok := property(t.config, "delta.dataSkippingNumIndexedCols"); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= -1 {
			limit = n
		}
	}
	var named [][]string
	text, byName := property(t.config, "delta.dataSkippingStatsColumns")
	if byName {
		// A list that does not parse names nothing: no statistics are better
		// than those of columns that were left out on purpose.
		if list, ok := parseColumnList(text); ok {
			named = list
		}
	}
	n := 0
	walk := &snapshot.Schema{Fields: dataFields(t)}
	walk.Leaves(func(fields []snapshot.Field) bool {
		path := make([]string, len(fields))
		for i, f := range fields {
			path[i] = f.Name
		}
		wanted := limit < 0 || n < limit
		if byName {
			wanted = underAny(path, named)
		}
		if wanted || underAny(path, t.clustering) {
			set[columnKey(path)] = true
		}
		n++
		return true
	})
	return set
}

// underAny reports whether one of the prefixes leads to path.
func underAny(path []string, prefixes [][]string) bool {
	for _, p := range prefixes {
		if len(p) > 0 && len(p) <= len(path) && columnKey(p) == columnKey(path[:len(p)]) {
			return true
		}
	}
	return false
}

// parseColumnList splits a list of column names as Spark SQL spells them:
// separated by commas, nested names by dots, odd names in backquotes with a
// backquote doubled. It is false if a backquote is not closed.
func parseColumnList(text string) (columns [][]string, ok bool) {
	var path []string
	var name strings.Builder
	quoted, wasQuoted := false, false
	endName := func() {
		s := name.String()
		if !wasQuoted {
			s = strings.TrimSpace(s)
		}
		path = append(path, s)
		name.Reset()
		wasQuoted = false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '`' && i+1 < len(text) && text[i+1] == '`':
			name.WriteByte('`')
			i++
		case c == '`':
			if !quoted {
				name.Reset() // blanks before the name
				wasQuoted = true
			}
			quoted = !quoted
		case quoted:
			name.WriteByte(c)
		case c == '.':
			endName()
		case c == ',':
			endName()
			columns, path = append(columns, path), nil
		case wasQuoted && (c == ' ' || c == '\t'):
		default:
			name.WriteByte(c)
		}
	}
	endName()
	return append(columns, path), !quoted
}
