package parquetfile

// Element returns the element of a list (LogicalTypes.md, "Lists" with its
// backward-compatibility rules) and the definition level of an entry that has
// an element, null or not. It is nil if the group is not a well-formed list.
func (n *Node) Element() (element *Node, present int) {
	if n.Leaf() || n.Logical.Kind != List || len(n.Children) != 1 || !n.Children[0].Repeated() {
		return nil, 0
	}
	middle := n.Children[0]
	present = middle.MaxDefinition
	switch {
	case middle.Leaf(), len(middle.Children) > 1, middle.Children[0].Repeated(),
		middle.Name == "array", middle.Name == n.Name+"_tuple":
		return middle, present
	}
	return middle.Children[0], present
}

// KeyValue returns the key and the value of a map (LogicalTypes.md, "Maps") and
// the definition level of an entry that has them. They are nil if the group is
// not a well-formed map.
func (n *Node) KeyValue() (key, value *Node, present int) {
	if n.Leaf() || n.Logical.Kind != Map || len(n.Children) != 1 {
		return nil, nil, 0
	}
	middle := n.Children[0]
	if middle.Leaf() || !middle.Repeated() || len(middle.Children) != 2 ||
		middle.Children[0].Repeated() || middle.Children[1].Repeated() {
		return nil, nil, 0
	}
	return middle.Children[0], middle.Children[1], middle.MaxDefinition
}
