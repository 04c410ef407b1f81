package snapshot

import (
	"slices"

	"github.com/deltafs/deltafs/internal/action"
)

// rowScan reads one row of a row group, column by column. It keeps the first
// error, so that a row reads as a list of columns.
type rowScan struct {
	// row is the number of the row in the row group; it must not go back.
	row int64
	err error
}

func scan[T any](s *rowScan, c interface{ skipTo(row int64) error }, read func() (T, error)) (out T) {
	if s.err == nil {
		s.err = c.skipTo(s.row)
	}
	if s.err == nil {
		out, s.err = read()
	}
	return out
}

// text is nil when null.
func (s *rowScan) text(c *column) *string {
	b := scan(s, c, c.text)
	if b == nil {
		return nil
	}
	text := string(b)
	return &text
}

// long is nil when null.
func (s *rowScan) long(c *column) *int64 { return scan(s, c, c.long).pointer() }

// flag is false when null.
func (s *rowScan) flag(c *column) bool { return scan(s, c, c.flag) }

func (s *rowScan) list(c *column) []string { return scan(s, c, c.list) }

func (s *rowScan) entries(c *mapColumn) map[string]*string { return scan(s, c, c.next) }

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// stateKind reads the actions of one kind that is not about files. A row holds
// one action, so the columns of a kind are null in all rows but its own.
type stateKind struct {
	// probes are the columns of which one is not null where an action may be.
	probes []*column
	read   func(*rowScan) action.Action
}

// readState reads every action of a row group that is not about files. What it
// costs grows with these actions and with the size of the columns that probe
// for them, which hold little but nulls.
func readState(g *rowGroupColumns, emit func(action.Action) error) error {
	return readKinds(g, emit, protocolKind, metadataKind, txnKind, domainKind, checkpointMetadataKind, sidecarKind)
}

// readKinds reads the actions of some kinds.
func readKinds(g *rowGroupColumns, emit func(action.Action) error, kinds ...func(*rowGroupColumns) stateKind) error {
	for _, kind := range kinds {
		k := kind(g)
		if g.err != nil {
			return g.err
		}
		rows, err := k.rows()
		if err != nil {
			return err
		}
		for _, row := range rows {
			s := &rowScan{row: row}
			a := k.read(s)
			if s.err != nil {
				return s.err
			}
			if a == nil {
				continue
			}
			if err := emit(a); err != nil {
				return err
			}
		}
		g.close()
	}
	return nil
}

// rows returns the numbers of the rows where an action may be, ascending.
func (k stateKind) rows() (rows []int64, err error) {
	for _, probe := range k.probes {
		if err := probe.present(func(row int64) { rows = append(rows, row) }); err != nil {
			return nil, err
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}

func protocolKind(g *rowGroupColumns) stateKind {
	reader, writer := g.long("protocol", "minReaderVersion"), g.long("protocol", "minWriterVersion")
	readerFeatures, writerFeatures := g.list("protocol", "readerFeatures"), g.list("protocol", "writerFeatures")
	return stateKind{
		probes: []*column{g.long("protocol", "minReaderVersion")},
		read: func(s *rowScan) action.Action {
			r, w := s.long(reader), s.long(writer)
			p := &action.Protocol{
				MinReaderVersion: int(value(r)), MinWriterVersion: int(value(w)),
				ReaderFeatures: s.list(readerFeatures), WriterFeatures: s.list(writerFeatures),
			}
			if r == nil || w == nil {
				return nil
			}
			return p
		},
	}
}

func metadataKind(g *rowGroupColumns) stateKind {
	id, name := g.text("metaData", "id"), g.text("metaData", "name")
	description, schema := g.text("metaData", "description"), g.text("metaData", "schemaString")
	provider, options := g.text("metaData", "format", "provider"), g.mapping("metaData", "format", "options")
	partitionColumns := g.list("metaData", "partitionColumns")
	created, configuration := g.long("metaData", "createdTime"), g.mapping("metaData", "configuration")
	return stateKind{
		probes: []*column{g.text("metaData", "id"), g.text("metaData", "schemaString")},
		read: func(s *rowScan) action.Action {
			return &action.Metadata{
				ID: value(s.text(id)), SchemaString: value(s.text(schema)),
				Name: s.text(name), Description: s.text(description),
				Format:           action.Format{Provider: value(s.text(provider)), Options: plain(s.entries(options))},
				PartitionColumns: s.list(partitionColumns), CreatedTime: s.long(created),
				Configuration: plain(s.entries(configuration)),
			}
		},
	}
}

// plain drops the entries without a value.
func plain(in map[string]*string) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		if v != nil {
			out[k] = *v
		}
	}
	return out
}

func txnKind(g *rowGroupColumns) stateKind {
	app, version, updated := g.text("txn", "appId"), g.long("txn", "version"), g.long("txn", "lastUpdated")
	return stateKind{
		probes: []*column{g.text("txn", "appId")},
		read: func(s *rowScan) action.Action {
			return &action.Txn{AppID: value(s.text(app)), Version: value(s.long(version)), LastUpdated: s.long(updated)}
		},
	}
}

func domainKind(g *rowGroupColumns) stateKind {
	domain, configuration := g.text("domainMetadata", "domain"), g.text("domainMetadata", "configuration")
	removed := g.flag("domainMetadata", "removed")
	return stateKind{
		probes: []*column{g.text("domainMetadata", "domain")},
		read: func(s *rowScan) action.Action {
			return &action.DomainMetadata{
				Domain: value(s.text(domain)), Configuration: value(s.text(configuration)), Removed: s.flag(removed),
			}
		},
	}
}

func checkpointMetadataKind(g *rowGroupColumns) stateKind {
	version := g.long("checkpointMetadata", "version")
	return stateKind{
		probes: []*column{g.long("checkpointMetadata", "version")},
		read: func(s *rowScan) action.Action {
			return &action.CheckpointMetadata{Version: value(s.long(version))}
		},
	}
}

// sidecarKind reads a sidecar without a path too, so that it does not go
// unnoticed.
func sidecarKind(g *rowGroupColumns) stateKind {
	path, size := g.text("sidecar", "path"), g.long("sidecar", "sizeInBytes")
	modified := g.long("sidecar", "modificationTime")
	return stateKind{
		probes: []*column{g.text("sidecar", "path"), g.long("sidecar", "sizeInBytes")},
		read: func(s *rowScan) action.Action {
			return &action.Sidecar{Path: value(s.text(path)), SizeInBytes: value(s.long(size)), ModificationTime: value(s.long(modified))}
		},
	}
}
