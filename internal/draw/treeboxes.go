package draw

import (
	"fmt"

	"parley/internal/draw/reading"

	"parley/internal/draw/prose"
)

// picture draws the boxes of a tree and the lines between them.
func (l *treeLayout) picture(inks palette) picture {
	captions := l.captions()
	height := l.height
	if len(captions) > 0 {
		height += 12 + 16*len(captions)
	}
	return picture{
		width: l.width, height: height, legend: l.legend(inks),
		draw: func(s *svg) {
			if l.Title != "" {
				s.text(0, 16, "h", l.Title, "style", "font-size:15px")
			}
			for i, top := range l.tops {
				s.text(0, top+24, "n", fmt.Sprintf("rank %d", i))
			}
			for i := range l.boxes {
				l.line(s, inks, &l.boxes[i])
			}
			for i := range l.boxes {
				l.box(s, inks, &l.boxes[i])
			}
			for i, line := range captions {
				s.text(0, l.height+22+16*i, "n", line)
			}
		},
	}
}

// inkOf is the colour of a node: its output's, or its input's before the decision.
func (l *treeLayout) inkOf(inks palette, n *reading.Node) ink {
	switch {
	case n.Rest > 0:
		return noInk
	case n.Out != nil:
		return inks.of(prose.Value(n.Out))
	case n.In != nil:
		return inks.of(prose.Value(n.In))
	}
	return noInk
}

// line joins a node to its parent, in the colour of the vote that goes up.
func (l *treeLayout) line(s *svg, inks palette, b *box) {
	if b.parent < 0 {
		return
	}
	up := &l.boxes[b.parent]
	colour := l.inkOf(inks, b.n).line
	width, opacity := 1.4, 0.9
	if up.n.Out != nil && b.n.Out != nil && !reading.Equal(up.n.Out, b.n.Out) {
		width, opacity = 1.1, 0.55 // outvoted
	}
	x1, y1 := up.x+up.width/2, up.y+up.height
	x2, y2 := b.x+b.width/2, b.y
	path := fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x1, y1, x1, (y1+y2)/2, x2, (y1+y2)/2, x2, y2)
	if b.stacked {
		trunk, y := b.x-9, b.y+b.height/2
		turn := up.y + up.height + 12
		path = fmt.Sprintf("M%d,%d V%d H%d V%d H%d", x1, y1, turn, trunk, y, b.x)
		colour, width, opacity = "#b4bdc7", 1.2, 1
	}
	s.put("path", "d", path, "fill", "none", "stroke", colour, "stroke-width", width, "stroke-opacity", opacity)
}

// box draws a node: its path, and input and output.
func (l *treeLayout) box(s *svg, inks palette, b *box) {
	n, of := b.n, l.inkOf(inks, b.n)
	if n.Times > 1 {
		s.rect(b.x+3, b.y+3, b.width, b.height, "rx", 6,
			"fill", of.fill, "stroke", of.line, "stroke-opacity", 0.5)
	}
	shape := []any{"x", b.x, "y", b.y, "width", b.width, "height", b.height, "rx", 6, "fill", of.fill}
	liar := n.Rest == 0 && l.Faulty.Has(n.Relay())
	switch {
	case liar:
		shape = append(shape, "stroke", inkFault, "stroke-width", 1.5, "stroke-dasharray", "4 2.5")
	case n.Rest > 0:
		shape = append(shape, "stroke", of.line, "stroke-dasharray", "2 2")
	default:
		shape = append(shape, "stroke", of.line, "stroke-width", 1.2)
	}
	s.put("rect", shape...)
	path := span{text: l.label(n), colour: inkText}
	if b.stacked {
		path.text = l.stackLabel(n)
	}
	if liar {
		path.colour = inkFault
	}
	middle, foot := b.x+b.width/2, b.y+b.height
	var io []span
	if n.Rest == 0 {
		io = []span{{text: l.out(n), colour: inkOrText(inks, n.Out)}}
		if !l.form.brief || !b.stacked {
			io[0].gap = 4
			io = append([]span{{text: l.in(n), colour: inkOrText(inks, n.In)}, {"→", inkFaint, 4}}, io...)
		}
	}
	switch {
	case b.stacked && n.Rest > 0:
		s.spans(middle, b.y+15, "p", []span{path}, "text-anchor", "middle")
	case b.stacked:
		s.spans(b.x+7, b.y+15, "p", []span{path})
		right := b.x + b.width - 7
		if note := l.stackNote(n); note != "" {
			s.text(right, b.y+15, "n", note, "text-anchor", "end")
			right -= sansWidth(note, 11) + 4
		}
		s.spans(right, b.y+15, "io", io, "text-anchor", "end")
	case n.Rest > 0:
		s.spans(middle, b.y+24, "p", []span{path}, "text-anchor", "middle")
	default:
		s.spans(middle, b.y+17, "p", []span{path}, "text-anchor", "middle")
		s.spans(middle, b.y+32, "io", io, "text-anchor", "middle")
		if note := l.below(n); note != "" {
			s.text(middle, foot+12, "n", note, "text-anchor", "middle")
		}
	}
	if b.parent < 0 && n.Out != nil {
		s.text(b.x+b.width+10, b.y+24, "n", l.rootSays())
	}
}

func inkOrText(inks palette, v []byte) string {
	if v == nil {
		return inkFaint
	}
	return inks.of(prose.Value(v)).line
}

// legend explains colours and marks.
func (l *treeLayout) legend(inks palette) []legendEntry {
	var out []legendEntry
	for _, v := range l.values() {
		out = append(out, valueEntry(inks, v))
	}
	out = append(out, legendEntry{sign: func(s *svg, x, y int) {
		s.rect(x, y-7, 26, 14, "rx", 4, "fill", noInk.fill, "stroke", inkFaint)
	}, text: "path, input → output"})
	faulty, alike, several, deep, brief := false, false, false, false, false
	for _, b := range l.boxes {
		if b.n.Rest > 0 {
			continue
		}
		bare := b.stacked && l.form.brief // without notes
		faulty = faulty || l.Faulty.Has(b.n.Relay())
		alike = alike || bare && b.n.Times > 1
		several = several || !bare && b.n.Times > 1
		deep = deep || !bare && b.n.Below.Nodes > 0
		brief = brief || bare
	}
	note := func(text string) func(s *svg, x, y int) {
		return func(s *svg, x, y int) { s.text(x+13, y+4, "n", text, "text-anchor", "middle") }
	}
	switch {
	case brief && l.survey.Dotted:
		out = append(out, legendEntry{sign: note(".3 1"), text: "last step of the path, output"})
	case brief:
		out = append(out, legendEntry{sign: note("12 1"), text: "path, output"})
	}
	if faulty {
		out = append(out, legendEntry{sign: func(s *svg, x, y int) {
			s.rect(x, y-7, 26, 14, "rx", 4, "fill", "#ffffff",
				"stroke", inkFault, "stroke-width", 1.5, "stroke-dasharray", "4 2.5")
		}, text: "told by a faulty process"})
	}
	if alike {
		out = append(out, legendEntry{sign: func(s *svg, x, y int) {
			s.rect(x+3, y-4, 23, 12, "rx", 4, "fill", noInk.fill, "stroke", inkLine)
			s.rect(x, y-7, 23, 12, "rx", 4, "fill", noInk.fill, "stroke", inkFaint)
		}, text: "several alike"})
	}
	if several {
		out = append(out, legendEntry{sign: note("×5"), text: "so many alike"})
	}
	if deep {
		out = append(out, legendEntry{sign: note("+30"), text: "nodes below it"})
	}
	return out
}
