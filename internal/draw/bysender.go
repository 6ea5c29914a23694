package draw

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
)

// A system that is too big for single arrows is drawn by sender: in each round, every sender has one fat arrow on its
// lifeline with the number of its messages, divided by the values in them. If there are too many lifelines or rounds,
// only the first and the last are drawn.

const (
	leastFat   = 84 // the minimum width of a fat arrow
	fatHeight  = 14
	headLength = 9
)

// load is what one or several senders send in one round.
type load struct {
	messages, receivers uint64
	lies, missing       uint64
	since               uint64            // the event that sent the first of them
	byValue             map[string]uint64 // "" for messages without a known value
}

func (l *load) add(b slot) {
	if l.byValue == nil {
		l.byValue = make(map[string]uint64)
	}
	for _, a := range b.arrows {
		switch {
		case a.missing() || a.Fate != reading.Arrives:
			l.missing++
			continue
		case a.Lie:
			l.lies++
		}
		l.receivers++
		if at := a.Spans[a.to].Since; l.since == 0 || at < l.since {
			l.since = at
		}
		l.messages = reading.Sum(l.messages, a.Total)
		known := uint64(0)
		for _, v := range a.Values {
			l.byValue[v.Value] += v.Rows
			known += v.Rows
		}
		if known < a.Total {
			l.byValue[""] += a.Total - known
		}
	}
}

// words describes what the sender of that name sends.
func (l *load) words(name string) string {
	text := fmt.Sprintf("%s sends %s to %s", name, prose.Count(l.messages, "message", "messages"),
		prose.Count(l.receivers, "receiver", "receivers"))
	if l.lies > 0 {
		text += fmt.Sprintf(", lies to %d", l.lies)
	}
	if l.missing > 0 {
		text += fmt.Sprintf(", and none that arrives in time to %d", l.missing)
	}
	return text
}

// shares returns the values in order.
func (l *load) shares() reading.Shares {
	var out reading.Shares
	for v, n := range l.byValue { // order: sorted below
		out = append(out, reading.Share{Value: v, Rows: n})
	}
	slices.SortFunc(out, func(a, b reading.Share) int { return strings.Compare(a.Value, b.Value) })
	return out
}

// bySender lays the diagram out with one arrow for each sender and round.
func (c *canvas) bySender() picture {
	hidden := c.shorten()
	c.pitch = 24
	room := figureWidth - c.left - c.tail()
	shown := c.bands
	gap := 0 // omitted rounds, and the shown round before which they were
	if fit := max(room/(leastFat+bandGap), 3); len(shown) > fit {
		gap = len(shown) - (fit - 1)
		shown = append(slices.Clone(shown[:fit-2]), shown[len(shown)-1])
	}
	each := 160
	if len(shown) > 0 {
		columns := len(shown)
		if gap > 0 {
			columns++
		}
		each = min(each, room/columns-bandGap)
	}
	for i := range shown {
		if gap > 0 && i == len(shown)-1 {
			c.widths = append(c.widths, each)
		}
		c.widths = append(c.widths, each)
	}
	c.settle()
	x := c.left
	for i, b := range shown {
		if gap > 0 && i == len(shown)-1 {
			c.band(x, each, band{}, gap)
			x += each + bandGap
		}
		c.band(x, each, b, 0)
		loads := make([]load, len(c.Lives))
		for _, one := range b.slots {
			row, drawn := c.rows[one.from]
			if !drawn {
				row = hidden
			}
			loads[row].add(one)
		}
		for row := range loads {
			if loads[row].byValue != nil {
				id, ref := c.Lives[row].Process, ""
				if id != parley.All {
					ref = scene.Sender(b.Number, id)
				}
				c.fat(x+6, c.y(row), each-12, loads[row], id, ref)
			}
		}
		x += each + bandGap
	}
	return c.done()
}

// shorten omits lifelines if there are too many: faulty processes and the first ones stay, and one line stands for
// the others. It returns the row of that line, or -1.
func (c *canvas) shorten() (hidden int) {
	if len(c.Lives) <= mostLives {
		return -1
	}
	var kept []reading.Outcome
	room := mostLives - 1
	for _, l := range c.Lives {
		if c.Faulty.Has(l.Process) && room > mostLives/2 {
			room--
		}
	}
	faulty := mostLives - 1 - room
	rest := 0
	for _, l := range c.Lives {
		switch {
		case c.Faulty.Has(l.Process) && faulty > 0:
			faulty--
		case !c.Faulty.Has(l.Process) && room > 0:
			room--
		default:
			rest++
			continue
		}
		kept = append(kept, l)
	}
	name, others := c.Name, fmt.Sprintf("%s %d more", prose.Ellipsis, rest)
	style := c.Style
	c.Name = func(id parley.ID) string {
		if id == parley.All {
			return others
		}
		if name == nil {
			return style.Called(id)
		}
		return name(id)
	}
	c.Lives = append(kept, reading.Outcome{Process: parley.All})
	c.rows = make(map[parley.ID]int)
	for i, l := range c.Lives {
		c.rows[l.Process] = i
	}
	c.measure()
	return len(c.Lives) - 1
}

// fat draws the arrow of one sender in one round. The more receivers it did not reach, the shorter it is.
func (c *canvas) fat(x, y, width int, l load, id parley.ID, ref string) {
	s, first := &c.front, len(c.front.marks)
	defer func() {
		s.tip(first, l.words(c.Called(id)))
		s.about(first, ref, l.since, 0)
	}()
	full := x + width
	if l.missing > 0 {
		at := x + width/3
		if l.receivers > 0 {
			width = max(min(share(l.receivers, l.receivers+l.missing, width), width-16), 48)
			at = min(x+width+14, full-3)
		}
		s.missing(x, y, at, y)
		c.used["short"] = true
	}
	if c.used["fat"] = c.used["fat"] || l.messages > 0; l.messages == 0 {
		return
	}
	top, low, neck := y-fatHeight/2, y+fatHeight/2, x+width-headLength
	tip := fmt.Sprintf("V%d L%d,%d L%d,%d", top-3, x+width, y, neck, low+3)
	outline := fmt.Sprintf("M%d,%d H%d %s V%d H%d Z", x, top, neck, tip, low, x)
	s.path("fat", "%s", outline)
	values := l.shares()
	c.bar(s, x, top, neck-x, fatHeight, values)
	if values[0].Value == "" {
		c.used["mixed"] = true
	}
	last := values[len(values)-1].Value
	m := s.path("tip", "M%d,%d %s Z", neck, y, tip)
	m.Value, m.Ink = last, c.inks.Of(last)
	if l.lies > 0 {
		s.path("fat", "%s", outline).Lie = true
		c.used["lie"] = true
	}
	s.text("value", x+(neck-x)/2, y+4, middle, prose.Number(l.messages))
}
