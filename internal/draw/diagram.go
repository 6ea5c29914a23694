package draw

import (
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// canvas is a diagram during layout: rows of lifelines, columns of rounds.
type canvas struct {
	Diagram
	inks  scene.Palette
	rows  map[parley.ID]int
	bands []band

	names       int // width of the names
	left, right int // ends of the lifelines
	widths      []int
	top, head   int      // of the bands; head is the height of their heads
	pitch       int      // from one lifeline to the next
	labels      []labels // for each band, how its head shows messages
	labelled    bool     // some band has labels

	behind, front sketch          // the marks behind the lifelines and in front of them
	used          map[string]bool // what the legend must explain
}

const (
	bandGap   = 8
	leastSlot = 34 // the minimum width for one of several senders
	mostSlot  = 104
	mostLives = 32 // the maximum number of lifelines with separate arrows
)

// picture lays the diagram out. A diagram with too many arrows is drawn by sender.
func (d Diagram) picture(p scene.Palette, _ int) picture {
	c := canvas{Diagram: d, inks: p, rows: make(map[parley.ID]int), used: make(map[string]bool)}
	for i, l := range d.Lives {
		c.rows[l.Process] = i
	}
	c.bands = d.bands(c.rows)
	c.measure()
	lone, slots := 0, 0
	for _, b := range c.bands {
		if len(b.slots) == 1 {
			lone++
		} else {
			slots += len(b.slots)
		}
	}
	// A round with a single sender is wide if there is room.
	for _, wide := range []int{150, 110, 72} {
		room := figureWidth - c.left - c.tail() - bandGap*len(c.bands) - wide*lone
		if !d.many() && room >= slots*leastSlot {
			c.fans(wide, min(room/max(slots, 1), mostSlot))
			return c.done()
		}
	}
	return c.bySender()
}

// fans draws each sender in its own part of the round.
func (c *canvas) fans(lone, each int) {
	for i, b := range c.bands {
		width := lone
		if len(b.slots) > 1 {
			width = max(len(b.slots)*each, 100)
		}
		c.widths = append(c.widths, width)
		fit := c.fit(b, width/len(b.slots)-3)
		c.labels = append(c.labels, fit)
		c.labelled = c.labelled || c.labels[i] != noLabels
	}
	c.settle()
	x := c.left
	for i, b := range c.bands {
		c.band(x, c.widths[i], b, 0)
		for j, slot := range b.slots {
			c.fan(x+j*c.widths[i]/len(b.slots), c.widths[i]/len(b.slots), slot, c.labels[i])
		}
		x += c.widths[i] + bandGap
	}
}

// measure sets what depends only on the lifelines.
func (c *canvas) measure() {
	c.pitch = 46
	if n := len(c.Lives); n > 20 {
		c.pitch = 24
	} else if n > 8 {
		c.pitch = 34
	}
	starts := 0
	c.names = 0
	for _, l := range c.Lives {
		c.names = max(c.names, wide("name", c.Called(l.Process))+14)
		if c.roles() {
			c.names = max(c.names, wide("note", c.role(l)))
		}
		if l.Starts != nil {
			starts = max(starts, pillWidth(prose.Value(l.Starts))+8)
		}
	}
	c.left = c.names + 8 + starts + 6
}

// roles reports whether there is room for the roles below the names.
func (c *canvas) roles() bool { return c.pitch > 40 }

// role returns the role without what the color already says.
func (c *canvas) role(l reading.Outcome) string { return strings.Replace(l.Role, "faulty: ", "", 1) }

// tail returns the width of the room after the last round, for the decisions.
func (c *canvas) tail() int {
	wide := 0
	for _, l := range c.Lives {
		if l.Decides != nil {
			wide = max(wide, pillWidth(prose.Value(l.Decides)))
		}
	}
	if wide == 0 {
		return 12
	}
	return max(wide+20, 78)
}

// settle sets the ends of the lifelines, once the widths of the bands are known.
func (c *canvas) settle() {
	c.right = c.left
	for _, w := range c.widths {
		c.right += w + bandGap
	}
	c.head = 42
	if c.labelled {
		c.head = 64
	}
}

func (c *canvas) y(row int) int { return c.top + c.head + 16 + row*c.pitch }

// bottom returns the y coordinate of the lower end of the bands.
func (c *canvas) bottom() int {
	if c.roles() {
		return c.y(len(c.Lives)-1) + 26
	}
	return c.y(len(c.Lives)-1) + 16
}

// done returns the picture: the bands behind, then the lifelines, then messages.
func (c *canvas) done() picture {
	var lines sketch
	c.lifelines(&lines)
	c.ends(&c.front)
	return picture{
		width: c.right + c.tail(), height: c.bottom(), legend: c.legend(),
		marks: slices.Concat(c.behind.marks, lines.marks, c.front.marks),
	}
}

// lifelines draws a line for each process with its name, role and initial value.
func (c *canvas) lifelines(s *sketch) {
	for i, l := range c.Lives {
		y, faulty, from := c.y(i), c.Faulty.Has(l.Process), len(s.marks)
		s.line("lifeline", c.names+4, y, c.right+4, y).Faulty = faulty
		if faulty {
			c.used["faulty"] = true
		}
		name := c.Called(l.Process)
		w := wide("name", name) + 14
		lift := 0
		if c.roles() && l.Role != "" {
			lift = 6
			s.text("note", c.names, y+17, end, c.role(l))
		}
		s.rect("process", c.names-w, y-10-lift, w, 20).Faulty = faulty
		s.parts("name", c.names-w/2, y+4-lift, middle, toned(name, faulty))
		if l.Starts != nil {
			v := prose.Value(l.Starts)
			s.pill(c.names+8+pillWidth(v)/2, y, v, c.value(v), pillMost)
		}
		s.about(from, c.reference(l.Process), 0, 0)
	}
}

// reference returns the reference to a process, or "" if its lifeline stands for several.
func (c *canvas) reference(id parley.ID) string {
	if id == parley.All {
		return ""
	}
	return scene.Process(id)
}

// value returns the ink of a value, and adds the value to the legend.
func (c *canvas) value(v string) scene.Ink {
	if v != "" {
		c.used["value:"+v] = true
	}
	return c.inks.Of(v)
}

// ends draws the decisions.
func (c *canvas) ends(s *sketch) {
	x := c.right + c.tail()/2
	some := false
	for i, l := range c.Lives {
		if l.Decides == nil {
			continue
		}
		some = true
		v, from := prose.Value(l.Decides), len(s.marks)
		s.line("decision", c.right+4, c.y(i), x, c.y(i)).Ink = c.value(v)
		s.pill(x, c.y(i), v, c.value(v), pillMost)
		s.tip(from, c.Called(l.Process)+" decides "+v)
		s.about(from, c.reference(l.Process), l.Decided, 0)
	}
	if some {
		s.text("head", x, c.top+20, middle, "Decision")
	}
}

// band draws the background and the head of one round, or of several omitted ones.
func (c *canvas) band(x, width int, b band, more int) {
	s, centre := &c.behind, x+width/2
	from := len(s.marks)
	s.rect("band", x, c.top, width, c.bottom()-c.top)
	if more > 0 {
		s.text("head", centre, c.top+20, middle, prose.Ellipsis)
		s.text("note", centre, c.top+36, middle, prose.Number(uint64(more))+" more")
		return
	}
	count := prose.Count(b.messages(), "message", "messages")
	if wide("note", count) > width {
		count = prose.Number(b.messages())
	}
	s.text("head", centre, c.top+20, middle, prose.Cut(b.title(), columns("head", width)))
	s.text("note", centre, c.top+36, middle, count)
	s.about(from, scene.Round(b.Number), 0, 0)
}
