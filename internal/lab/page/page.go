// Package page holds the page of the lab: HTML, style sheets and JavaScript modules, as they are served. There is no
// build step. The page draws nothing itself: pictures, tables and words are answers of the engine
// (internal/lab/engine), and no module names a protocol.
//
// A form of the page adds scene.css, the style sheet of the pictures. The tag "parley-engine" of index.html says who
// answers: the program that serves the page at "ask", or, with "wasm", a worker that loads wasm_exec.js and
// parley.wasm.gz from the same folder.
package page

import "embed"

// Files are the files of the page, index.html among them.
//
//go:embed index.html icon.svg *.css *.js parts views vendor
var Files embed.FS
