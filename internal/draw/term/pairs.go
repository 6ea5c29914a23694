package term

import (
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// leastHalf is the minimum width of a column for a run next to another one.
const leastHalf = 30

// Pairs returns an argument with runs that look the same to a process, as text.
func Pairs(p parley.Protocol, d reading.Pairs) string {
	out := heading(d.Style, d.Title)
	if d.Subtitle != "" {
		out += prose.Fold(d.Subtitle, d.Columns()) + "\n"
	}
	for i := range d.Pairs {
		out += "\n" + strings.Join(pair(p, d, &d.Pairs[i]), "\n") + "\n"
	}
	return out + "\n" + prose.Fold(d.End, d.Columns()) + "\n"
}

// pair returns the lines of two runs, side by side if there is room.
func pair(p parley.Protocol, d reading.Pairs, pair *reading.Pair) (out []string) {
	half := (d.Columns() - 3) / 2
	beside := half >= leastHalf
	if !beside {
		half = d.Columns()
	}
	var parts [2][][]string
	for i := range parts {
		parts[i] = (account{d.Read(p, pair, i)}).parts(pair, i, half)
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
			out = append(out, strings.TrimRight(prose.Pad(left, half)+" │ "+right, " "))
		}
	}
	return out
}

// account is a case to write in columns.
type account struct{ *reading.Account }

// parts returns the parts of a case, to be written next to those of the other case.
func (c account) parts(pair *reading.Pair, which, width int) [][]string {
	head := []string{paint(c.Style, bold, prose.Cut(c.Title, width))}
	said := c.list(width)
	sees := []string{"What " + c.Called(pair.Same) + " sees"}
	if which == 1 {
		sees[0] += ": the same"
	}
	sees[0] = paint(c.Style, bold, sees[0])
	for _, line := range c.Sees() {
		sees = append(sees, indented(line, 2, width)...)
	}
	parts := [][]string{append(head, prose.Lines(c.About(), width)...)}
	if g := c.triangle(width); g != nil {
		parts = append(parts, []string{""}, g)
	}
	return append(parts, []string{""}, said, []string{""}, sees, []string{""}, prose.Lines(pair.Must[which], width))
}

// indented folds a line with an indentation.
func indented(line string, by, width int) []string {
	lines := prose.Lines(line, max(width-by, 1))
	for i := range lines {
		lines[i] = strings.Repeat(" ", by) + lines[i]
	}
	return lines
}

// list returns all messages, round by round.
func (c account) list(width int) (out []string) {
	head := ""
	for _, t := range c.Shared() {
		if now := t.Head(); now != head {
			head = now
			out = append(out, paint(c.Style, bold, prose.Cut(head, width)))
		}
		lines := indented(c.Line(&t), 2, width)
		for i := range lines {
			if t.Lie {
				lines[i] = paint(c.Style, red, lines[i])
			}
		}
		out = append(out, lines...)
	}
	return out
}

// triangle draws three processes as the lecture does, with the source at the top.
func (c account) triangle(width int) []string {
	arrows, ok := c.Mapped()
	ids := c.Order()
	if !ok || len(ids) != 3 || c.Source() == parley.All {
		return nil
	}
	label := func(from, to int) string {
		if t := arrows[[2]parley.ID{ids[from], ids[to]}]; t != nil {
			return t.Label()
		}
		return ""
	}
	names := [3]string{c.Marked(ids[0]), c.Marked(ids[1]), c.Marked(ids[2])}
	gap := max(prose.Width(label(1, 2)), prose.Width(label(2, 1))) + 5
	gap += gap % 2                                                      // makes both sides equal
	left := max(prose.Width(names[1]), prose.Width(label(0, 1)), 2) + 6 // the end of the left name
	right := left + gap + 3                                             // the beginning of the right one
	if label(1, 0)+label(2, 0) != "" || max(right+prose.Width(names[2]), left+right+prose.Width(label(0, 2))) > width {
		return nil
	}
	top := (left + right - 1) / 2
	slope := func(k int, on string, near [2]string) string { // line k of 2
		l := top - 1 - (top-left)*k/2
		r := left + right - l
		line := prose.Pad(strings.Repeat(" ", max(l-1-prose.Width(near[0]), 0))+near[0], l) + on[:len("╱")]
		return strings.TrimRight(prose.Pad(line, r)+on[len("╱"):]+" "+near[1], " ")
	}
	base := strings.Repeat(" ", left-prose.Width(names[1]))
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
		prose.Pad(base+names[1]+there, right) + names[2], back,
	}
}

// filled centers a text in a line.
func filled(text string, width int) string {
	room := max(width-prose.Width(text), 0)
	return strings.Repeat("─", room/2) + text + strings.Repeat("─", room-room/2)
}
