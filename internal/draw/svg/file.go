package svg

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/draw/scene"
)

// File returns a scene as a file that includes its colors and fonts: light or dark according to the reader's system,
// and light on paper.
func File(s scene.Scene) []byte {
	body := writer{used: make(map[string]string)}
	body.heads(s.Marks)
	ground := body.named("ground", looks["ground"], 0)
	body.put("rect", "x", 0.5, "y", 0.5, "width", s.Width-1, "height", s.Height-1, "rx", 10, "class", ground)
	body.marks(s.Marks)

	var w writer
	w.open("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", fmt.Sprintf("0 0 %d %d", s.Width, s.Height),
		"width", s.Width, "height", s.Height, "class", "parley", "role", "img", "aria-label", s.Title)
	w.about(s)
	w.WriteString("<style>\n.parley text{font-family:" + sans + ";fill:" + colours["text"].light + "}\n")
	light := func(c colour) string { return c.light }
	dark := func(c colour) string { return c.dark }
	var night strings.Builder
	for _, class := range slices.Sorted(maps.Keys(body.used)) {
		var all, ofColor []string
		for property, value := range declarations(body.used[class]) {
			if isExtent(property) {
				continue
			}
			all = append(all, property+":"+resolved(value, light))
			if strings.Contains(value, "$") {
				ofColor = append(ofColor, property+":"+resolved(value, dark))
			}
		}
		if len(all) > 0 {
			fmt.Fprintf(&w, ".parley .%s{%s}\n", class, strings.Join(all, ";"))
		}
		if len(ofColor) > 0 {
			fmt.Fprintf(&night, ".parley .%s{%s}\n", class, strings.Join(ofColor, ";"))
		}
	}
	fmt.Fprintf(&w, "@media screen and (prefers-color-scheme:dark){\n.parley text{fill:%s}\n%s}\n</style>\n",
		colours["text"].dark, night.String())
	w.WriteString(body.String())
	w.end("svg")
	return []byte(w.String())
}

// about writes what a reader knows of a picture who does not see it.
func (w *writer) about(s scene.Scene) {
	w.WriteString("<title>" + escaped(s.Title) + "</title>\n")
	if s.About != "" {
		w.WriteString("<desc>" + escaped(s.About) + "</desc>\n")
	}
}

// resolved replaces names by colors.
func resolved(style string, of func(colour) string) string {
	return replaceNames(style, func(name string) string {
		var i int
		if n, _ := fmt.Sscanf(name, "ink%d", &i); n == 1 {
			return of(inks[i-1].line)
		}
		if n, _ := fmt.Sscanf(name, "fill%d", &i); n == 1 {
			return of(inks[i-1].fill)
		}
		return of(colours[name])
	})
}
