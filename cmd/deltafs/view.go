package main

import (
	"github.com/deltafs/deltafs/internal/fault"
	"github.com/deltafs/deltafs/snapshot"
)

// viewFlag is a flag.Value.
type viewFlag snapshot.View

const (
	viewTable = "table"
	viewRaw   = "raw"
)

// Set reads one of the names.
func (v *viewFlag) Set(s string) error {
	switch s {
	case viewTable:
		*v = viewFlag(snapshot.ViewTable)
	case viewRaw:
		*v = viewFlag(snapshot.ViewRaw)
	default:
		return fault.New(errUsage, "%q is neither %s nor %s", s, viewTable, viewRaw)
	}
	return nil
}

// String is the inverse of Set.
func (v *viewFlag) String() string {
	if *v == viewFlag(snapshot.ViewRaw) {
		return viewRaw
	}
	return viewTable
}
