package svg

import "parley/internal/draw/scene"

// colour is a color in light and in dark pictures. All text has a contrast of at least 4.5.
type colour struct{ light, dark string }

// colours are the colors that do not depend on values.
var colours = map[string]colour{
	"text":   {"#1f2328", "#e6edf3"},
	"faint":  {"#59616a", "#9aa4af"},
	"line":   {"#c4ccd5", "#4a535e"},
	"border": {"#818b96", "#7d8793"}, // of correct processes
	"rule":   {"#e2e6ea", "#30363d"},
	"trunk":  {"#b4bdc7", "#56606b"},
	"band":   {"#f4f6f8", "#1b2129"},
	"card":   {"#ffffff", "#11161d"},
	"fault":  {"#bd1f2a", "#ff8a82"},
	"faulty": {"#d5666d", "#b35d63"}, // the lifelines of faulty processes
	"liar":   {"#fff1f0", "#371b1d"}, // the backgrounds of their names
	"mixed":  {"#5f6a78", "#98a3b1"}, // several values, or none
	"plain":  {"#f1f3f5", "#232a33"}, // background for these
	"value":  {"#ffffff", "#11161d"}, // a value on its ink
}

// ink is the colors of a value: of a line or a filled mark, and of the background of text.
type ink struct{ line, fill colour }

// inks can be distinguished without seeing red and green.
var inks = [scene.Inks]ink{
	{colour{"#2563c9", "#7fadf7"}, colour{"#e6eefb", "#172a49"}},
	{colour{"#9c5200", "#efa546"}, colour{"#fdf1dc", "#38260c"}},
	{colour{"#7448bd", "#bb9af2"}, colour{"#f0e9fb", "#2b1f42"}},
	{colour{"#08727a", "#4fc5cf"}, colour{"#ddf3f5", "#0d3035"}},
	{colour{"#ae3079", "#f08cc4"}, colour{"#fbe6f2", "#3c172c"}},
	{colour{"#21743b", "#6fcb8c"}, colour{"#e3f4e8", "#14321d"}},
	{colour{"#80573a", "#d0a583"}, colour{"#f4ebe4", "#33251a"}},
	{colour{"#4b5766", "#adb8c6"}, colour{"#e9edf1", "#282f38"}},
}

// looks are the SVG styles of marks, by role. A role may have separate looks for lies, for faulty processes, and for
// marks without a single value. $ink and $fill are the value's colors.
var looks = map[string]string{
	// All pictures.
	"ground":  "fill:$card;stroke:$line",           // behind everything in a file
	"hit":     "stroke:transparent;stroke-width:9", // around a line, to point at
	"rule":    "stroke:$rule;stroke-width:1",       // between pictures
	"pill":    "rx:9;fill:$ink",                    // behind a value
	"missing": "stroke:$mixed;stroke-width:1.4;stroke-dasharray:2 3",
	"missed":  "stroke:$fault;stroke-width:2;fill:none", // at the end of a message to a process that is down
	"late":    "stroke:$fault;stroke-width:2;fill:none", // of a message that arrives after its round
	"omitted": "stroke:$fault;stroke-width:1.6;fill:none",
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
	"down":        "stroke:$border;stroke-width:1.4;stroke-dasharray:2 5",
	"arrow":       "stroke:$ink;stroke-width:1.3",
	"asked":       "r:4.5;fill:$card;stroke:$text;stroke-width:1.4",
	"deliver":     "fill:$text;stroke:$text;stroke-width:1.2",
	"indicate":    "fill:$card;stroke:$text;stroke-width:1.2",
	"restart":     "r:3;fill:$text",
	"befalls":     "r:3;fill:$faint",

	// Clusters that run.
	"ended":   "stroke:$fault;stroke-width:2.2;fill:none",
	"again":   "stroke:$text;stroke-width:1.6;fill:none",
	"severed": "stroke:$fault;stroke-width:1.8",
	"mended":  "stroke:$border;stroke-width:1.2",

	"plate": "fill:$card;fill-opacity:0.88", // behind a text, over the arrows

	// Time from left to right.
	"guide":              "stroke:$rule;stroke-width:1",
	"axis":               "stroke:$line;stroke-width:1",
	"light":              "stroke:$border;stroke-width:0.9",
	"stage":              "rx:4;fill:$fill;stroke:$ink",
	"stage faulty":       "rx:4;fill:$liar;stroke:$fault",
	"stage-solid":        "rx:4;fill:$ink",
	"stage-hatch":        "fill:none;stroke:$ink;stroke-opacity:0.55",
	"stage-hatch faulty": "fill:none;stroke:$fault;stroke-opacity:0.6",
	"stage-stripe":       "fill:none;stroke:$value;stroke-opacity:0.35",
	"stage-plate":        "fill:$fill",
	"cut":                "stroke:$fault;stroke-width:1;stroke-dasharray:2 4",
	"cutoff":             "fill:$fault;fill-opacity:0.45",
	"parting":            "stroke:$fault;stroke-width:2.2",
	"stage-plate faulty": "fill:$liar",

	// Clocks.
	"resync":         "stroke:$border;stroke-width:1;stroke-dasharray:2 3",
	"skew":           "fill:none;stroke:$ink;stroke-width:1.6;stroke-linejoin:round",
	"skew-area":      "fill:$fill",
	"bound":          "stroke:$fault;stroke-width:1.6;stroke-dasharray:8 4",
	"clock":          "fill:none;stroke:$ink;stroke-width:1.6;stroke-linejoin:round",
	"clock faulty":   "fill:none;stroke:$faulty;stroke-width:1.6;stroke-dasharray:5 3",
	"begins":         "r:3.5;fill:$card;stroke:$ink;stroke-width:1.6",
	"begins faulty":  "r:3.5;fill:$card;stroke:$faulty;stroke-width:1.6",
	"adjusts":        "fill:$ink;stroke:$card;stroke-width:0.8",
	"adjusts faulty": "fill:$faulty;stroke:$card;stroke-width:0.8",

	// Orders.
	"cell":       "rx:4;fill:$fill;stroke:$ink;stroke-width:1.2",
	"cell-other": "rx:4;fill:$card;stroke:$border;stroke-dasharray:3 2",
	"join":       "stroke:$ink;stroke-width:1.4",
	"inversion":  "r:4;fill:$card;stroke:$fault;stroke-width:1.8",
	"taint":      "fill:none;stroke:$fault;stroke-opacity:0.75",

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
}
