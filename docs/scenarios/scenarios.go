// Package scenarios embeds the scenario files. There is one file for each table, figure and claim of the article
// and the lecture (docs/explanation/sources.md).
package scenarios

import "embed"

// Files are the scenarios, NAME.yaml, and the table of them, README.md.
//
//go:embed *.yaml README.md
var Files embed.FS
