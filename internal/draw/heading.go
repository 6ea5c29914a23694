package draw

import (
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/scene"
)

// Heading is what a picture says about a run in words.
type Heading struct {
	Title, Subtitle string
	Verdicts        []parley.Verdict
}

// Part is a part of a picture: a Diagram, a Tree, a SpaceTime, and the like.
type Part interface {
	// values returns the values that need colors.
	values() []string
	// picture draws the part. The parts above it have the given width.
	picture(inks scene.Palette, above int) picture
}

// Figure draws parts below one another, with colors and a legend that all of them share.
func Figure(h Heading, parts ...Part) scene.Scene {
	inks := inksOf(parts)
	var pictures []picture
	above := 0
	for _, p := range parts {
		pictures = append(pictures, p.picture(inks, above))
		above = max(above, pictures[len(pictures)-1].width)
	}
	return figure(h, pictures...)
}

// inksOf assigns inks to the values of all parts.
func inksOf(parts []Part) scene.Palette {
	var values []string
	for _, p := range parts {
		values = append(values, p.values()...)
	}
	return scene.NewPalette(values)
}

const leastWidth = 480 // of a figure without its margins

// figure arranges pictures below one another: the title above them, the verdict and one legend below.
func figure(h Heading, parts ...picture) scene.Scene {
	width := leastWidth
	var all legend
	for _, p := range parts {
		width = max(width, p.width)
		for _, e := range p.legend {
			if !slices.ContainsFunc(all, func(known legendEntry) bool { return known.text == e.text }) {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b legendEntry) int { return min(b.wide, 1) - min(a.wide, 1) }) // values first
	var body sketch
	height := body.titles(h, width)
	for i, p := range parts {
		if i > 0 {
			body.line("rule", margin, height+18, margin+width, height+18)
			height += 38
		}
		body.group(margin, height, p.marks)
		height += p.height
	}
	if len(h.Verdicts) > 0 {
		body.line("rule", margin, height+14, margin+width, height+14)
		height = body.verdicts(h.Verdicts, width, height+18)
	}
	height = body.legendRows(all, width, height) + margin
	return scene.Scene{Title: h.name(), About: h.about(), Width: width + 2*margin, Height: height, Marks: body.marks}
}

// name returns the title of a picture, which it always has.
func (h Heading) name() string {
	if h.Title == "" {
		return "A run"
	}
	return h.Title
}

// about returns what the picture says, for a reader who does not see it.
func (h Heading) about() string {
	parts := []string{}
	if h.Subtitle != "" {
		parts = append(parts, h.Subtitle)
	}
	for _, v := range h.Verdicts {
		parts = append(parts, v.Property.Name+": "+v.Outcome())
	}
	return strings.Join(parts, "; ")
}

// titles writes the title and the subtitle, folded to the width, and returns the height below them.
func (s *sketch) titles(h Heading, width int) int {
	y := margin
	if h.Title != "" {
		for _, line := range prose.Lines(h.Title, columns("title", width)) {
			s.text("title", margin, y+20, start, line)
			y += 24
		}
		y += 4
	}
	if h.Subtitle != "" {
		for _, line := range prose.Lines(h.Subtitle, columns("subtitle", width)) {
			s.text("subtitle", margin, y+15, start, line)
			y += 18
		}
		y += 8
	}
	return y
}

// flow places things of given widths beside one another, in rows.
type flow struct {
	width, gap, row int
	x, y            int // of the next thing; y is the middle of its row
}

func newFlow(width, y int) flow { return flow{width: width, gap: 18, row: 20, x: margin, y: y + 24} }

// next returns where a thing is placed.
func (f *flow) next(wide int) (x, y int) {
	if f.x > margin && f.x+wide > margin+f.width {
		f.x, f.y = margin, f.y+f.row
	}
	x, y = f.x, f.y
	f.x += wide + f.gap
	return x, y
}

// marks stand before verdicts.
var verdictMarks = map[string]string{
	parley.Held: "✓", parley.Seen: "✓", parley.Violated: "✗", parley.NotPromisedBroken: "!",
	parley.NotPromisedHeld: "·", parley.NotSeen: "·", parley.NotApplicable: "–",
}

// verdicts writes the outcome of each property and returns the height below.
func (s *sketch) verdicts(all []parley.Verdict, width, y int) int {
	f := newFlow(width, y)
	for _, v := range all {
		outcome := v.Outcome()
		text := verdictMarks[outcome] + " " + v.Property.Name + " " + outcome
		x, y := f.next(wide("verdict", text))
		tone := "text"
		switch outcome {
		case parley.Violated, parley.NotPromisedBroken:
			tone = "fault"
		case parley.NotApplicable, parley.NotSeen:
			tone = "faint"
		}
		m := s.parts("verdict", x, y+4, start, scene.Part{Text: text, Tone: tone})
		m.Tip = v.Property.Says
		if v.Broken != nil && v.Property.Mode != parley.Sometimes {
			m.Tip += "; broken: " + v.Broken.Error()
		}
	}
	return f.y + f.row/2
}

// legendRows writes the legend below the pictures and returns the new height. Remarks follow the signs, each on lines
// of its own.
func (s *sketch) legendRows(all legend, width, y int) int {
	f, signs := newFlow(width, y), 0
	for _, e := range all {
		if e.sign == nil {
			continue
		}
		signs++
		room := max(e.wide, 26)
		x, y := f.next(room + 7 + wide("note", e.text))
		e.sign(s, x, y)
		s.text("note", x+room+7, y+4, start, e.text)
	}
	if signs > 0 {
		y = f.y + f.row/2
	}
	for _, e := range all {
		if e.sign != nil {
			continue
		}
		for _, line := range prose.Lines(e.text, columns("note", width)) {
			s.text("note", margin, y+18, start, line)
			y += 18
		}
	}
	return y
}
