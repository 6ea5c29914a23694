// Package page embeds the files of the lab (the web page of "parley lab"): HTML, style sheets and JavaScript
// modules. They are served as they are, without a build step. The page itself draws nothing: all pictures, tables
// and texts are answers of the engine (internal/lab/engine). No JavaScript module names a protocol.
//
// The page has two forms: "parley lab" serves it, or a web server serves it as static files. Each form adds the
// file scene.css, the style sheet of the pictures. The tag "parley-engine" of index.html says where the engine is:
// in the program that serves the page, at the path "ask"; or, with the value "wasm", in a worker that loads
// wasm_exec.js and parley.wasm.gz from the same folder.
package page

import "embed"

// Files are the files of the page, index.html among them.
//
//go:embed index.html icon.svg *.css *.js parts views vendor
var Files embed.FS
