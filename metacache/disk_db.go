package metacache

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// database reads the badger database of a run. All calls of badger for reading
// are here. It must have been verified: badger checks its files in goroutines
// of its own, where a panic ends the process.
type database struct {
	badger *badger.DB
	ts     uint64
}

func openDatabase(dir string, ts uint64, log *slog.Logger) (d *database, err error) {
	defer recoverDamage(&err)()
	o := badger.DefaultOptions(dir).
		WithReadOnly(true).
		WithLogger(badgerLog{log}).
		WithMetricsEnabled(false).
		// The values are packed already; those in use are kept unpacked by us.
		WithCompression(options.None).
		WithBlockCacheSize(0).
		// Sizes a queue of writes, of which there are none.
		WithMemTableSize(8 << 20).
		WithNumMemtables(1)
	db, err := badger.OpenManaged(o)
	if err != nil {
		return nil, damaged(err, "badger cannot open it")
	}
	return &database{badger: db, ts: ts}, nil
}

// get returns the value of a key that must be there.
func (d *database) get(kind byte, number int) (value []byte, err error) {
	defer recoverDamage(&err)()
	key := tableKey(kind, number)
	txn := d.badger.NewTransactionAt(d.ts, false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if err == nil {
		value, err = item.ValueCopy(nil)
	}
	if err != nil {
		return nil, damaged(err, "the value of %q cannot be read", key)
	}
	return checkValue(key, value)
}

func (d *database) close() (err error) {
	defer recoverDamage(&err)()
	return d.badger.Close()
}

// recoverDamage turns a panic of badger into an error. A fault in a mapped
// file, as when the disk cannot be read, is one too.
func recoverDamage(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = damaged(nil, "badger panicked: %v", r)
		}
	}
}

// badgerLog hands on what badger has to say.
type badgerLog struct{ log *slog.Logger }

func (l badgerLog) Errorf(format string, args ...any) {
	l.log.Debug("badger", "message", fmt.Sprintf(format, args...))
}
func (l badgerLog) Warningf(format string, args ...any) { l.Errorf(format, args...) }
func (l badgerLog) Infof(string, ...any)                {}
func (l badgerLog) Debugf(string, ...any)               {}
