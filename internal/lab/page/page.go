// Package page embeds the files of the lab (the web page of "parley lab"): HTML, style sheets and JavaScript
// modules. They are served as they are, without a build step. The page itself draws nothing: all pictures, tables
// and texts are answers of the engine (internal/lab/engine). No JavaScript module names a protocol.
//
// The page has two forms: "parley lab" serves it, or a web server serves it as static files. Each form adds the
// file scene.css, the style sheet of the pictures. The tag "parley-engine" of index.html says where the engine is.
// With the value "wasm", the engine is in a worker that loads wasm_exec.js and parley.wasm.gz from the same folder.
// Otherwise it is in the program that serves the page, at the path "ask".
//
// # Decisions
//
// The page has no build step: the modules are served as they are written, and Preact, htm and signals are
// vendored. Motive: every build of the command contains the page, without another tool. A reader who opens the
// page's source in a browser sees the source in this repository. Cost: the browser loads about forty files,
// including their comments. index.html names all these files, so that the browser can load them at the same time.
//
// Everything that is shown is a function of one run, one cursor (how many events have happened) and one selection
// (a reference, as package scene defines it). Motive: all views show the same moment, and a link contains
// everything that the page shows. Cost: two views cannot show different moments of a run.
//
// The page parses a picture, which is SVG, as XML. Colors and fonts of pictures come from the style sheet
// scene.css. Motive: the content security policy forbids inline styles, and no text of a trace can become HTML.
// Cost: the page can change the classes of marks in a picture, but not the layout of the picture.
package page

import "embed"

// Files are the files of the page, index.html among them.
//
//go:embed index.html icon.svg *.css *.js parts views vendor
var Files embed.FS
