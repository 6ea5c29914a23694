// Package svg writes scenes as SVG: as self-contained files, and as parts of a page, whose style sheet defines their
// looks.
package svg

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/draw/scene"
)

// File returns a scene as a file that includes its colors and fonts.
func File(s scene.Scene) []byte {
	w := writer{colour: func(c colour) string { return c.file }}
	w.open("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", fmt.Sprintf("0 0 %d %d", s.Width, s.Height),
		"width", s.Width, "height", s.Height, "class", "parley", "role", "img", "aria-label", s.Title)
	w.WriteString("<title>" + escaped(s.Title) + "</title>\n<style>\n")
	w.WriteString(".parley text{font-family:" + sans + ";fill:" + w.resolve("$text", 0) + "}\n")
	w.WriteString(".parley .p,.parley .io,.parley .m,.parley .v{font-family:" + mono + "}\n")
	for _, c := range classes {
		w.WriteString(".parley ." + c.name + "{" + w.resolve(c.style, 0) + "}\n")
	}
	w.WriteString("</style>\n")
	w.heads(s.Marks)
	w.put("rect", "x", 0.5, "y", 0.5, "width", s.Width-1, "height", s.Height-1, "rx", 10,
		"fill", w.resolve("$card", 0), "stroke", "#d0d7de")
	w.marks(s.Marks)
	w.end("svg")
	return []byte(w.String())
}

// writer writes elements.
type writer struct {
	strings.Builder
	colour func(colour) string // the written color; nil in a page, where the style sheet has it
	id     string              // in a page: the prefix of ids
	ids    map[string]bool     // ids in use
}

func (w *writer) marks(marks []scene.Mark) {
	for i := range marks {
		w.mark(&marks[i])
	}
}

func (w *writer) mark(m *scene.Mark) {
	var a []any
	switch m.Shape {
	case scene.Group:
		w.open("g", "transform", fmt.Sprintf("translate(%d,%d)", m.X, m.Y))
		w.marks(m.Marks)
		w.end("g")
		return
	case scene.Text:
		w.text(m)
		return
	case scene.Rect:
		a = []any{"x", m.X, "y", m.Y, "width", m.W, "height", m.H}
	case scene.Line:
		a = []any{"x1", m.X, "y1", m.Y, "x2", m.X + m.W, "y2", m.Y + m.H}
	case scene.Circle:
		a = []any{"cx", m.X, "cy", m.Y}
	case scene.Path:
		a = []any{"d", m.Path}
	}
	a = append(a, w.look(m)...)
	if m.Arrow {
		id, _ := w.head(m)
		a = append(a, "marker-end", "url(#"+id+")")
	}
	w.put(m.Shape.String(), slices.Concat(w.class(m), a)...)
}

// text writes a line of text, in several colors if it has parts.
func (w *writer) text(m *scene.Mark) {
	a := []any{"x", m.X, "y", m.Y}
	if w.colour != nil {
		a = append(a, "class", fonts[m.Role].class)
	}
	if m.Align != "" {
		a = append(a, "text-anchor", m.Align)
	}
	if style := fonts[m.Role].style; style != "" && w.colour != nil {
		a = append(a, "style", w.resolve(style, 0))
	}
	w.begin("text", slices.Concat(w.class(m), a, w.look(m)))
	w.WriteString(">" + escaped(m.Text))
	for _, p := range m.Parts {
		var a []any
		if w.colour != nil {
			a = []any{"fill", w.resolve("$"+p.Tone, p.Ink)}
		} else {
			a = []any{"class", classOf(p.Tone, p.Ink)}
		}
		if p.Gap > 0 {
			a = append(a, "dx", p.Gap)
		}
		w.begin("tspan", a)
		w.WriteString(">" + escaped(p.Text) + "</tspan>")
	}
	w.WriteString("</text>\n")
}

// lookOf returns the key of a mark's look.
func lookOf(m *scene.Mark) string {
	for _, v := range []struct {
		is   bool
		word string
	}{{m.Lie, " lie"}, {m.Faulty, " faulty"}, {m.Ink == 0, " mixed"}} {
		if _, own := looks[m.Role+v.word]; v.is && own {
			return m.Role + v.word
		}
	}
	return m.Role
}

// look returns the look of a mark as attributes: in a page only its extent.
func (w *writer) look(m *scene.Mark) (out []any) {
	for property, value := range declarations(looks[lookOf(m)]) {
		if w.colour != nil || isExtent(property) {
			out = append(out, property, w.resolve(value, m.Ink))
		}
	}
	return out
}

// isExtent reports whether a property is an extent and no style.
func isExtent(property string) bool { return property == "r" || property == "rx" }

// declarations yields the properties of a style, which semicolons separate.
func declarations(style string) func(yield func(property, value string) bool) {
	return func(yield func(string, string) bool) {
		for one := range strings.SplitSeq(style, ";") {
			if property, value, ok := strings.Cut(one, ":"); ok && !yield(property, value) {
				return
			}
		}
	}
}

// named matches the name of a color.
var named = regexp.MustCompile(`\$([a-z]+)`)

// resolve replaces names by colors.
func (w *writer) resolve(style string, i scene.Ink) string {
	return named.ReplaceAllStringFunc(style, func(name string) string {
		switch {
		case name == "$ink" && i > 0:
			return w.colour(inks[i-1].line)
		case name == "$fill" && i > 0:
			return w.colour(inks[i-1].fill)
		case name == "$ink":
			name = "$mixed"
		case name == "$fill":
			name = "$plain"
		}
		return w.colour(colours[name[1:]])
	})
}

// heads defines an arrow head for each color in use.
func (w *writer) heads(marks []scene.Mark) {
	found := make(map[string]string) // looks by id
	w.findHeads(marks, found)
	w.open("defs")
	for _, id := range slices.Sorted(maps.Keys(found)) {
		w.open("marker", "id", id, "viewBox", "0 0 8 8", "refX", 7, "refY", 4,
			"markerWidth", 7, "markerHeight", 7, "orient", "auto-start-reverse", "markerUnits", "userSpaceOnUse")
		how := "class"
		if w.colour != nil {
			how = "fill"
		}
		w.put("path", "d", "M0,0.8 L8,4 L0,7.2 L2,4 Z", how, found[id])
		w.end("marker")
	}
	w.end("defs")
}

func (w *writer) findHeads(marks []scene.Mark, found map[string]string) {
	for i := range marks {
		w.findHeads(marks[i].Marks, found)
		if marks[i].Arrow {
			id, look := w.head(&marks[i])
			found[id] = look
		}
	}
}

// head returns the head of an arrow, which has the look of its line: its color, or in a page its class.
func (w *writer) head(m *scene.Mark) (id, look string) {
	for property, value := range declarations(looks[lookOf(m)]) {
		switch {
		case property != "stroke":
		case w.colour != nil:
			look = w.resolve(value, m.Ink)
		default:
			look = classOf(value[1:], m.Ink)
		}
	}
	return w.id + "to-" + strings.NewReplacer("#", "", " ", "-").Replace(look), look
}

// put writes an element without content. attributes alternate between names and values.
func (w *writer) put(tag string, attributes ...any) {
	w.begin(tag, attributes)
	w.WriteString("/>\n")
}

func (w *writer) open(tag string, attributes ...any) {
	w.begin(tag, attributes)
	w.WriteString(">\n")
}

func (w *writer) end(tag string) { w.WriteString("</" + tag + ">\n") }

func (w *writer) begin(tag string, attributes []any) {
	w.WriteString("<" + tag)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(w, ` %s="%s"`, attributes[i], escaped(fmt.Sprint(attributes[i+1])))
	}
}

// escapes are the special characters of XML, and those that would not be preserved.
var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;",
	"\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")

// escaped makes text safe as content and as an attribute. A character that XML cannot contain becomes a question
// mark.
func escaped(text string) string {
	return escapes.Replace(strings.Map(func(r rune) rune {
		if r < ' ' && !strings.ContainsRune("\t\n\r", r) || r >= utf8.RuneError && r <= 0xffff {
			return '?'
		}
		return r
	}, text))
}
