package action

import (
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

const sparkInfo = `{"timestamp":1700000000123,"inCommitTimestamp":1700000000124,"userId":"1","userName":"me","operation":"WRITE",
"operationParameters":{"mode":"Append","partitionBy":"[\"d\"]","auto":false},"clusterId":"c","readVersion":41,"isolationLevel":"Serializable",
"isBlindAppend":true,"operationMetrics":{"numFiles":"1","n":2},"userMetadata":"note \u00e4","engineInfo":"Spark/4","txnId":"t-1"}`

func TestCommitInfoAccessors(t *testing.T) {
	c := &CommitInfo{Raw: []byte(sparkInfo)}
	got := map[string]any{}
	put := func(name string, value any, ok bool) {
		if ok {
			got[name] = value
		}
	}
	read := func(c *CommitInfo) map[string]any {
		clear(got)
		long := func(name string, f func() (int64, bool)) { v, ok := f(); put(name, v, ok) }
		text := func(name string, f func() (string, bool)) { v, ok := f(); put(name, v, ok) }
		long("timestamp", c.Timestamp)
		long("inCommitTimestamp", c.InCommitTimestamp)
		long("readVersion", c.ReadVersion)
		text("operation", c.Operation)
		text("engineInfo", c.EngineInfo)
		text("txnId", c.TxnID)
		text("userMetadata", c.UserMetadata)
		text("isolationLevel", c.IsolationLevel)
		text("userId", c.UserID)
		text("userName", c.UserName)
		text("clusterId", c.ClusterID)
		blind, ok := c.IsBlindAppend()
		put("isBlindAppend", blind, ok)
		parameters, ok := c.OperationParameters()
		put("operationParameters", parameters, ok)
		metrics, ok := c.OperationMetrics()
		put("operationMetrics", metrics, ok)
		return got
	}
	want := map[string]any{
		"timestamp": int64(1700000000123), "inCommitTimestamp": int64(1700000000124), "readVersion": int64(41),
		"operation": "WRITE", "engineInfo": "Spark/4", "txnId": "t-1", "userMetadata": "note ä", "isolationLevel": "Serializable",
		"userId": "1", "userName": "me", "clusterId": "c", "isBlindAppend": true,
		"operationParameters": map[string]jsontext.Value{"mode": []byte(`"Append"`), "partitionBy": []byte(`"[\"d\"]"`), "auto": []byte(`false`)},
		"operationMetrics":    map[string]jsontext.Value{"numFiles": []byte(`"1"`), "n": []byte(`2`)},
	}
	if got := read(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, raw := range []string{
		``, `{}`, `[]`, `null`, `"x"`, `{"timestamp":`, `{"timestamp":"1","operation":1,"isBlindAppend":"true","operationParameters":[],"txnId":{}}`,
		`{"timestamp":null,"operation":null,"isBlindAppend":null,"operationMetrics":null}`, `{"timestamp":1.5,"readVersion":1e99}`, "\xff",
		`{"Timestamp":1,"Operation":"x"}`,
	} {
		if got := read(&CommitInfo{Raw: []byte(raw)}); len(got) != 0 {
			t.Errorf("%s: got %v, want nothing", raw, got)
		}
	}
	if v, ok := (&CommitInfo{Raw: []byte(`{"x":[1],"timestamp":1.7e3}`)}).Timestamp(); !ok || v != 1700 {
		t.Errorf("exact exponent: got %d, %v", v, ok)
	}
}
