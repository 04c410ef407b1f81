package tables

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"time"
)

const protocolJSON = `{"minReaderVersion":1,"minWriterVersion":2}`

// properties keep engines that append from checkpointing and cleaning up by
// their own clock.
var properties = map[string]string{"delta.checkpointInterval": "100", "delta.enableExpiredLogCleanup": "false"}

const firstDay = "2020-01-01"

// fileNames makes up the files of a table by number, in partitions whose sizes
// follow Zipf's law: the second has half the files of the first, and so on.
type fileNames struct {
	// cumulative is the share of files in the first n partitions.
	cumulative []float64
	// dates are the partitions' values, largest partition first.
	dates []string
}

func newFileNames(partitions int) fileNames {
	n := fileNames{cumulative: make([]float64, partitions), dates: make([]string, partitions)}
	sum := 0.0
	for i := range n.cumulative {
		sum += 1 / float64(i+1)
		n.cumulative[i] = sum
	}
	for i := range n.cumulative {
		n.cumulative[i] /= sum
	}
	first, err := time.Parse(time.DateOnly, firstDay)
	if err != nil {
		panic(err) // a constant
	}
	for i, day := range rand.New(rand.NewPCG(3, 4)).Perm(partitions) {
		n.dates[i] = first.AddDate(0, 0, day).Format(time.DateOnly)
	}
	return n
}

func (n fileNames) schema() string {
	field := func(name, kind string) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"nullable":true,"metadata":{}}`, name, kind)
	}
	return `{"type":"struct","fields":[` + field("id", "long") + "," + field("ts", "timestamp") + "," +
		field("amount", "double") + "," + field("name", "string") + "," + field("date", "date") + `]}`
}

func (n fileNames) partitionColumns() []string { return []string{"date"} }

// partition returns the partition that file id is in.
func (n fileNames) partition(id int64) int {
	share := float64(mix(uint64(id))>>11) / (1 << 53)
	return sort.SearchFloat64s(n.cumulative, share)
}

func (n fileNames) directory(partition int) string { return "date=" + n.dates[partition] }

// file is what the log says of one file that is added.
type file struct {
	partition         int
	path, date, stats string
	size, modified    int64
}

func (n fileNames) file(id int64) file {
	a, b := mix(uint64(id)+1<<40), mix(uint64(id)+1<<41)
	partition := n.partition(id)
	rows := 1000 + int64(a%9000)
	low := id * 10_000
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(id) * time.Second)
	const layout = "2006-01-02T15:04:05.000Z"
	return file{
		partition: partition,
		path: fmt.Sprintf("%s/part-%05d-%08x-%04x-4%03x-8%03x-%012x.c000.snappy.parquet", n.directory(partition),
			id%100, a>>32, a>>16&0xffff, a>>4&0xfff, b>>52, b&0xffffffffffff),
		date: n.dates[partition],
		stats: fmt.Sprintf(`{"numRecords":%d,"minValues":{"id":%d,"ts":"%s","amount":%.2f,"name":"customer-%06d"},`+
			`"maxValues":{"id":%d,"ts":"%s","amount":%.2f,"name":"customer-%06d"},"nullCount":{"id":0,"ts":0,"amount":%d,"name":%d}}`,
			rows, low, at.Format(layout), float64(a%10_000)/100, a%1000,
			low+rows-1, at.Add(59*time.Minute).Format(layout), 1000+float64(b%100_000)/100, 999_000+b%1000, a%17, b%13),
		size:     rows * 40,
		modified: at.UnixMilli(),
	}
}

func (f file) appendAdd(b []byte) []byte {
	b = append(b, `{"add":{"path":"`...)
	b = append(b, f.path...)
	b = append(b, `","partitionValues":{"date":"`...)
	b = append(b, f.date...)
	b = append(b, `"},"size":`...)
	b = strconv.AppendInt(b, f.size, 10)
	b = append(b, `,"modificationTime":`...)
	b = strconv.AppendInt(b, f.modified, 10)
	b = append(b, `,"dataChange":true,"stats":`...)
	b = strconv.AppendQuote(b, f.stats)
	return append(b, "}}\n"...)
}

// tombstone is a file that was removed.
type tombstone struct {
	file
	at time.Time
}

func (t tombstone) appendRemove(b []byte) []byte {
	return fmt.Appendf(b, `{"remove":{"path":%q,"deletionTimestamp":%d,"dataChange":true,"extendedFileMetadata":true,`+
		`"partitionValues":{"date":%q},"size":%d}}`+"\n", t.path, t.at.UnixMilli(), t.date, t.size)
}

// metaData is the action's content.
type metaData struct {
	ID               string            `json:"id"`
	Format           map[string]any    `json:"format"`
	SchemaString     string            `json:"schemaString"`
	PartitionColumns []string          `json:"partitionColumns"`
	Configuration    map[string]string `json:"configuration"`
	CreatedTime      int64             `json:"createdTime"`
}

func metaDataJSON(schema string, partition []string, at time.Time) []byte {
	out, err := json.Marshal(metaData{
		ID:     "00000000-0000-4000-8000-00000000beef",
		Format: map[string]any{"provider": "parquet", "options": map[string]string{}}, SchemaString: schema,
		PartitionColumns: partition, Configuration: properties, CreatedTime: at.UnixMilli(),
	})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return out
}

// mix spreads a number over 64 bits (splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
