// Package page embeds the files of the lab (the web page of "parley lab"): HTML, style sheets and JavaScript
// modules. They are served as they are, without a build step. The page itself draws nothing: all pictures, tables
// and texts are answers of the engine (internal/lab/engine). No JavaScript module names a protocol.
//
// The page has two forms: "parley lab" serves it, or a web server serves it as static files. Each form adds the
// file scene.css, the style sheet of the pictures. The tag "parley-engine" of index.html says where the engine is:
// in the program that serves the page, at the path "ask"; or, with the value "wasm", in a worker that loads
// wasm_exec.js and parley.wasm.gz from the same folder.
//
// # Decisions
//
// No build step: the modules are served as they are written, and Preact, htm and signals are vendored. Motive: every
// build of the command contains the page, without another tool; a reader of the page's source sees ours. Cost: the
// browser loads about forty files, comments included, so index.html names them all for it to load at once.
//
// Everything that is shown is a function of one run, one cursor (how many events have happened) and one selection (a
// reference, as package scene defines it). Motive: all views agree, and a link holds all there is. Cost: a view has
// no place of its own in the run.
//
// A picture enters the page as SVG that is parsed as XML, and its look is a style sheet of its own. Motive: the
// content security policy allows no inline style, and no text of a trace can become HTML. Cost: the page changes
// classes of marks, and cannot change how a picture is laid out.
package page

import "embed"

// Files are the files of the page, index.html among them.
//
//go:embed index.html icon.svg *.css *.js parts views vendor
var Files embed.FS
