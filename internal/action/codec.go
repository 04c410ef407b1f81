package action

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// envelope is one line of a log file: an object with a single action. A
// member that is null is an action that is not there, as some writers spell
// out all kinds.
type envelope struct {
	Add                *addLine            `json:"add"`
	Remove             *removeLine         `json:"remove"`
	CDC                *CDC                `json:"cdc"`
	Txn                *Txn                `json:"txn"`
	CommitInfo         jsontext.Value      `json:"commitInfo"`
	Metadata           *Metadata           `json:"metaData"`
	Protocol           *Protocol           `json:"protocol"`
	DomainMetadata     *DomainMetadata     `json:"domainMetadata"`
	CheckpointMetadata *CheckpointMetadata `json:"checkpointMetadata"`
	Sidecar            *Sidecar            `json:"sidecar"`
	Unknown            jsontext.Value      `json:",embed"`
}

// addLine and removeLine shadow the members whose absence matters: a file of
// unknown size must not pass for an empty one, and a remove without
// dataChange changes data.
type addLine struct {
	Add
	Size *int64 `json:"size"`
}

type removeLine struct {
	Remove
	DataChange *bool `json:"dataChange"`
}

// encodeOptions make one action always the same bytes, and leave the raw text
// of unknown members as it was.
var encodeOptions = json.JoinOptions(
	json.Deterministic(true),
	jsontext.PreserveRawStrings(true),
)

// lenientInts accepts integers with a fraction or an exponent, such as 1.0,
// when their value is exact. No known writer produces them, so it is tried
// only after a first decoding failed.
var lenientInts = json.WithUnmarshalers(json.UnmarshalFromFunc(decodeExactInt))

// Decode decodes one line of a commit file or a JSON checkpoint: an object
// with one action. Members that are null count as absent; among unknown kinds
// the first names the [Unknown]. The result shares no memory with line.
func Decode(line []byte) (Action, error) {
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		var semantic *json.SemanticError
		if !errors.As(err, &semantic) {
			return nil, err
		}
		e = envelope{}
		if json.Unmarshal(line, &e, lenientInts) != nil {
			return nil, err
		}
	}
	return e.action()
}

// action returns the one action of the line.
func (e *envelope) action() (Action, error) {
	var found Action
	count := 0
	take := func(present bool, a Action) {
		if present {
			found = a
			count++
		}
	}
	if e.Add != nil {
		take(true, &e.Add.Add)
	}
	if e.Remove != nil {
		take(true, &e.Remove.Remove)
	}
	take(e.CDC != nil, e.CDC)
	take(e.Txn != nil, e.Txn)
	take(e.Metadata != nil, e.Metadata)
	take(e.Protocol != nil, e.Protocol)
	take(e.DomainMetadata != nil, e.DomainMetadata)
	take(e.CheckpointMetadata != nil, e.CheckpointMetadata)
	take(e.Sidecar != nil, e.Sidecar)
	if len(e.CommitInfo) > 0 && e.CommitInfo.Kind() != 'n' {
		take(true, &CommitInfo{Raw: e.CommitInfo})
	}
	switch count {
	case 0:
		return e.unknown()
	case 1:
		return found, e.check()
	}
	return nil, errors.New("line holds more than one action")
}

// check completes the shadowed members and refuses an action without the
// members that identify it.
func (e *envelope) check() error {
	switch {
	case e.Add != nil:
		if e.Add.Size == nil {
			return missing("add", "size")
		}
		if e.Add.Add.Size = *e.Add.Size; e.Add.Add.Size < 0 {
			return fmt.Errorf("add: size is %d", e.Add.Add.Size)
		}
		return require("add", "path", e.Add.Path)
	case e.Remove != nil:
		e.Remove.Remove.DataChange = e.Remove.DataChange == nil || *e.Remove.DataChange
		return require("remove", "path", e.Remove.Path)
	case e.CDC != nil:
		return require("cdc", "path", e.CDC.Path)
	case e.Txn != nil:
		return require("txn", "appId", e.Txn.AppID)
	case e.DomainMetadata != nil:
		return require("domainMetadata", "domain", e.DomainMetadata.Domain)
	case e.Sidecar != nil:
		return require("sidecar", "path", e.Sidecar.Path)
	}
	return nil
}

func require(kind, member, value string) error {
	if value == "" {
		return missing(kind, member)
	}
	return nil
}

func missing(kind, member string) error {
	return fmt.Errorf("%s: member %q is missing", kind, member)
}

// unknown returns the first unknown member that is not null.
func (e *envelope) unknown() (Action, error) {
	for name, value := range Members(e.Unknown) {
		if value.Kind() != 'n' {
			return &Unknown{Name: name, Raw: value.Clone()}, nil
		}
	}
	return nil, errors.New("line holds no action")
}

// Encode encodes an action as one line, without the newline. Encoding the
// same action twice gives the same bytes; members that Decode did not know
// are written back as they were.
func Encode(a Action) ([]byte, error) {
	var body any = a
	switch a := a.(type) {
	case nil:
		return nil, errors.New("no action to encode")
	case *CommitInfo:
		body = a.Raw
	case *Unknown:
		body = a.Raw
	}
	if raw, ok := body.(jsontext.Value); ok && len(raw) == 0 {
		return nil, fmt.Errorf("%s: nothing to encode", a.Kind())
	}
	return json.Marshal(map[string]any{a.Kind(): body}, encodeOptions)
}

// decodeExactInt decodes a JSON number of any spelling whose value is an
// int64.
func decodeExactInt(dec *jsontext.Decoder, out *int64) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	n, ok := exactInt(raw)
	if !ok {
		return fmt.Errorf("%s is not a 64-bit integer", raw)
	}
	*out = n
	return nil
}

// exactInt parses a JSON number whose value is an int64. The limits keep every
// number that passes exact at the precision used, and cheap.
func exactInt(number []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n, true
	}
	const maxLen, maxExponentLen = 64, 4
	if len(number) > maxLen {
		return 0, false
	}
	if e := bytes.IndexAny(number, "eE"); e >= 0 && len(number)-e > maxExponentLen {
		return 0, false
	}
	f, _, err := big.ParseFloat(string(number), 10, 256, big.ToNearestEven)
	if err != nil || !f.IsInt() {
		return 0, false
	}
	n, accuracy := f.Int64()
	return n, accuracy == big.Exact
}
