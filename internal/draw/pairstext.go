package draw

import (
	"slices"
	"strings"

	"parley"
)

// leastHalf is the narrowest column in which a run stands beside another one.
const leastHalf = 30

// Text writes the argument.
func (d Pairs) Text(p parley.Protocol) string {
	var out []string
	for _, line := range fold(d.Title, d.width()) {
		out = append(out, d.paint(bold, line))
	}
	for line := range strings.Lines(d.Subtitle) {
		out = append(out, fold(strings.TrimSuffix(line, "\n"), d.width())...)
	}
	for i := range d.Pairs {
		out = append(out, "")
		out = append(out, d.pair(p, &d.Pairs[i])...)
	}
	out = append(out, "")
	for line := range strings.Lines(d.End) {
		out = append(out, fold(strings.TrimSuffix(line, "\n"), d.width())...)
	}
	return strings.Join(out, "\n") + "\n"
}

// pair writes two runs, side by side if there is room.
func (d Pairs) pair(p parley.Protocol, pair *Pair) (out []string) {
	half := (d.width() - 3) / 2
	beside := half >= leastHalf
	if !beside {
		half = d.width()
	}
	var parts [2][][]string
	for i := range parts {
		parts[i] = d.read(p, pair, i).parts(pair, i, half)
	}
	if !beside {
		return slices.Concat(slices.Concat(parts[0]...), []string{""}, slices.Concat(parts[1]...))
	}
	for k := range parts[0] {
		for i := range max(len(parts[0][k]), len(parts[1][k])) {
			var left, right string
			if i < len(parts[0][k]) {
				left = parts[0][k][i]
			}
			if i < len(parts[1][k]) {
				right = parts[1][k][i]
			}
			out = append(out, strings.TrimRight(pad(left, half)+" │ "+right, " "))
		}
	}
	return out
}

// parts are the parts of a case, to be put beside those of the other one.
func (c *scene) parts(pair *Pair, which, width int) [][]string {
	head := []string{c.s.paint(bold, cut(c.Title, width))}
	said := c.list(width)
	sees := []string{"What " + c.s.name(pair.Same) + " sees"}
	if which == 1 {
		sees[0] += ": the same"
	}
	sees[0] = c.s.paint(bold, sees[0])
	for _, line := range c.sees(pair.Same) {
		sees = append(sees, indented(line, 2, width)...)
	}
	parts := [][]string{append(head, fold(c.about(), width)...)}
	if g := c.triangle(width); g != nil {
		parts = append(parts, []string{""}, g)
	}
	return append(parts, []string{""}, said, []string{""}, sees, []string{""}, fold(pair.Must[which], width))
}

// indented folds a line that begins after some columns.
func indented(line string, by, width int) []string {
	lines := fold(line, max(width-by, 1))
	for i := range lines {
		lines[i] = strings.Repeat(" ", by) + lines[i]
	}
	return lines
}

// list is all that is said, round by round.
func (c *scene) list(width int) (out []string) {
	head := ""
	for _, g := range grouped(c.said) {
		t := &g.saying
		if now := t.head(); now != head {
			head = now
			out = append(out, c.s.paint(bold, cut(head, width)))
		}
		lines := indented(c.line(&g), 2, width)
		for i := range lines {
			if t.lie {
				lines[i] = c.s.paint(red, lines[i])
			}
		}
		out = append(out, lines...)
	}
	return out
}

// mapped is what each process tells each other one if that is at most one thing: so it
// can be drawn with an arrow for each two of them.
func (c *scene) mapped() (arrows map[[2]parley.ID]*saying, ok bool) {
	arrows = make(map[[2]parley.ID]*saying)
	for i := range c.said {
		t := &c.said[i]
		at := [2]parley.ID{t.from, t.to}
		if arrows[at] != nil || len(t.rows) > 1 {
			return nil, false
		}
		arrows[at] = t
	}
	return arrows, true
}

// label is what stands at an arrow: the value, if there is one.
func (t *saying) label() string { return saysOr(one(t.values), saysOr(t.says(), "–")) }

// order is the order in which processes are put into a picture: the source, then all
// others.
func (c *scene) order() (ids []parley.ID) {
	source := c.source()
	if source != parley.All {
		ids = append(ids, source)
	}
	for id := range parley.ID(c.p.N) {
		if id != source {
			ids = append(ids, id)
		}
	}
	return ids
}

// triangle draws three processes as the lecture does, the source on top.
func (c *scene) triangle(width int) []string {
	arrows, ok := c.mapped()
	ids := c.order()
	if !ok || len(ids) != 3 || c.source() == parley.All {
		return nil
	}
	label := func(from, to int) string {
		if t := arrows[[2]parley.ID{ids[from], ids[to]}]; t != nil {
			return t.label()
		}
		return ""
	}
	names := [3]string{c.s.marked(ids[0]), c.s.marked(ids[1]), c.s.marked(ids[2])}
	gap := max(columns(label(1, 2)), columns(label(2, 1))) + 5
	gap += gap % 2                                              // then both sides are alike
	left := max(columns(names[1]), columns(label(0, 1)), 2) + 6 // the left name ends before it
	right := left + gap + 3                                     // the right one begins here
	if label(1, 0)+label(2, 0) != "" || max(right+columns(names[2]), left+right+columns(label(0, 2))) > width {
		return nil
	}
	top := (left + right - 1) / 2
	slope := func(k int, on string, near [2]string) string { // k of 2 lines down
		l := top - 1 - (top-left)*k/2
		r := left + right - l
		line := pad(strings.Repeat(" ", max(l-1-columns(near[0]), 0))+near[0], l) + on[:len("╱")]
		return strings.TrimRight(pad(line, r)+on[len("╱"):]+" "+near[1], " ")
	}
	base := strings.Repeat(" ", left-columns(names[1]))
	there, back := "", ""
	if text := label(1, 2); text != "" {
		there = " " + filled(text, gap-1) + "▶"
	}
	if text := label(2, 1); text != "" {
		back = strings.Repeat(" ", left+1) + "◀" + filled(text, gap-1)
	}
	return []string{
		strings.Repeat(" ", top) + names[0],
		slope(0, "╱╲", [2]string{}),
		slope(1, "╱╲", [2]string{label(0, 1), label(0, 2)}),
		slope(2, "▼▼", [2]string{}),
		pad(base+names[1]+there, right) + names[2], back,
	}
}

// filled puts a text into the midst of a line.
func filled(text string, width int) string {
	room := max(width-columns(text), 0)
	return strings.Repeat("─", room/2) + text + strings.Repeat("─", room-room/2)
}
