package writer

import (
	"fmt"
	"strconv"

	"github.com/deltafs/deltafs/internal/action"
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/go-json-experiment/json"
)

// commitInfo is the provenance of a commit, with the members and the types
// that Spark writes and expects (protocol section "Commit Provenance
// Information").
type commitInfo struct {
	Timestamp           int64             `json:"timestamp"`
	InCommitTimestamp   *int64            `json:"inCommitTimestamp,omitzero"`
	Operation           string            `json:"operation"`
	OperationParameters map[string]any    `json:"operationParameters"`
	ReadVersion         *int64            `json:"readVersion,omitzero"`
	IsolationLevel      string            `json:"isolationLevel"`
	IsBlindAppend       bool              `json:"isBlindAppend"`
	OperationMetrics    map[string]string `json:"operationMetrics"`
	UserMetadata        string            `json:"userMetadata,omitzero"`
	EngineInfo          string            `json:"engineInfo"`
	TxnID               string            `json:"txnId"`
}

// commitInfo describes the attempt at t.version. inCommitTime is nil without
// in-commit timestamps.
func (t *txn) commitInfo(now int64, inCommitTime *int64, engineInfo string) (*action.CommitInfo, error) {
	info := commitInfo{
		Timestamp:         now,
		InCommitTimestamp: inCommitTime,
		Operation:         t.spec.Operation,
		IsolationLevel:    "Serializable",
		IsBlindAppend:     t.spec.BlindAppend(),
		OperationMetrics:  t.spec.Metrics,
		UserMetadata:      t.spec.UserMetadata,
		EngineInfo:        engineInfo,
		TxnID:             t.id,
	}
	if !t.spec.changesData() {
		info.IsolationLevel = "SnapshotIsolation"
	}
	if t.spec.Base >= 0 {
		info.ReadVersion = &t.spec.Base
	}
	parameters := t.spec.Parameters
	if t.spec.Operation == "WRITE" {
		if parameters == nil {
			parameters = map[string]any{
				"mode":        "Append",
				"partitionBy": t.base.with(t.spec.Actions).metadata.PartitionColumns,
			}
		}
		if info.OperationMetrics == nil {
			info.OperationMetrics = writeMetrics(t.spec.Actions)
		}
	}
	var err error
	if info.OperationParameters, err = scalars(parameters); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(info, json.Deterministic(true))
	if err != nil {
		return nil, fault.Wrap(ErrInvalid, err, "cannot encode commitInfo")
	}
	return &action.CommitInfo{Raw: raw}, nil
}

// scalars replaces what is no scalar by its JSON text: Spark fails to read
// nested parameters.
func scalars(parameters map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(parameters))
	for name, value := range parameters {
		switch value.(type) {
		case nil, string, bool, int, int32, int64, float64:
			out[name] = value
			continue
		}
		text, err := json.Marshal(value, json.Deterministic(true))
		if err != nil {
			return nil, fault.Wrap(ErrInvalid, err, "cannot encode the operation parameter %q", name)
		}
		out[name] = string(text)
	}
	return out, nil
}

// writeMetrics counts what a WRITE did. Rows are left out when a file does not
// tell its own.
func writeMetrics(actions []action.Action) map[string]string {
	var files, bytes, rows, removed, removedBytes int64
	for _, a := range actions {
		switch a := a.(type) {
		case *action.Add:
			files++
			bytes += a.Size
			if n := a.NumRecords(); n < 0 {
				rows = -1
			} else if rows >= 0 {
				rows += n
			}
		case *action.Remove:
			removed++
			if a.Size != nil {
				removedBytes += *a.Size
			}
		}
	}
	out := map[string]string{"numFiles": fmt.Sprint(files), "numOutputBytes": fmt.Sprint(bytes)}
	if rows >= 0 {
		out["numOutputRows"] = strconv.FormatInt(rows, 10)
	}
	if removed > 0 {
		out["numRemovedFiles"] = fmt.Sprint(removed)
		out["numRemovedBytes"] = fmt.Sprint(removedBytes)
	}
	return out
}
