//go:build !(cgo && linux && (amd64 || arm64))

package worker

import (
	"context"
	"errors"
)

// Run says that there is no engine.
func Run(context.Context, Options) error {
	return errors.New("this program was built without the SQL engine")
}
