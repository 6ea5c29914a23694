package draw

import (
	"fmt"

	"parley/internal/draw/reading"
	"parley/internal/draw/scene"

	"parley/internal/draw/prose"
)

// picture draws the boxes of a tree and the lines between them.
func (l *treeLayout) draw(inks scene.Palette) picture {
	captions := l.captions()
	height := l.height
	if len(captions) > 0 {
		height += 12 + 16*len(captions)
	}
	var s sketch
	if l.Title != "" {
		s.text("tree-title", 0, 16, start, l.Title)
	}
	for i, top := range l.tops {
		s.text("note", 0, top+24, start, fmt.Sprintf("rank %d", i))
	}
	for i := range l.boxes {
		from := len(s.marks)
		l.line(&s, inks, &l.boxes[i])
		l.about(&s, from, l.boxes[i].n)
	}
	for i := range l.boxes {
		from := len(s.marks)
		l.box(&s, inks, &l.boxes[i])
		s.tip(from, l.tip(l.boxes[i].n))
		l.about(&s, from, l.boxes[i].n)
	}
	for i, line := range captions {
		s.text("note", 0, l.height+22+16*i, start, line)
	}
	return picture{width: l.width, height: height, legend: l.legend(inks), marks: s.marks}
}

// about sets the reference of marks to a node, and the event since when it has a value; for several nodes, of the
// first.
func (l *treeLayout) about(s *sketch, from int, n *reading.Node) {
	if n.Rest == 0 {
		told := scene.Sender(len(n.Path)-1, n.Relay()) // in the round of the node's rank
		s.about(from, scene.Node(l.Of, n.Path), l.filled[told], 0)
	}
}

// tip describes a node in words.
func (l *treeLayout) tip(n *reading.Node) string {
	if n.Rest > 0 {
		return prose.Count(n.Rest, "more node is", "more nodes are") + " not drawn"
	}
	by := "relayed by "
	if len(n.Path) == 1 {
		by = "sent by "
	}
	text := l.label(n) + ": " + by + l.Called(n.Relay())
	if n.Times > 1 {
		text = fmt.Sprintf("%s: %s alike, relayed by %s to %s", l.label(n), prose.Count(n.Times, "node", "nodes"),
			l.Called(n.Relay()), l.Called(n.Last[len(n.Last)-1]))
	}
	if l.Faulty.Has(n.Relay()) {
		text += ", faulty"
	}
	text += "; input " + prose.Value(n.In)
	if n.Out != nil {
		text += ", output " + prose.Value(n.Out)
	}
	if n.Below.Nodes > 0 {
		text += "; " + prose.Count(n.Below.Nodes, "node", "nodes") + " below it not drawn"
	}
	return text
}

// valueOf returns the value that colors a node: its output, or its input before the decision.
func valueOf(n *reading.Node) string {
	switch {
	case n.Out != nil:
		return prose.Value(n.Out)
	case n.In != nil:
		return prose.Value(n.In)
	}
	return ""
}

// line draws the line from a node to its parent, in the color of the node's vote.
func (l *treeLayout) line(s *sketch, inks scene.Palette, b *treeBox) {
	if b.parent < 0 {
		return
	}
	up := &l.boxes[b.parent]
	x1, y1 := up.x+up.width/2, up.y+up.height
	if b.stacked {
		s.path("trunk", "M%d,%d V%d H%d V%d H%d", x1, y1, y1+12, b.x-9, b.y+b.height/2, b.x)
		return
	}
	role := "edge"
	if up.n.Out != nil && b.n.Out != nil && !reading.Equal(up.n.Out, b.n.Out) {
		role, l.outvoted = "outvoted", true
	}
	x2, y2 := b.x+b.width/2, b.y
	m := s.path(role, "M%d,%d C%d,%d %d,%d %d,%d", x1, y1, x1, (y1+y2)/2, x2, (y1+y2)/2, x2, y2)
	m.Value = valueOf(b.n)
	m.Ink = inks.Of(m.Value)
}

// box draws a node with its path, input and output.
func (l *treeLayout) box(s *sketch, inks scene.Palette, b *treeBox) {
	n, value := b.n, valueOf(b.n)
	if n.Times > 1 {
		s.rect("shadow", b.x+3, b.y+3, b.width, b.height).Ink = inks.Of(value)
	}
	liar, role := n.Rest == 0 && l.Faulty.Has(n.Relay()), "node"
	if n.Rest > 0 {
		role = "rest"
	}
	m := s.rect(role, b.x, b.y, b.width, b.height)
	m.Value, m.Ink, m.Faulty = value, inks.Of(value), liar
	path := toned(l.label(n), liar)
	if b.stacked {
		path.Text = l.stackLabel(n)
	}
	centre, foot := b.x+b.width/2, b.y+b.height
	var io []scene.Part
	if n.Rest == 0 {
		io = []scene.Part{inked(l.out(n), inkOf(inks, n.Out))}
		if !l.form.brief || !b.stacked {
			io[0].Gap = 4
			io = append([]scene.Part{inked(l.in(n), inkOf(inks, n.In)), {Text: "→", Tone: "faint", Gap: 4}}, io...)
		}
	}
	switch {
	case b.stacked && n.Rest > 0:
		s.parts("name", centre, b.y+15, middle, path)
	case b.stacked:
		s.parts("name", b.x+7, b.y+15, start, path)
		right := b.x + b.width - 7
		if note := l.stackNote(n); note != "" {
			s.text("note", right, b.y+15, end, note)
			right -= wide("note", note) + 4
		}
		s.parts("io", right, b.y+15, end, io...)
	case n.Rest > 0:
		s.parts("name", centre, b.y+24, middle, path)
	default:
		s.parts("name", centre, b.y+17, middle, path)
		s.parts("io", centre, b.y+32, middle, io...)
		if note := l.below(n); note != "" {
			s.text("note", centre, foot+12, middle, note)
		}
	}
	if b.parent < 0 && n.Out != nil {
		s.text("note", b.x+b.width+10, b.y+24, start, l.rootSays())
	}
}

// inkOf returns the ink of a value, or 0 if there is none.
func inkOf(inks scene.Palette, v []byte) scene.Ink {
	if v == nil {
		return 0
	}
	return inks.Of(prose.Value(v))
}

// legend explains colors and marks.
func (l *treeLayout) legend(inks scene.Palette) (out legend) {
	for _, v := range l.values() {
		out = append(out, valueEntry(inks, v))
	}
	out.add(true, "path, input → output", func(s *sketch, x, y int) { s.rect("node-sign", x, y-7, 26, 14) })
	faulty, alike, several, deep, brief, own := false, false, false, false, false, false
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
		own = own || b.n.InputVotes(l.Of)
	}
	note := func(text string) sign {
		return func(s *sketch, x, y int) { s.text("note", x+13, y+4, middle, text) }
	}
	out.add(brief && l.survey.Dotted, "last step of the path, output", note(".3 1"))
	out.add(brief && !l.survey.Dotted, "path, output", note("12 1"))
	out.add(own, "an input that is also the vote of "+l.Called(l.Of)+" at the node", note("in →"))
	out.add(l.outvoted, "outvoted by its siblings", dash("outvoted"))
	out.add(faulty, "relayed by a faulty process", func(s *sketch, x, y int) {
		s.rect("node-sign", x, y-7, 26, 14).Faulty = true
	})
	out.add(alike, "several alike", func(s *sketch, x, y int) {
		s.rect("shadow-sign", x+3, y-4, 23, 12)
		s.rect("node-sign", x, y-7, 23, 12)
	})
	out.add(several, "so many alike", note("×5"))
	out.add(deep, "nodes below it", note("+30"))
	return out
}
