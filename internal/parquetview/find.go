package parquetview

import (
	"strings"

	"github.com/deltafs/deltafs/internal/parquetfile"
)

// manyMembers is from how many columns on a group is looked up in maps.
const manyMembers = 32

// members are the columns of a group by field id, by name, and by name in lower
// case.
type members struct {
	byID           map[int32][]*parquetfile.Node
	byName, folded map[string][]*parquetfile.Node
}

// find returns the member of a group that a source means, or nil: the one with
// the id, or with the name, or else with the name in another case.
func (m *matcher) find(s Source, group *parquetfile.Node) (*parquetfile.Node, error) {
	if s.ByID && !m.identified {
		return nil, m.fail(ErrMismatch, "the file has no field ids to find it by")
	}
	var found []*parquetfile.Node
	if len(group.Children) < manyMembers {
		found = s.scan(group.Children)
	} else {
		found = m.index(group).lookup(s)
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	return nil, m.fail(ErrMismatch, "the file has %d columns that it could be, such as %q and %q",
		len(found), found[0].Name, found[1].Name)
}

func (s Source) scan(children []*parquetfile.Node) []*parquetfile.Node {
	which := func(is func(c *parquetfile.Node) bool) (found []*parquetfile.Node) {
		for _, c := range children {
			if is(c) {
				found = append(found, c)
			}
		}
		return found
	}
	if s.ByID {
		return which(func(c *parquetfile.Node) bool { return c.Identified && c.ID == s.ID })
	}
	if found := which(func(c *parquetfile.Node) bool { return c.Name == s.Name }); found != nil {
		return found
	}
	folded := strings.ToLower(s.Name)
	return which(func(c *parquetfile.Node) bool { return strings.ToLower(c.Name) == folded })
}

func (m *matcher) index(group *parquetfile.Node) *members {
	if i := m.members[group]; i != nil {
		return i
	}
	i := &members{
		byID: map[int32][]*parquetfile.Node{}, byName: map[string][]*parquetfile.Node{}, folded: map[string][]*parquetfile.Node{},
	}
	for _, c := range group.Children {
		if c.Identified {
			i.byID[c.ID] = append(i.byID[c.ID], c)
		}
		i.byName[c.Name] = append(i.byName[c.Name], c)
		folded := strings.ToLower(c.Name)
		i.folded[folded] = append(i.folded[folded], c)
	}
	m.members[group] = i
	return i
}

func (i *members) lookup(s Source) []*parquetfile.Node {
	if s.ByID {
		return i.byID[s.ID]
	}
	if found := i.byName[s.Name]; found != nil {
		return found
	}
	return i.folded[strings.ToLower(s.Name)]
}
