// Package learn holds the lessons' table of contents, from which the lab makes its guide.
package learn

import _ "embed"

// Index is the page with the table of the lessons, as Markdown.
//
//go:embed index.md
var Index string
