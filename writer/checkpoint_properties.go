package writer

import (
	"strconv"
	"strings"
	"time"

	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// defaultCheckpointInterval is delta.checkpointInterval when not set.
const defaultCheckpointInterval = 10

// checkpointInterval is after how many commits a checkpoint is due.
func checkpointInterval(config map[string]string) int64 {
	if text, ok := property(config, "delta.checkpointInterval"); ok {
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n > 0 {
			return n
		}
	}
	return defaultCheckpointInterval
}

// isOff reports whether a boolean table property that is on by default is set
// to false.
func isOff(config map[string]string, key string) bool {
	v, ok := property(config, key)
	return ok && strings.EqualFold(strings.TrimSpace(v), "false")
}

// duration is a duration property, or fallback when it is not set.
func duration(config map[string]string, key string, fallback time.Duration) (time.Duration, error) {
	text, ok := property(config, key)
	if !ok {
		return fallback, nil
	}
	d, err := snapshot.ParseInterval(text)
	if err == nil && d < 0 {
		err = fault.New(nil, "a duration cannot be negative")
	}
	if err != nil {
		return 0, fault.Wrap(ErrNoCheckpoint, err, "the property %s is no duration", key).
			WithHint("set it to a duration like \"interval 30 days\"")
	}
	return d, nil
}

const day = 24 * time.Hour

// tooOld says what has no place in a checkpoint any more: removed files and
// transactions whose time, in milliseconds, is not after these. never is
// before all of them.
type tooOld struct{ removes, txns int64 }

const never = int64(-1 << 63)

func expiry(config map[string]string, now time.Time) (tooOld, error) {
	files, err := duration(config, "delta.deletedFileRetentionDuration", 7*day)
	if err != nil {
		return tooOld{}, err
	}
	out := tooOld{removes: now.Add(-files).UnixMilli(), txns: never}
	if _, ok := property(config, "delta.setTransactionRetentionDuration"); ok {
		txns, err := duration(config, "delta.setTransactionRetentionDuration", 0)
		if err != nil {
			return tooOld{}, err
		}
		out.txns = now.Add(-txns).UnixMilli()
	}
	return out, nil
}

// checkpointable refuses a version for which this program writes no
// checkpoint: one in whose history others must stay as they are, or a table
// that wants another form.
func checkpointable(h header, v int64) error {
	config := h.config()
	if policy, ok := property(config, "delta.checkpointPolicy"); ok && !strings.EqualFold(policy, "classic") {
		return fault.New(ErrNoCheckpoint, "the property delta.checkpointPolicy asks for %s checkpoints", policy).AtVersion(v).
			WithHint("set it to classic, or have another engine write them")
	}
	if before := protectedBefore(h); v < before {
		return fault.New(ErrNoCheckpoint, "checkpoints before version %d are protected", before).AtVersion(v)
	}
	return nil
}

// protectedBefore is the version before which checkpoints must neither come nor
// go (table feature checkpointProtection), 0 for none.
func protectedBefore(h header) int64 {
	text, ok := property(h.config(), "delta.requireCheckpointProtectionBeforeVersion")
	if !ok || !featuresOf(h.protocol)["checkpointProtection"] {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 1<<63 - 1
	}
	return n
}
