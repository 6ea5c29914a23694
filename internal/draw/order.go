package draw

import (
	"fmt"
	"slices"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scale"
	"parley/internal/draw/scene"
)

// Order draws what each process delivers, in its order: a row for each process and a cell for each delivery. The same
// message has the same color and the same text in all rows, and lines join it in rows that are neighbors, so that
// they cross where orders differ and are missing where a message is.
type Order struct {
	reading.Style
	reading.Sequences
	// Tainted are events that depend on what broke a property.
	Tainted map[uint64]bool
}

func (Order) values() []string { return nil }

const (
	cellHeight = 22
	cellGap    = 8
	cellText   = 14 // maximum characters in a cell; longer texts are replaced by numbers
	orderPitch = 38
	mostRows   = 32 // maximum processes
	mostKeys   = 16 // maximum texts explained below
)

// rank is the picture of an order under construction.
type rank struct {
	Order
	labels   []string // by item
	keys     []string // the texts that labels stand for
	cell     int      // width
	left     int
	shown    int // cells in a row
	used     map[string]bool
	inks     scene.Palette
	unlisted int
	all      reading.Sequences // also of the processes that are not drawn
}

func (d Order) picture(inks scene.Palette, _ int) picture {
	all := d.Sequences
	d.Rows = d.Rows[:min(len(d.Rows), mostRows)]
	r := rank{Order: d, all: all, inks: inks, used: make(map[string]bool)}
	for id := range d.Rows {
		r.left = max(r.left, wide("name", d.Called(parley.ID(id)))+14)
	}
	r.left += 16
	r.label()
	r.shown = max((figureWidth-r.left+cellGap)/(r.cell+cellGap), 3)
	var ground, cells sketch
	title := "What each process indicates, in its order"
	if d.Delivered {
		title = "What each process delivers, in its order"
	}
	ground.text("head", 0, 16, start, title)
	longest := 0
	for id := range d.Rows {
		longest = max(longest, len(d.Rows[id]))
		r.row(&ground, &cells, parley.ID(id))
	}
	r.joins(&ground)
	r.inversions(&cells)
	y := 34 + len(d.Rows)*orderPitch
	for _, line := range r.keys {
		for _, part := range prose.Lines(line, columns("note", figureWidth)) {
			ground.text("note", 0, y+6, start, part)
			y += 17
		}
	}
	columns := min(longest, r.shown)
	width := max(r.left+columns*(r.cell+cellGap), wide("head", title))
	if len(r.keys) > 0 {
		width = figureWidth
	}
	return picture{width: width, height: y, legend: r.legend(longest), marks: slices.Concat(ground.marks, cells.marks)}
}

// label chooses what stands in the cells: texts, or numbers if texts are long.
func (r *rank) label() {
	r.labels, r.keys, r.unlisted = r.Labels(cellText, mostKeys, r.Style)
	r.cell = 30
	for _, text := range r.labels {
		r.cell = max(r.cell, wide("words", text)+14)
	}
}

func (r *rank) y(id parley.ID) int { return 34 + int(id)*orderPitch }

func (r *rank) x(place int) int { return r.left + place*(r.cell+cellGap) }

// place returns the position of a cell in its row, and whether it is drawn: of a long row the first ones and the last.
func (r *rank) place(id parley.ID, nth int) (place int, drawn bool) {
	switch n := len(r.Rows[id]); {
	case n <= r.shown || nth < r.shown-2:
		return nth, true
	case nth == n-1:
		return r.shown - 1, true
	}
	return 0, false
}

// row draws the cells of one process.
func (r *rank) row(ground, s *sketch, id parley.ID) {
	y, faulty, first := r.y(id), r.Faulty.Has(id), len(ground.marks)
	name := r.Called(id)
	w := wide("name", name) + 14
	ground.process(w/2, y+cellHeight/2, name, faulty)
	ground.about(first, scene.Process(id), 0, 0)
	if faulty {
		r.used["faulty"] = true
	}
	if len(r.Rows[id]) == 0 {
		ground.text("note", r.left, y+cellHeight/2+4, start, "nothing")
	}
	for nth, c := range r.Rows[id] {
		place, drawn := r.place(id, nth)
		if !drawn {
			continue
		}
		item, from := r.Items[c.Item], len(s.marks)
		role := "cell"
		if !item.Delivered {
			role = "cell-other"
			r.used["other"] = true
		}
		m := s.rect(role, r.x(place), y, r.cell, cellHeight)
		part := toned(r.labels[c.Item], false)
		if item.Delivered {
			m.Ink = r.ink(c.Item)
			r.used["cell"] = true
		}
		m.Value = item.Text
		if r.Tainted[c.Event] {
			s.path("taint", "%s", scale.Hatching("/", r.x(place), y, r.cell, cellHeight))
			r.used["taint"] = true
		}
		s.parts("words", r.x(place)+r.cell/2, y+cellHeight/2+4, middle, part)
		s.tip(from, fmt.Sprintf("%s %s at %s", name, c.Says, clockTime(c.Time)))
		s.about(from, scene.Event(c.Event), c.Event, 0)
	}
	if left := len(r.Rows[id]) - r.shown + 1; left > 1 {
		x := r.x(r.shown-2) + r.cell/2
		s.text("note", x, y+cellHeight/2+4, middle, fmt.Sprintf("+%d", left))
	}
}

// ink returns the color of an item: the one that it has in the other parts of the figure, if all items have one there.
func (r *rank) ink(item int) scene.Ink {
	if !slices.ContainsFunc(r.Items, func(i reading.Item) bool { return i.Delivered && !r.inks.Has(i.Text) }) {
		return r.inks.Of(r.Items[item].Text)
	}
	nth := 0
	for _, i := range r.Items[:item] {
		if i.Delivered {
			nth++
		}
	}
	return scene.Ink(1 + nth%scene.Inks)
}

// joins draws the lines between rows that are neighbors.
func (r *rank) joins(s *sketch) {
	for id := range parley.ID(max(len(r.Rows)-1, 0)) {
		for nth, c := range r.Rows[id] {
			from, drawn := r.place(id, nth)
			if !drawn || !r.Items[c.Item].Delivered {
				continue
			}
			below := slices.IndexFunc(r.Rows[id+1], func(d reading.Passed) bool { return d.Item == c.Item })
			if below < 0 {
				continue
			}
			if to, drawn := r.place(id+1, below); drawn {
				m := s.line("join", r.x(from)+r.cell/2, r.y(id)+cellHeight, r.x(to)+r.cell/2, r.y(id+1))
				m.Ink, m.Since = r.ink(c.Item), max(c.Event, r.Rows[id+1][below].Event)
				r.used["join"] = true
			}
		}
	}
}

// mostInversions is the maximum number of marked crossings between two rows.
const mostInversions = 24

// inversions marks where the lines of two messages cross: the two processes deliver them in different orders.
func (r *rank) inversions(s *sketch) {
	for id := range parley.ID(max(len(r.Rows)-1, 0)) {
		marked := 0
		for _, v := range r.Inversions(id, id+1) {
			var x [2][2]int // by message, then above and below
			all := true
			for k := range x {
				above, drawn := r.place(id, v.First[k])
				below, both := r.place(id+1, v.Second[k])
				x[k], all = [2]int{r.x(above), r.x(below)}, all && drawn && both
			}
			if !all || marked == mostInversions {
				continue
			}
			marked++
			a, b := x[0], x[1]
			part := float64(b[0]-a[0]) / float64(b[0]-a[0]+a[1]-b[1]) // of the way down
			first := len(s.marks)
			s.circle("inversion", a[0]+int(part*float64(a[1]-a[0]))+r.cell/2,
				r.y(id)+cellHeight+int(part*float64(orderPitch-cellHeight)))
			early, late := r.Items[r.Rows[id][v.First[0]].Item].Text, r.Items[r.Rows[id][v.First[1]].Item].Text
			s.tip(first, fmt.Sprintf("%s delivers %s before %s, and %s delivers %s first", r.Called(id), early, late,
				r.Called(id+1), late))
			s.about(first, scene.Event(v.Since), v.Since, 0)
			r.used["inversion"] = true
		}
	}
}

func (r *rank) legend(longest int) (out legend) {
	out.add(r.used["cell"], "delivered message", box("cell"))
	out.add(r.used["join"], "the same message", dash("join"))
	out.add(r.used["inversion"], "delivered in different orders", func(s *sketch, x, y int) {
		s.circle("inversion", x+13, y)
	})
	out.add(r.used["taint"], "contaminated: it depends on a missed delivery", func(s *sketch, x, y int) {
		s.rect("cell", x, y-7, 26, 14)
		s.path("taint", "%s", scale.Hatching("/", x, y-7, 26, 14))
	})
	out.add(r.used["other"], "indication or restart", box("cell-other"))
	out.add(r.used["faulty"], "faulty process", faultyName)
	if r.Delivered {
		correct := parley.Everyone(len(r.all.Rows)).Minus(r.Faulty)
		switch {
		case r.all.Same(correct):
			out.remark("All correct processes deliver the same in the same order.")
		case r.all.OneOrder(correct):
			out.remark("Correct processes deliver in the same order what several of them deliver, but not all deliver the same.")
		default:
			out.remark("Some correct processes deliver the same messages in different orders: their lines cross.")
		}
	}
	out.remark(hiddenProcesses(r.Style, len(r.Rows), len(r.all.Rows)))
	if longest > r.shown {
		out.remark(fmt.Sprintf("Of long rows, only the first %d and the last are drawn.", r.shown-2))
	}
	if r.unlisted > 0 {
		out.remark(prose.Count(uint64(r.unlisted), "text is", "texts are") + " not listed: point at a cell to read it.")
	}
	return out
}
