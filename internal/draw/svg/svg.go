// Package svg writes scenes (pictures in the form of package scene) as SVG: as self-contained files, or as parts of a
// web page. In a web page, the page's style sheet determines how the pictures look.
package svg

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/internal/draw/scene"
)

// writer writes elements.
type writer struct {
	strings.Builder
	used map[string]string // in a file: the style of each class in use, with names of colors; nil in a page
	id   string            // in a page: the prefix of ids
	ids  map[string]bool   // ids in use
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
	for property, value := range declarations(looks[lookOf(m)]) {
		if isExtent(property) {
			a = append(a, property, value)
		}
	}
	if m.Arrow {
		id, _ := w.head(m)
		a = append(a, "marker-end", "url(#"+id+")")
	}
	own := slices.Concat(w.class(m), a)
	switch shape := m.Shape.String(); {
	case m.Tip == "":
		w.put(shape, own...)
	case m.Shape == scene.Line: // thin, so there is a wider one to point at
		w.begin("g", nil)
		w.WriteString(">")
		w.tip(m)
		w.put(shape, slices.Concat([]any{"class", w.named("hit", looks["hit"], 0)}, a[:8])...)
		w.put(shape, own...)
		w.end("g")
	default:
		w.begin(shape, own)
		w.WriteString(">")
		w.tip(m)
		w.end(shape)
	}
}

func (w *writer) tip(m *scene.Mark) { w.WriteString("<title>" + escaped(m.Tip) + "</title>") }

// text writes a line of text, in several colors if it has parts.
func (w *writer) text(m *scene.Mark) {
	a := []any{"x", m.X, "y", m.Y}
	if m.Align != "" {
		a = append(a, "text-anchor", m.Align)
	}
	w.begin("text", slices.Concat(w.class(m), a))
	w.WriteString(">")
	if m.Tip != "" {
		w.tip(m)
	}
	w.WriteString(escaped(m.Text))
	for _, p := range m.Parts {
		a := []any{"class", w.named("fill-"+p.Tone, "fill:$"+p.Tone, p.Ink)}
		if p.Gap > 0 {
			a = append(a, "dx", p.Gap)
		}
		w.begin("tspan", a)
		w.WriteString(">" + escaped(p.Text) + "</tspan>")
	}
	w.WriteString("</text>\n")
}

// class returns the classes of a mark, and what else a page knows of it.
func (w *writer) class(m *scene.Mark) []any {
	if w.used == nil {
		return w.onPage(m)
	}
	style := looks[lookOf(m)]
	if m.Shape == scene.Text {
		style = strings.Trim(fontOf(m.Role)+";"+style, ";")
	}
	return []any{"class", w.named(strings.ReplaceAll(lookOf(m), " ", "-"), style, m.Ink)}
}

// named returns the class of a look: in a page, the class and that of the ink.
func (w *writer) named(class, style string, i scene.Ink) string {
	if w.used == nil {
		return classOf(class, i)
	}
	if inked := strings.Contains(style, "$ink") || strings.Contains(style, "$fill"); inked && i > 0 {
		class += fmt.Sprintf("-v%d", i)
	}
	style = colored(style, i)
	if known, used := w.used[class]; used && known != style {
		panic("svg: two looks have the class " + class)
	}
	w.used[class] = style
	return class
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

// replaceNames replaces the names of colors in a style, such as $ink2. Package regexp could do so too, and would make
// the lab's engine for the browser larger.
func replaceNames(style string, with func(name string) string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(style, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		style = strings.TrimLeft(after, "abcdefghijklmnopqrstuvwxyz0123456789")
		out.WriteString(with(after[:len(after)-len(style)]))
	}
}

// colored replaces the colors of any value by those of one.
func colored(style string, i scene.Ink) string {
	return replaceNames(style, func(name string) string {
		switch {
		case name == "ink" && i > 0, name == "fill" && i > 0:
			return fmt.Sprintf("$%s%d", name, i)
		case name == "ink":
			return "$mixed"
		case name == "fill":
			return "$plain"
		}
		return "$" + name
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
		w.put("path", "d", "M0,0.8 L8,4 L0,7.2 L2,4 Z", "class", found[id])
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

// head returns the head of an arrow, whose class is named after the color of its line.
func (w *writer) head(m *scene.Mark) (id, class string) {
	for property, value := range declarations(looks[lookOf(m)]) {
		if property == "stroke" {
			class = w.named("fill-"+value[1:], "fill:"+value, m.Ink)
		}
	}
	return w.id + "to-" + strings.ReplaceAll(class, " ", "-"), class
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
