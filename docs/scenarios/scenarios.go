// Package scenarios holds the scenario files, one for each table, figure and claim of the sources.
package scenarios

import "embed"

// Files are the scenarios, NAME.yaml, and the table of them, README.md.
//
//go:embed *.yaml README.md
var Files embed.FS
