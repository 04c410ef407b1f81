//go:build cgo && linux && (amd64 || arm64)

package sql

// built says that the engine is part of this program.
const built = true
