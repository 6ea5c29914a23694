// Package learn embeds the table of contents of the lessons. The lab (the web page of "parley lab") makes its guide
// from this table.
package learn

import _ "embed"

// Index is the page with the table of the lessons, as Markdown.
//
//go:embed index.md
var Index string
