// Package page holds the files of the lab's page. Each form of the page adds the style sheet scene.css. The tag
// "parley-engine" of index.html says who answers questions: "server" is the program that serves the page, and "wasm" a
// worker that loads wasm_exec.js and parley.wasm.gz from the same folder.
package page

import "embed"

// Files are the files of the page.
//
//go:embed index.html *.js
var Files embed.FS
