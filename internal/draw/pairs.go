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
)

// Where pairs are drawn side by side.
const (
	pairGap   = 40
	pairHalf  = (figureWidth - pairGap) / 2
	mapWidth  = 440
	mapHeight = 236
)

// corners are where up to four processes stand, the source on top.
var corners = [][][2]int{
	2: {{70, 110}, {370, 110}},
	3: {{220, 26}, {62, 196}, {378, 196}},
	4: {{220, 24}, {52, 116}, {220, 210}, {388, 116}},
}

// inkLiar is the ground of a faulty process.
const inkLiar = "#fff1f0"

// SVG draws the argument.
func PairsSVG(p parley.Protocol, d reading.Pairs) string {
	var cases [][2]account
	var values []string
	for i := range d.Pairs {
		pair := [2]account{{d.Read(p, &d.Pairs[i], 0)}, {d.Read(p, &d.Pairs[i], 1)}}
		for _, c := range pair {
			values = append(values, c.Values()...)
		}
		cases = append(cases, pair)
	}
	inks := newPalette(values)
	head := paragraph{width: figureWidth}
	head.add("t", 18, d.Title)
	head.add("s", 13, d.Subtitle)
	parts := []picture{head.picture()}
	for i := range d.Pairs {
		parts = append(parts, beside(&d.Pairs[i], cases[i], inks))
	}
	end := paragraph{width: figureWidth}
	end.add("e", 13, d.End)
	return figure(cmp.Or(d.Title, "Runs that look the same"), append(parts, end.picture())...)
}

// paragraph is lines of text, one below the other.
type paragraph struct {
	width  int
	height int
	body   svg
}

// add writes a text of a class, folded. e is for s in the ink of all else.
func (g *paragraph) add(class string, size int, text string) {
	if text == "" {
		return
	}
	wide, ink := sansWidth("x", size), inkText
	switch class {
	case "m":
		wide = monoWidth("x", size)
	case "s":
		ink = inkFaint
	case "e":
		class = "s"
	}
	style := fmt.Sprintf("fill:%s;font-size:%dpx", ink, size)
	for line := range strings.Lines(text) {
		for _, row := range prose.Lines(strings.TrimSuffix(line, "\n"), g.width/wide) {
			g.height += size + 4
			g.body.text(0, g.height-4, class, row, "style", style)
		}
	}
	g.height += 4
}

func (g *paragraph) picture() picture {
	body := g.body.b.String()
	return picture{width: g.width, height: g.height, draw: func(s *svg) { s.b.WriteString(body) }}
}

// account is a case that is drawn.
type account struct{ *reading.Account }

// beside draws two runs side by side, or one below the other if they are too wide.
func beside(pair *reading.Pair, cases [2]account, inks palette) picture {
	var maps [2]picture
	small := true
	for i, c := range cases {
		m, ok := c.chart(pair.Same, inks)
		maps[i], small = m, small && ok
	}
	if !small {
		maps = [2]picture{cases[0].rounds(inks), cases[1].rounds(inks)}
	}
	width := pairHalf
	narrow := max(maps[0].width, maps[1].width) <= pairHalf
	if !narrow {
		width = figureWidth
	}
	var columns [2][]picture
	for i, c := range cases {
		head, sees, must := paragraph{width: width}, paragraph{width: width - 24}, paragraph{width: width}
		head.add("h", 15, c.Title)
		head.add("e", 13, c.About())
		title := "What " + c.Called(pair.Same) + " sees"
		if i == 1 {
			title += ": the same"
		}
		sees.add("h", 13, title)
		for _, line := range c.Sees() {
			sees.add("m", 12, line)
		}
		must.add("e", 13, pair.Must[i])
		columns[i] = []picture{head.picture(), maps[i], framed(sees.picture(), width), must.picture()}
	}
	if narrow {
		return sideBySide(columns, width)
	}
	between := picture{height: 12, draw: func(*svg) {}}
	return stacked(slices.Concat(columns[0], []picture{between}, columns[1]), figureWidth)
}

// framed puts a picture on a ground of its own.
func framed(p picture, width int) picture {
	return picture{width: width, height: p.height + 20, draw: func(s *svg) {
		s.rect(0, 0, width, p.height+16, "rx", 8, "fill", inkBand, "stroke", inkLine)
		s.open("g", "transform", "translate(12,8)")
		p.draw(s)
		s.end("g")
	}}
}

// sideBySide puts two columns of pictures side by side, with their parts at one height.
func sideBySide(columns [2][]picture, width int) picture {
	var rows []picture
	for k := range columns[0] {
		a, b := columns[0][k], columns[1][k]
		row := joined(a, b)
		row.width, row.height = 2*width+pairGap, max(a.height, b.height)
		row.draw = func(s *svg) {
			s.open("g", "transform", fmt.Sprintf("translate(%d,0)", max(width-a.width, 0)/2))
			a.draw(s)
			s.end("g")
			s.open("g", "transform", fmt.Sprintf("translate(%d,0)", width+pairGap+max(width-b.width, 0)/2))
			b.draw(s)
			s.end("g")
		}
		rows = append(rows, row)
	}
	return stacked(rows, 2*width+pairGap)
}

// joined has the colours and legends of both.
func joined(a, b picture) picture {
	return picture{colours: slices.Concat(a.colours, b.colours), legend: slices.Concat(a.legend, b.legend)}
}

// stacked puts pictures one below the other.
func stacked(rows []picture, width int) picture {
	const gap = 8
	out := picture{width: width}
	var tops []int
	for _, r := range rows {
		both := joined(out, r)
		out.colours, out.legend = both.colours, both.legend
		tops = append(tops, out.height)
		out.width = max(out.width, r.width)
		out.height += r.height + gap
	}
	out.draw = func(s *svg) {
		for i, r := range rows {
			s.open("g", "transform", fmt.Sprintf("translate(0,%d)", tops[i]))
			r.draw(s)
			s.end("g")
		}
	}
	return out
}

// rounds draws a case as a diagram of rounds.
func (c account) rounds(inks palette) picture {
	rounds := reading.Gather(c.Protocol, c.Events, reading.Gathering{Style: c.Style})
	for i := range rounds {
		for k := range rounds[i].Said {
			s := &rounds[i].Said[k]
			s.Lie = slices.ContainsFunc(c.Said, func(t reading.Saying) bool {
				return t.Lie && t.Round == rounds[i].Number && t.From == s.From && slices.Contains(s.To, t.To[0])
			})
		}
	}
	return Diagram{Style: c.Style, Lives: c.Starts, Arrows: Arrows(rounds)}.picture(inks)
}

// chart draws who tells whom what, as the lecture does: the source on top, and an arrow
// for each message. It tells whether that can be.
func (c account) chart(same parley.ID, inks palette) (picture, bool) {
	arrows, ok := c.Mapped()
	ids := c.Order()
	if !ok || len(ids) >= len(corners) || corners[len(ids)] == nil {
		return picture{}, false
	}
	d := chart{canvas{Diagram: Diagram{Style: c.Style}, inks: inks, used: make(map[string]bool)}}
	var pills svg
	for i, from := range ids {
		for j, to := range ids {
			if t := arrows[[2]parley.ID{from, to}]; t != nil {
				d.message(corners[len(ids)][i], corners[len(ids)][j], t, arrows[[2]parley.ID{to, from}] != nil, &pills)
			}
		}
	}
	d.front.b.WriteString(pills.b.String())
	for i, id := range ids {
		d.process(corners[len(ids)][i], id, id == same, c.Starts[id].Starts)
	}
	var colours []string
	for colour := range d.used { // order: sorted below
		if strings.HasPrefix(colour, "#") {
			colours = append(colours, colour)
		}
	}
	slices.Sort(colours)
	body := d.front.b.String()
	return picture{
		width: mapWidth, height: mapHeight, colours: colours, legend: d.legend(),
		draw: func(s *svg) { s.b.WriteString(body) },
	}, true
}

// chart is a picture of who tells whom what.
type chart struct{ canvas }

// message draws an arrow from one place to another, beside the one that goes back if
// there is one. What is said stands nearer to who says it, apart from where arrows cross.
func (d *chart) message(from, to [2]int, t *reading.Saying, both bool, pills *svg) {
	const away, beside = 30, 9
	dx, dy := to[0]-from[0], to[1]-from[1]
	length := max(int(math.Sqrt(float64(dx*dx+dy*dy))), 1)
	x, y := 0, 0
	if both {
		x, y = -dy*beside/length, dx*beside/length
	}
	x1, y1 := from[0]+dx*away/length+x, from[1]+dy*away/length+y
	x2, y2 := to[0]-dx*away/length+x, to[1]-dy*away/length+y
	value := t.Values.One()
	d.arrow(x1, y1, x2, y2, Arrow{Values: t.Values, Lie: t.Lie && len(t.Rows) > 0, Missing: len(t.Rows) == 0})
	if value != "" {
		pills.pill(x1+(x2-x1)*3/10, y1+(y2-y1)*3/10, value, d.inks.of(value))
		d.used["value:"+value] = true
	}
}

// process draws one process. The one that the pair is about stands out.
func (d *chart) process(at [2]int, id parley.ID, same bool, starts []byte) {
	ground, border, text := "#ffffff", "#8c959f", inkText
	if d.Faulty.Has(id) {
		ground, border, text = inkLiar, inkFault, inkFault
		d.used["liar"] = true
	}
	name := d.Called(id)
	w := max(monoWidth(name, 14)+16, 40)
	if same {
		d.front.rect(at[0]-w/2-5, at[1]-19, w+10, 38, "rx", 11,
			"fill", "none", "stroke", inkText, "stroke-width", 1.4)
	}
	d.front.rect(at[0]-w/2, at[1]-14, w, 28, "rx", 7, "fill", ground, "stroke", border, "stroke-width", 1.4)
	d.front.spans(at[0], at[1]+5, "p", []span{{text: name, colour: text}},
		"text-anchor", "middle", "style", "font-size:14px")
	if starts != nil {
		v := prose.Value(starts)
		d.front.pill(at[0]+w/2+10+pillWidth(v)/2, at[1], v, d.inks.of(v))
		d.used["value:"+v] = true
	}
}

// legend explains what is in a chart.
func (d *chart) legend() []legendEntry {
	lie, liar := d.used["lie"], d.used["liar"]
	d.used["lie"] = false
	out := d.canvas.legend()
	box := func(s *svg, x, y int, ground, border string) {
		s.rect(x+3, y-6, 20, 12, "rx", 3, "fill", ground, "stroke", border)
	}
	if lie {
		out = append(out, legendEntry{text: "a lie", sign: func(s *svg, x, y int) {
			s.line(x, y, x+26, y, "stroke", inkFault, "stroke-width", 2, "stroke-dasharray", "5 3")
		}})
	}
	if liar {
		out = append(out, legendEntry{text: "faulty process", sign: func(s *svg, x, y int) {
			box(s, x, y, inkLiar, inkFault)
		}})
	}
	return append(out, legendEntry{text: "to whom both look the same", sign: func(s *svg, x, y int) {
		s.rect(x, y-9, 26, 18, "rx", 5, "fill", "none", "stroke", inkText, "stroke-width", 1.4)
		box(s, x, y, inkCard, "#8c959f")
	}})
}
