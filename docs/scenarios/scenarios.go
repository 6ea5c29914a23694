// Package scenarios holds the scenario files, one for each table, figure and claim of the sources.
package scenarios

import "embed"

// Files are the scenarios, NAME.yaml.
//
//go:embed *.yaml
var Files embed.FS
