// Package learn embeds the lessons. The lab (the web page of "parley lab") makes its guide from them.
package learn

import "embed"

// Files are the lessons and index.md, the page with the table of the lessons, as Markdown.
//
//go:embed *.md
var Files embed.FS

// Index is the text of index.md.
//
//go:embed index.md
var Index string
