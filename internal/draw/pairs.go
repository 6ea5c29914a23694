package draw

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// Measures for pairs side by side.
const (
	pairGap   = 40
	pairHalf  = (figureWidth - pairGap) / 2
	mapWidth  = 440
	mapHeight = 236
)

// corners are the positions of up to four processes, with the source at the top.
var corners = [][][2]int{
	2: {{70, 110}, {370, 110}},
	3: {{220, 26}, {62, 196}, {378, 196}},
	4: {{220, 24}, {52, 116}, {220, 210}, {388, 116}},
}

// Pairs draws an argument with runs that look the same to a process, as the lecture draws the cases of its proof that
// three processes cannot agree. References to anything in a case begin with the case, as in c2/P1.
func Pairs(p parley.Protocol, d reading.Pairs) scene.Scene {
	var cases [][2]account
	var values []string
	for i := range d.Pairs {
		pair := [2]account{{d.Read(p, &d.Pairs[i], 0)}, {d.Read(p, &d.Pairs[i], 1)}}
		for _, c := range pair {
			values = append(values, c.Values()...)
		}
		cases = append(cases, pair)
	}
	inks := scene.NewPalette(values)
	head := paragraph{width: figureWidth}
	head.add("lead", 18, d.Title)
	head.add("sublead", 13, d.Subtitle)
	parts := []picture{head.picture()}
	for i := range d.Pairs {
		parts = append(parts, beside(&d.Pairs[i], cases[i], inks, i+1))
	}
	end := paragraph{width: figureWidth}
	end.add("about", 13, d.End)
	out := figure(Heading{}, append(parts, end.picture())...)
	out.Title, out.About = cmp.Or(d.Title, "Runs that look the same"), d.Subtitle
	return out
}

// paragraph is lines of text below one another.
type paragraph struct {
	width  int
	height int
	body   sketch
}

// add adds folded text with a role and a size in pixels.
func (g *paragraph) add(role string, size int, text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		for _, row := range prose.Lines(strings.TrimSuffix(line, "\n"), columns(role, g.width)) {
			g.height += size + 4
			g.body.text(role, 0, g.height-4, start, row)
		}
	}
	g.height += 4
}

func (g *paragraph) picture() picture {
	return picture{width: g.width, height: g.height, marks: g.body.marks}
}

// account is a case to draw.
type account struct{ *reading.Account }

// beside draws two runs side by side, or below one another if they are too wide. number is the number of the first.
func beside(pair *reading.Pair, cases [2]account, inks scene.Palette, number int) picture {
	var maps [2]picture
	small := true
	for i, c := range cases {
		m, ok := c.chart(pair.Same, inks)
		maps[i], small = m, small && ok
	}
	if !small {
		maps = [2]picture{cases[0].rounds(inks), cases[1].rounds(inks)}
	}
	for i := range maps {
		within(fmt.Sprintf("c%d/", number+i), maps[i].marks)
	}
	width := pairHalf
	narrow := max(maps[0].width, maps[1].width) <= pairHalf
	if !narrow {
		width = figureWidth
	}
	var columns [2][]picture
	for i, c := range cases {
		head, sees, must := paragraph{width: width}, paragraph{width: width - 24}, paragraph{width: width}
		head.add("case", 15, c.Title)
		head.add("about", 13, c.About())
		title := "What " + c.Called(pair.Same) + " sees"
		if i == 1 {
			title += ": the same"
		}
		sees.add("sees-head", 13, title)
		for _, line := range c.Sees() {
			sees.add("sees", 12, line)
		}
		must.add("about", 13, pair.Must[i])
		columns[i] = []picture{head.picture(), maps[i], framed(sees.picture(), width), must.picture()}
	}
	if narrow {
		return sideBySide(columns, width)
	}
	between := picture{height: 12}
	return stacked(slices.Concat(columns[0], []picture{between}, columns[1]), figureWidth)
}

// within prefixes references with a case.
func within(of string, marks []scene.Mark) {
	for i := range marks {
		if marks[i].Ref != "" {
			marks[i].Ref = of + marks[i].Ref
		}
	}
}

// framed puts a picture on a background of its own.
func framed(p picture, width int) picture {
	var s sketch
	s.rect("frame", 0, 0, width, p.height+16)
	s.group(12, 8, p.marks)
	return picture{width: width, height: p.height + 20, marks: s.marks}
}

// sideBySide arranges two columns of pictures side by side, with corresponding parts at the same height.
func sideBySide(columns [2][]picture, width int) picture {
	var rows []picture
	for k := range columns[0] {
		a, b := columns[0][k], columns[1][k]
		var s sketch
		s.group(max(width-a.width, 0)/2, 0, a.marks)
		s.group(width+pairGap+max(width-b.width, 0)/2, 0, b.marks)
		rows = append(rows, picture{
			width: 2*width + pairGap, height: max(a.height, b.height),
			marks: s.marks, legend: slices.Concat(a.legend, b.legend),
		})
	}
	return stacked(rows, 2*width+pairGap)
}

// stacked arranges pictures below one another.
func stacked(rows []picture, width int) picture {
	const gap = 8
	out := picture{width: width}
	var s sketch
	for _, r := range rows {
		s.group(0, out.height, r.marks)
		out.legend = slices.Concat(out.legend, r.legend)
		out.width = max(out.width, r.width)
		out.height += r.height + gap
	}
	out.marks = s.marks
	return out
}

// rounds draws a case as a diagram of rounds.
func (c account) rounds(inks scene.Palette) picture {
	rounds := reading.Gather(c.Protocol, c.Events, reading.Gathering{Style: c.Style})
	for i := range rounds {
		for k := range rounds[i].Said {
			s := &rounds[i].Said[k]
			s.Lie = slices.ContainsFunc(c.Said, func(t reading.Saying) bool {
				return t.Lie && t.Round == rounds[i].Number && t.From == s.From && slices.Contains(s.To, t.To[0])
			})
		}
	}
	return Diagram{Style: c.Style, Lives: c.Starts, Rounds: rounds}.picture(inks, 0)
}

// chart draws the messages as the lecture does: the source at the top, and an arrow for each message. It returns
// false if the case does not allow that.
func (c account) chart(same parley.ID, inks scene.Palette) (picture, bool) {
	arrows, ok := c.Mapped()
	ids := c.Order()
	if !ok || len(ids) >= len(corners) || corners[len(ids)] == nil {
		return picture{}, false
	}
	d := chart{canvas{Diagram: Diagram{Style: c.Style}, inks: inks, used: make(map[string]bool)}}
	var pills sketch
	for i, from := range ids {
		for j, to := range ids {
			if t := arrows[[2]parley.ID{from, to}]; t != nil {
				d.message(corners[len(ids)][i], corners[len(ids)][j], t, arrows[[2]parley.ID{to, from}] != nil, &pills)
			}
		}
	}
	d.front.marks = append(d.front.marks, pills.marks...)
	for i, id := range ids {
		d.process(corners[len(ids)][i], id, id == same, c.Starts[id].Starts)
	}
	return picture{width: mapWidth, height: mapHeight, legend: d.legend(), marks: d.front.marks}, true
}

// chart is a picture of the processes and the messages between them.
type chart struct{ canvas }

// message draws an arrow from one place to another, next to the opposite one if there is one. The text is nearer to
// its sender, away from the crossings of arrows.
func (d *chart) message(from, to [2]int, t *reading.Saying, both bool, pills *sketch) {
	const away, beside = 30, 9
	dx, dy := to[0]-from[0], to[1]-from[1]
	length := max(int(math.Sqrt(float64(dx*dx+dy*dy))), 1)
	x, y := 0, 0
	if both {
		x, y = -dy*beside/length, dx*beside/length
	}
	x1, y1 := from[0]+dx*away/length+x, from[1]+dy*away/length+y
	x2, y2 := to[0]-dx*away/length+x, to[1]-dy*away/length+y
	total := uint64(len(t.Rows))
	a := arrow{reading.Said{From: t.From, Values: t.Values, Lie: t.Lie && total > 0, Total: total}, t.Round, t.To[0]}
	d.arrow(x1, y1, x2, y2, a)
	if value := t.Values.One(); value != "" {
		first := len(pills.marks)
		pills.pill(x1+(x2-x1)*3/10, y1+(y2-y1)*3/10, value, d.value(value), arrowMost)
		a.mark(pills, first, d.Style)
	}
}

// process draws one process, and emphasizes the one that the pair is about.
func (d *chart) process(at [2]int, id parley.ID, same bool, starts []byte) {
	s, first, faulty := &d.front, len(d.front.marks), d.Faulty.Has(id)
	if faulty {
		d.used["liar"] = true
	}
	name := d.Called(id)
	w := max(wide("actor-name", name)+16, 40)
	if same {
		s.rect("same", at[0]-w/2-5, at[1]-19, w+10, 38)
	}
	s.rect("actor", at[0]-w/2, at[1]-14, w, 28).Faulty = faulty
	s.parts("actor-name", at[0], at[1]+5, middle, toned(name, faulty))
	if starts != nil {
		v := prose.Value(starts)
		s.pill(at[0]+w/2+10+pillWidth(v)/2, at[1], v, d.value(v), arrowMost)
	}
	s.about(first, scene.Process(id), 0, 0)
}

// legend explains the signs in a chart.
func (d *chart) legend() legend {
	lie, liar := d.used["lie"], d.used["liar"]
	d.used["lie"] = false
	out := d.canvas.legend()
	out.add(lie, "a lie", lineSign(true, false))
	out.add(liar, "faulty process", faultyName)
	out.add(true, "to whom both look the same", func(s *sketch, x, y int) {
		s.rect("same-sign", x, y-9, 26, 18)
		s.rect("actor-sign", x+3, y-6, 20, 12)
	})
	return out
}
