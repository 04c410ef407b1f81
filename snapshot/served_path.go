package snapshot

import "strings"

// encodePath is a path relative to the table's root as add.path spells it
// (protocol section "Add File and Remove File"): a URI, of which every engine
// makes the same path. It encodes more than it must: readers that do not know of
// URIs with other than ASCII characters, or take what is before a colon for a
// scheme, are helped by it.
func encodePath(p string) string {
	const plain = "-._~!$&'()*+,;=@/"
	var b strings.Builder
	for i := range len(p) {
		c := p[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if letter || strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}
