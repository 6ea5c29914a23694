package svg

import "parley/internal/draw/scene"

// colour is a color in a file, and in a light and a dark page. A file has a light card of its own, which is legible
// on light and dark pages. In pages all text has a contrast of at least 4.5.
type colour struct{ file, light, dark string }

// colours are the colors that do not depend on values.
var colours = map[string]colour{
	"text":   {"#1f2328", "#1f2328", "#e6edf3"},
	"faint":  {"#656d76", "#59616a", "#9aa4af"},
	"line":   {"#c4ccd5", "#c4ccd5", "#4a535e"},
	"border": {"#8c959f", "#818b96", "#7d8793"}, // of correct processes
	"rule":   {"#e2e6ea", "#e2e6ea", "#30363d"},
	"trunk":  {"#b4bdc7", "#b4bdc7", "#56606b"},
	"band":   {"#f4f6f8", "#f4f6f8", "#1b2129"},
	"card":   {"#ffffff", "#ffffff", "#11161d"},
	"fault":  {"#cf222e", "#bd1f2a", "#ff8a82"},
	"faulty": {"#eba5a9", "#e0888d", "#94494e"}, // the lifelines of faulty processes
	"liar":   {"#fff1f0", "#fff1f0", "#371b1d"}, // the backgrounds of their names
	"mixed":  {"#7d8896", "#5f6a78", "#98a3b1"}, // several values, or none
	"plain":  {"#f1f3f5", "#f1f3f5", "#232a33"}, // background for these
	"value":  {"#ffffff", "#ffffff", "#11161d"}, // a value on its ink
}

// ink is the colors of a value: of a line or a filled mark, and of the background of text.
type ink struct{ line, fill colour }

// inks can be distinguished without seeing red and green.
var inks = [scene.Inks]ink{
	{colour{"#2563c9", "#2563c9", "#7fadf7"}, colour{"#e6eefb", "#e6eefb", "#172a49"}},
	{colour{"#d0760a", "#9c5200", "#efa546"}, colour{"#fdf1dc", "#fdf1dc", "#38260c"}},
	{colour{"#7b4fc4", "#7448bd", "#bb9af2"}, colour{"#f0e9fb", "#f0e9fb", "#2b1f42"}},
	{colour{"#0b8a94", "#08727a", "#4fc5cf"}, colour{"#ddf3f5", "#ddf3f5", "#0d3035"}},
	{colour{"#b83a86", "#ae3079", "#f08cc4"}, colour{"#fbe6f2", "#fbe6f2", "#3c172c"}},
	{colour{"#2d8a4a", "#21743b", "#6fcb8c"}, colour{"#e3f4e8", "#e3f4e8", "#14321d"}},
	{colour{"#80573a", "#80573a", "#d0a583"}, colour{"#f4ebe4", "#f4ebe4", "#33251a"}},
	{colour{"#4b5766", "#4b5766", "#adb8c6"}, colour{"#e9edf1", "#e9edf1", "#282f38"}},
}

// looks are the SVG styles of marks, by role. A role may have separate looks for lies, for faulty processes, and for
// marks without a single value. $ink and $fill are the value's colors.
var looks = map[string]string{
	// All pictures.
	"rule":    "stroke:$rule;stroke-width:1", // between pictures
	"pill":    "rx:9;fill:$ink",              // behind a value
	"missing": "stroke:$mixed;stroke-width:1.2;stroke-dasharray:1 3",
	"cross":   "stroke:$fault;stroke-width:1.6;fill:none",

	// Processes: in diagrams, and in the charts of pairs.
	"process":        "rx:5;fill:$card;stroke:$border",
	"process faulty": "rx:5;fill:$liar;stroke:$fault",
	"actor":          "rx:7;fill:$card;stroke:$border;stroke-width:1.4",
	"actor faulty":   "rx:7;fill:$liar;stroke:$fault;stroke-width:1.4",
	"same":           "rx:11;fill:none;stroke:$text;stroke-width:1.4", // around the process that a pair is about

	// Message diagrams.
	"band":            "rx:8;fill:$band",
	"lifeline":        "stroke:$line;stroke-width:1.5",
	"lifeline faulty": "stroke:$faulty;stroke-width:1.5;stroke-dasharray:5 3",
	"message":         "stroke-width:1.4;stroke:$ink",
	"message mixed":   "stroke-width:1.1;stroke:$ink",
	"message lie":     "stroke-width:1.6;stroke-dasharray:5 3;stroke:$fault",
	"decision":        "stroke:$ink;stroke-width:2",
	"share":           "fill:$ink", // of a bar
	"sender":          "r:4;fill:$ink",
	"sender faulty":   "r:4;fill:$fault",
	"own":             "r:7;fill:none;stroke:$ink;stroke-width:1.2", // around a sender that keeps a copy
	"own faulty":      "r:7;fill:none;stroke:$fault;stroke-width:1.2",
	"fat":             "fill:$card", // behind an arrow that stands for many
	"fat lie":         "fill:none;stroke:$fault;stroke-width:1.8;stroke-dasharray:5 3",
	"tip":             "fill:$ink",

	// Space-time diagrams.
	"lane":        "stroke-width:1.5;stroke:$line",
	"lane faulty": "stroke-width:1.5;stroke-dasharray:5 3;stroke:$faulty",
	"gap":         "stroke:$card;stroke-width:3", // in the lane of a process that is down
	"down":        "stroke:$faulty;stroke-width:1;stroke-dasharray:1 5",
	"arrow":       "stroke:$ink;stroke-width:1.3",
	"asked":       "r:4.5;fill:$card;stroke:$text;stroke-width:1.4",
	"deliver":     "fill:$text;stroke:$text;stroke-width:1.2",
	"indicate":    "fill:$card;stroke:$text;stroke-width:1.2",
	"restart":     "r:3;fill:$text",
	"befalls":     "r:3;fill:$faint",

	// Trees.
	"edge":        "fill:none;stroke:$ink;stroke-width:1.4;stroke-opacity:0.9",
	"outvoted":    "fill:none;stroke:$ink;stroke-width:1.1;stroke-opacity:0.55",
	"trunk":       "fill:none;stroke:$trunk;stroke-width:1.2;stroke-opacity:1",
	"shadow":      "rx:6;fill:$fill;stroke:$ink;stroke-opacity:0.5", // of equal nodes
	"node":        "rx:6;fill:$fill;stroke:$ink;stroke-width:1.2",
	"node faulty": "rx:6;fill:$fill;stroke:$fault;stroke-width:1.5;stroke-dasharray:4 2.5",
	"rest":        "rx:6;fill:$fill;stroke:$ink;stroke-dasharray:2 2",

	// Pairs.
	"frame": "rx:8;fill:$band;stroke:$line",

	// Legends.
	"line-sign":         "stroke:$mixed;stroke-width:2",
	"line-sign lie":     "stroke:$fault;stroke-width:2;stroke-dasharray:5 3",
	"line-sign faulty":  "stroke:$faulty;stroke-width:2;stroke-dasharray:5 3",
	"missing-sign":      "stroke:$mixed;stroke-width:2;stroke-dasharray:1 3",
	"own-sign":          "r:7;fill:none;stroke:$faint;stroke-width:1.2",
	"sender-sign":       "r:4;fill:$faint",
	"node-sign":         "rx:4;fill:$plain;stroke:$faint",
	"node-sign faulty":  "rx:4;fill:$card;stroke:$fault;stroke-width:1.5;stroke-dasharray:4 2.5",
	"shadow-sign":       "rx:4;fill:$plain;stroke:$line",
	"actor-sign":        "rx:3;fill:$card;stroke:$border",
	"actor-sign faulty": "rx:3;fill:$liar;stroke:$fault",
	"same-sign":         "rx:5;fill:none;stroke:$text;stroke-width:1.4",

	// Text next to a lane, legible above the marks behind it.
	"says": "paint-order:stroke;stroke:$card;stroke-width:3",
}

// font is the font of a role's text: a class in files, and additional properties.
type font struct{ class, style string }

var fonts = map[string]font{
	"title": {"t", ""}, "subtitle": {"s", ""}, "head": {"h", ""}, "note": {"n", ""},
	"name": {"p", ""}, "io": {"io", ""}, "words": {"m", ""}, "says": {"m", ""}, "value": {"v", ""},
	"tree-title": {"h", "font-size:15px"},
	"actor-name": {"p", "font-size:14px"},
	// Paragraphs.
	"lead":      {"t", "fill:$text;font-size:18px"},
	"sublead":   {"s", "fill:$faint;font-size:13px"},
	"case":      {"h", "fill:$text;font-size:15px"},
	"about":     {"s", "fill:$text;font-size:13px"},
	"sees-head": {"h", "fill:$text;font-size:13px"},
	"sees":      {"m", "fill:$text;font-size:12px"},
}

const (
	sans = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif`
	mono = `ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace`
)

// classes are the fonts of files, only within this module's pictures: t title, s subtitle, h head, n note, p name of
// a process or path, io input and output, m message, v value in a pill.
var classes = []struct{ name, style string }{
	{"t", "font-size:18px;font-weight:600"},
	{"s", "font-size:13px;fill:$faint"},
	{"h", "font-size:13px;font-weight:600"},
	{"n", "font-size:11px;fill:$faint"},
	{"p", "font-size:12px;font-weight:600"},
	{"io", "font-size:11px;font-weight:600"},
	{"m", "font-size:10px"},
	{"v", "font-size:11px;font-weight:700;fill:$value"},
}
