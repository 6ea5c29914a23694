// Package page holds the files of the lab's page. It imports "./ask.js" and the style sheet "./scene.css", which are
// not among them: each form of the page has its own ask.js, and the style sheet comes from the program.
package page

import "embed"

// Files are the files of the page.
//
//go:embed index.html app.js
var Files embed.FS
