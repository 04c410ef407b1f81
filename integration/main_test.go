// Package integration tests deltafs on a real mount with the tools people use.
package integration

import (
	"os"
	"testing"

	"github.com/deltafs/deltafs/integration/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
