//go:build cgo && linux && (amd64 || arm64)

package worker

// The library asks for its symbols to be exported, for extensions that are never
// loaded; they would take 7 MB of every process that runs this program.
//
// Before it opens a file the engine resolves the path and compares it with those
// allowed. A descriptor resolves to the path of its file, which nobody allowed;
// so for the engine, and only where it asks so, a descriptor is resolved already.

/*
#cgo LDFLAGS: -Wl,--no-export-dynamic -Wl,--wrap=realpath

#include <string.h>
#include <stdlib.h>

char *__real_realpath(const char *path, char *resolved);

static const char descriptors[] = "/proc/self/fd";

char *__wrap_realpath(const char *path, char *resolved) {
	size_t n = sizeof descriptors - 1;
	if (path == NULL || strncmp(path, descriptors, n) != 0) {
		return __real_realpath(path, resolved);
	}
	const char *rest = path + n;
	if (*rest == '/') {
		rest++;
	}
	if (rest[strspn(rest, "0123456789")] != '\0') {
		return __real_realpath(path, resolved);
	}
	if (resolved == NULL) {
		return strdup(path);
	}
	return strcpy(resolved, path);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Version is the engine's version that this package is written for.
const Version = "v1.5.6"

// descriptors is where the engine finds the files that it may open.
const descriptors = "/proc/self/fd/"

// engine is the database of the process. It has no tables.
type engine struct{ db duckdb.Database }

func openEngine(o Options) (*engine, error) {
	config, err := engineConfig(o)
	if err != nil {
		return nil, err
	}
	defer duckdb.DestroyConfig(&config)
	e := &engine{}
	var text string
	if duckdb.OpenExt(":memory:", &e.db, config, &text) != duckdb.StateSuccess {
		return nil, fmt.Errorf("the engine does not start: %s", text)
	}
	if err := e.lock(o); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func engineConfig(o Options) (duckdb.Config, error) {
	var config duckdb.Config
	if duckdb.CreateConfig(&config) != duckdb.StateSuccess {
		return config, errors.New("the engine takes no settings")
	}
	settings := map[string]string{
		"autoinstall_known_extensions": "false",
		"autoload_known_extensions":    "false",
		"allow_community_extensions":   "false",
		"allow_persistent_secrets":     "false",
		"memory_limit":                 strconv.FormatInt(o.MemoryLimit, 10) + "B",
		"temp_directory":               o.Spill,
		"preserve_insertion_order":     "true",
		// Files come and go under the same names.
		"enable_external_file_cache": "false",
	}
	if o.Threads > 0 {
		settings["threads"] = strconv.Itoa(o.Threads)
	}
	for name, value := range settings {
		if duckdb.SetConfig(config, name, value) != duckdb.StateSuccess {
			duckdb.DestroyConfig(&config)
			return config, fmt.Errorf("the engine does not take %s=%s", name, value)
		}
	}
	return config, nil
}

// lock shuts everything but the descriptors of the process.
func (e *engine) lock(o Options) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	defer c.close()
	for _, statement := range []string{
		"SET GLOBAL TimeZone = 'UTC'",
		"SET GLOBAL allowed_directories = [" + literal(descriptors) + "]",
		"SET GLOBAL enable_external_access = false",
		"SET GLOBAL lock_configuration = true",
	} {
		if err := c.exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (e *engine) close() { duckdb.Close(&e.db) }

// connection is one for a query.
type connection struct {
	c duckdb.Connection
	// mu keeps an interrupt and the end of the connection apart.
	mu     sync.Mutex
	closed bool
}

func (e *engine) connect() (*connection, error) {
	c := &connection{}
	if duckdb.Connect(e.db, &c.c) != duckdb.StateSuccess {
		return nil, errors.New("the engine takes no more connections")
	}
	return c, nil
}

func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	duckdb.Disconnect(&c.c)
}

// interrupt makes what runs fail. It may come after the end.
func (c *connection) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		duckdb.Interrupt(c.c)
	}
}

// exec runs a statement for its effect.
func (c *connection) exec(statement string) error {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(c.c, statement, &result) != duckdb.StateSuccess {
		return errors.New(duckdb.ResultError(&result))
	}
	return nil
}

// literal is text as an SQL string.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// identifier is a name as an SQL identifier.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
