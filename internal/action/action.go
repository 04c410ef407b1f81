package action

import "github.com/go-json-experiment/json/jsontext"

// Action is one line of a commit file. It is implemented by *[Protocol],
// *[Metadata], *[Add], *[Remove], *[CDC], *[Txn], *[DomainMetadata],
// *[CommitInfo], *[CheckpointMetadata], *[Sidecar] and *[Unknown].
type Action interface {
	// Kind is the single member name of the line: "add", "metaData", ….
	Kind() string
}

// Protocol says which versions and table features a client must know
// (protocol section "Protocol Evolution"). The feature lists are nil when
// absent, which is not the same as empty.
type Protocol struct {
	MinReaderVersion int            `json:"minReaderVersion"`
	MinWriterVersion int            `json:"minWriterVersion"`
	ReaderFeatures   []string       `json:"readerFeatures,omitzero"`
	WriterFeatures   []string       `json:"writerFeatures,omitzero"`
	Extra            jsontext.Value `json:",embed"`
}

// Metadata is the table's metadata (protocol section "Change Metadata"). A
// metaData action replaces the one before it as a whole.
type Metadata struct {
	ID               string            `json:"id"`
	Name             *string           `json:"name,omitzero"`
	Description      *string           `json:"description,omitzero"`
	Format           Format            `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	CreatedTime      *int64            `json:"createdTime,omitzero"`
	Configuration    map[string]string `json:"configuration"`
	Extra            jsontext.Value    `json:",embed"`
}

// Format is the file format of a table, always Parquet.
type Format struct {
	Provider string            `json:"provider"`
	Options  map[string]string `json:"options"`
}

// Add puts a data file into the table (protocol section "Add File and Remove
// File"). Path is as in the log: URI-encoded, relative to the table root or
// absolute.
type Add struct {
	Path                    string             `json:"path"`
	PartitionValues         map[string]*string `json:"partitionValues"`
	Size                    int64              `json:"size"`
	ModificationTime        int64              `json:"modificationTime"`
	DataChange              bool               `json:"dataChange"`
	Stats                   string             `json:"stats,omitzero"`
	Tags                    map[string]*string `json:"tags,omitzero"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitzero"`
	BaseRowID               *int64             `json:"baseRowId,omitzero"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitzero"`
	ClusteringProvider      *string            `json:"clusteringProvider,omitzero"`
	Extra                   jsontext.Value     `json:",embed"`
}

// Remove takes a data file out of the table; it stays as a tombstone until
// its retention ends. Path must be byte-identical to the add's.
type Remove struct {
	Path                    string             `json:"path"`
	DeletionTimestamp       *int64             `json:"deletionTimestamp,omitzero"`
	DataChange              bool               `json:"dataChange"`
	ExtendedFileMetadata    *bool              `json:"extendedFileMetadata,omitzero"`
	PartitionValues         map[string]*string `json:"partitionValues,omitzero"`
	Size                    *int64             `json:"size,omitzero"`
	Stats                   string             `json:"stats,omitzero"`
	Tags                    map[string]*string `json:"tags,omitzero"`
	DeletionVector          *DeletionVector    `json:"deletionVector,omitzero"`
	BaseRowID               *int64             `json:"baseRowId,omitzero"`
	DefaultRowCommitVersion *int64             `json:"defaultRowCommitVersion,omitzero"`
	Extra                   jsontext.Value     `json:",embed"`
}

// DeletionVector describes the deleted rows of one data file (protocol
// section "Deletion Vectors").
type DeletionVector struct {
	StorageType    string         `json:"storageType"`
	PathOrInlineDV string         `json:"pathOrInlineDv"`
	Offset         *int64         `json:"offset,omitzero"`
	SizeInBytes    int64          `json:"sizeInBytes"`
	Cardinality    int64          `json:"cardinality"`
	Extra          jsontext.Value `json:",embed"`
}

// CDC names a change data file; it has no effect on the table's state.
type CDC struct {
	Path            string             `json:"path"`
	PartitionValues map[string]*string `json:"partitionValues"`
	Size            int64              `json:"size"`
	DataChange      bool               `json:"dataChange"`
	Tags            map[string]*string `json:"tags,omitzero"`
	Extra           jsontext.Value     `json:",embed"`
}

// Txn records the progress of an application, for exactly-once writes.
type Txn struct {
	AppID       string         `json:"appId"`
	Version     int64          `json:"version"`
	LastUpdated *int64         `json:"lastUpdated,omitzero"`
	Extra       jsontext.Value `json:",embed"`
}

// DomainMetadata is a named configuration of a feature or an application.
type DomainMetadata struct {
	Domain        string         `json:"domain"`
	Configuration string         `json:"configuration"`
	Removed       bool           `json:"removed"`
	Extra         jsontext.Value `json:",embed"`
}

// CommitInfo is the provenance of a commit. Writers put anything there, so
// it is kept as raw JSON and read through tolerant accessors.
type CommitInfo struct {
	Raw jsontext.Value
}

// CheckpointMetadata marks a V2 checkpoint.
type CheckpointMetadata struct {
	Version int64             `json:"version"`
	Tags    map[string]string `json:"tags,omitzero"`
	Extra   jsontext.Value    `json:",embed"`
}

// Sidecar names a file with the file actions of a V2 checkpoint.
type Sidecar struct {
	Path             string            `json:"path"`
	SizeInBytes      int64             `json:"sizeInBytes"`
	ModificationTime int64             `json:"modificationTime"`
	Tags             map[string]string `json:"tags,omitzero"`
	Extra            jsontext.Value    `json:",embed"`
}

// Unknown is an action of a kind this program does not know.
type Unknown struct {
	Name string
	Raw  jsontext.Value
}

// Kind implements Action.
func (*Protocol) Kind() string { return "protocol" }

// Kind implements Action.
func (*Metadata) Kind() string { return "metaData" }

// Kind implements Action.
func (*Add) Kind() string { return "add" }

// Kind implements Action.
func (*Remove) Kind() string { return "remove" }

// Kind implements Action.
func (*CDC) Kind() string { return "cdc" }

// Kind implements Action.
func (*Txn) Kind() string { return "txn" }

// Kind implements Action.
func (*DomainMetadata) Kind() string { return "domainMetadata" }

// Kind implements Action.
func (*CommitInfo) Kind() string { return "commitInfo" }

// Kind implements Action.
func (*CheckpointMetadata) Kind() string { return "checkpointMetadata" }

// Kind implements Action.
func (*Sidecar) Kind() string { return "sidecar" }

// Kind implements Action.
func (u *Unknown) Kind() string { return u.Name }
