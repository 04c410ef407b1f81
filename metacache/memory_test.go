package metacache_test

import (
	"testing"

	"github.com/deltafs/deltafs/metacache"
	"github.com/deltafs/deltafs/metacache/indextest"
)

func TestMemory(t *testing.T) {
	indextest.Run(t, func(t *testing.T) metacache.Index {
		x := metacache.NewMemory()
		t.Cleanup(func() { x.Close() })
		return x
	})
}
