package action

import "github.com/go-json-experiment/json/jsontext"

// Member returns a top-level member as raw JSON; false when it is absent or
// null. The other accessors build on it: each answers false when its member
// is absent or of another type than Spark writes, and none ever fails.
func (c *CommitInfo) Member(name string) (jsontext.Value, bool) {
	for n, value := range Members(c.Raw) {
		if n == name {
			return value.Clone(), value.Kind() != 'n'
		}
	}
	return nil, false
}

// Timestamp is the writer's clock, in milliseconds since the epoch.
func (c *CommitInfo) Timestamp() (int64, bool) { return c.long("timestamp") }

// InCommitTimestamp is the commit time of a table with in-commit timestamps,
// in milliseconds since the epoch.
func (c *CommitInfo) InCommitTimestamp() (int64, bool) { return c.long("inCommitTimestamp") }

// ReadVersion is the table version that the commit was based on.
func (c *CommitInfo) ReadVersion() (int64, bool) { return c.long("readVersion") }

// Operation is the name of the operation, such as "WRITE".
func (c *CommitInfo) Operation() (string, bool) { return c.text("operation") }

// EngineInfo names the writer.
func (c *CommitInfo) EngineInfo() (string, bool) { return c.text("engineInfo") }

// TxnID is the unique id of the commit.
func (c *CommitInfo) TxnID() (string, bool) { return c.text("txnId") }

// UserMetadata is what the user attached to the commit.
func (c *CommitInfo) UserMetadata() (string, bool) { return c.text("userMetadata") }

// IsolationLevel is the isolation level that the commit claims.
func (c *CommitInfo) IsolationLevel() (string, bool) { return c.text("isolationLevel") }

// UserID identifies the user who committed.
func (c *CommitInfo) UserID() (string, bool) { return c.text("userId") }

// UserName names the user who committed.
func (c *CommitInfo) UserName() (string, bool) { return c.text("userName") }

// ClusterID identifies the cluster that committed.
func (c *CommitInfo) ClusterID() (string, bool) { return c.text("clusterId") }

// IsBlindAppend says that the commit read nothing of the table.
func (c *CommitInfo) IsBlindAppend() (value, ok bool) {
	raw, ok := c.Member("isBlindAppend")
	if !ok || (raw.Kind() != 't' && raw.Kind() != 'f') {
		return false, false
	}
	return raw.Kind() == 't', true
}

// OperationParameters are the parameters of the operation, as raw JSON.
func (c *CommitInfo) OperationParameters() (map[string]jsontext.Value, bool) {
	return c.object("operationParameters")
}

// OperationMetrics are the metrics of the operation, as raw JSON: Spark writes
// strings, others numbers.
func (c *CommitInfo) OperationMetrics() (map[string]jsontext.Value, bool) {
	return c.object("operationMetrics")
}

func (c *CommitInfo) long(name string) (int64, bool) {
	raw, ok := c.Member(name)
	if !ok || raw.Kind() != '0' {
		return 0, false
	}
	return exactInt(raw)
}

func (c *CommitInfo) text(name string) (string, bool) {
	raw, ok := c.Member(name)
	if !ok || raw.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err == nil
}

func (c *CommitInfo) object(name string) (map[string]jsontext.Value, bool) {
	raw, ok := c.Member(name)
	if !ok || raw.Kind() != '{' {
		return nil, false
	}
	out := map[string]jsontext.Value{}
	for name, value := range Members(raw) {
		out[name] = value.Clone()
	}
	return out, true
}
