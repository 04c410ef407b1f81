package snapshot

// dirNames makes the directories of files, each once.
type dirNames struct {
	fields []Field
	// known are the directories by the spelling of the partition values.
	known map[string]string
	key   []byte
	// mapped is a map of partition values as entries.
	mapped entries
}

func newDirNames(fields []Field) *dirNames {
	return &dirNames{fields: fields, known: map[string]string{}}
}

// of returns the directory for partition values.
func (d *dirNames) of(values entries) string {
	if len(d.fields) == 0 {
		return ""
	}
	d.key = values.appendTo(d.key[:0])
	dir, ok := d.known[string(d.key)]
	if !ok {
		dir = PartitionDir(d.fields, values.toMap())
		d.known[string(d.key)] = dir
	}
	return dir
}

// ofMap is of for partition values in any order.
func (d *dirNames) ofMap(values map[string]*string) string {
	d.mapped.keys, d.mapped.values = d.mapped.keys[:0], d.mapped.values[:0]
	for key, value := range values {
		d.mapped.add(key, value)
	}
	return d.of(d.mapped)
}
