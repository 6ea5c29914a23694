package svg

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/draw/scene"
)

// Page returns a scene as a part of a page, without any style: the classes of marks are their roles, v1 to v8 for the
// inks of values, lie and faulty, and Sheet defines their looks. The reference of a mark is its data-ref; data-since
// and data-until are events of the trace. The first mark with a reference has it as its id, after the given prefix
// and with dashes instead of slashes, as in r1-P5-P2.
func Page(s scene.Scene, id string) []byte {
	w := writer{id: id + "-", ids: make(map[string]bool)}
	w.open("svg", "xmlns", "http://www.w3.org/2000/svg", "id", id, "viewBox", fmt.Sprintf("0 0 %d %d", s.Width, s.Height),
		"width", s.Width, "height", s.Height, "class", "parley-scene", "role", "img", "aria-label", s.Title)
	w.about(s)
	w.heads(s.Marks)
	w.marks(s.Marks)
	w.end("svg")
	return []byte(w.String())
}

// onPage returns the attributes by which a page finds a mark and styles it.
func (w *writer) onPage(m *scene.Mark) (a []any) {
	if id := w.id + strings.ReplaceAll(m.Ref, "/", "-"); m.Ref != "" && !w.ids[id] {
		w.ids[id] = true
		a = append(a, "id", id)
	}
	classes := classOf(m.Role, m.Ink)
	if m.Lie {
		classes += " lie"
	}
	if m.Faulty {
		classes += " faulty"
	}
	a = append(a, "class", classes)
	if m.Ref != "" {
		a = append(a, "data-ref", m.Ref)
	}
	if m.Value != "" {
		a = append(a, "data-value", m.Value)
	}
	if m.Since > 0 {
		a = append(a, "data-since", m.Since)
	}
	if m.Until > 0 {
		a = append(a, "data-until", m.Until)
	}
	return a
}

func classOf(class string, i scene.Ink) string {
	if i > 0 {
		class += fmt.Sprintf(" v%d", i)
	}
	return class
}

// Sheet returns the style sheet for scenes in a page: light or dark according to the reader's system, or to
// data-theme on the page's root; light on paper. The page may give marks the class future, for the part of a run
// that is still to come, and the class selected, for emphasis.
func Sheet() []byte {
	var b strings.Builder
	theme := func(selector string, of func(colour) string) {
		b.WriteString(selector + "{")
		for _, name := range slices.Sorted(maps.Keys(colours)) {
			fmt.Fprintf(&b, "--%s:%s;", name, of(colours[name]))
		}
		for i, ink := range inks {
			fmt.Fprintf(&b, "--ink%d:%s;--fill%d:%s;", i+1, of(ink.line), i+1, of(ink.fill))
		}
		b.WriteString("}\n")
	}
	dark := func(c colour) string { return c.dark }
	theme(".parley-scene", func(c colour) string { return c.light })
	b.WriteString("@media screen and (prefers-color-scheme:dark){\n")
	theme(":root:not([data-theme=light]) .parley-scene", dark)
	b.WriteString("}\n@media screen{\n")
	theme(":root[data-theme=dark] .parley-scene", dark)
	b.WriteString("}\n")

	rule := func(selector, style string) {
		fmt.Fprintf(&b, ".parley-scene%s{%s}\n", selector, inPage(style))
	}
	rule("", "--ink:$mixed;--fill:$plain;background:$card")
	for i := range inks {
		rule(fmt.Sprintf(" .v%d", i+1), fmt.Sprintf("--ink:var(--ink%d);--fill:var(--fill%d)", i+1, i+1))
	}
	rule(" text", "font-family:"+sans+";fill:$text")
	for _, role := range slices.Sorted(maps.Keys(scene.Fonts)) {
		rule(" ."+role, fontOf(role))
	}
	for _, key := range slices.Sorted(maps.Keys(looks)) {
		role, word, _ := strings.Cut(key, " ")
		selector := " ." + role
		switch word {
		case "mixed":
			selector += ":not(.lie):not([class*=\" v\"])"
		case "":
		default:
			selector += "." + word
		}
		rule(selector, looks[key])
	}
	for _, tone := range []string{"text", "faint", "fault", "mixed", "ink", "value", "border"} {
		rule(" .fill-"+tone, "fill:$"+tone)
	}
	rule(" .future", "opacity:0.12")
	rule(" .selected", "filter:drop-shadow(0 0 2px $text)")
	return []byte(b.String())
}

// inPage converts a look for the style sheet of a page.
func inPage(style string) string {
	var out []string
	for property, value := range declarations(style) {
		if isExtent(property) {
			continue
		}
		out = append(out, property+":"+replaceNames(value, func(name string) string { return "var(--" + name + ")" }))
	}
	return strings.Join(out, ";")
}
