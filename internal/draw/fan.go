package draw

import (
	"slices"
	"strings"

	"parley/internal/draw/reading"

	"parley/internal/draw/prose"
)

// labels tells how the messages of a band are written over its slots.
type labels uint8

const (
	noLabels    labels = iota // there is nothing to write, or no room
	wholeLabels               // {0,132}
	shortLabels               // 0,132
)

func (l labels) write(label string) string {
	if l == shortLabels {
		return strings.TrimSuffix(strings.TrimPrefix(label, "{"), "}")
	}
	return label
}

// fit chooses the labels of a band for the room of one slot.
func (c *canvas) fit(b band, room int) labels {
	for _, l := range []labels{wholeLabels, shortLabels} {
		some, fits := false, true
		for _, s := range b.slots {
			if a, alike := s.common(); alike {
				some = true
				fits = fits && monoWidth(l.write(a.Label), 10) <= room
			}
		}
		if some && fits {
			return l
		}
	}
	return noLabels
}

// fan draws what one process sends in one round: an arrow to each receiver.
func (c *canvas) fan(x, width int, b slot, l labels) {
	s, from := &c.front, c.y(c.rows[b.from])
	start, tip := x+min(12, width/4), x+width-min(14, width/4)
	common, alike := b.common()
	if alike && l != noLabels {
		common.Label = l.write(common.Label)
		c.label(x+width/2, width, common)
	}
	own := false
	for _, a := range b.arrows {
		if a.From == a.To {
			own = true
			continue
		}
		c.arrow(start, from, tip, c.y(c.rows[a.To]), a)
	}
	for _, a := range b.arrows {
		if v := a.Values.One(); !alike && !a.Missing && v != "" && a.From != a.To {
			to := c.y(c.rows[a.To])
			s.pill(start+(tip-start)*2/3, from+(to-from)*2/3, v, c.inks.of(v))
			c.used["value:"+v] = true
		}
	}
	dot := inkMixed
	if alike {
		dot = c.inks.of(common.Values.One()).line
	}
	if c.Faulty.Has(b.from) {
		dot = inkFault
	}
	if own {
		s.put("circle", "cx", start, "cy", from, "r", 7, "fill", "none", "stroke", dot, "stroke-width", 1.2)
		c.used["own"] = true
	}
	s.put("circle", "cx", start, "cy", from, "r", 4, "fill", dot)
}

// label says in the head of the band what a sender tells all: the message, or
// how many they are and, as a bar, which values they speak of.
func (c *canvas) label(x, width int, a Arrow) {
	s, y := &c.front, c.top+c.head-8
	switch {
	case a.Missing:
		s.spans(x, y, "m", []span{{text: "silent", colour: inkFault}}, "text-anchor", "middle")
	case len(a.Values) < 2:
		colour := inkFaint
		if v := a.Values.One(); v != "" {
			colour = c.inks.of(v).line
		}
		s.spans(x, y, "m", []span{{text: a.Label, colour: colour}}, "text-anchor", "middle")
	default:
		s.spans(x, y-6, "m", []span{{text: a.Label, colour: inkFaint}}, "text-anchor", "middle")
		bar := min(width-10, 36)
		c.bar(s, x-bar/2, y-2, bar, 5, a.Values)
		c.used["bar"] = true
	}
}

// bar divides a length by values.
func (c *canvas) bar(s *svg, x, y, width, height int, values reading.Shares) {
	whole, done := uint64(0), uint64(0)
	for _, v := range values {
		whole = reading.Sum(whole, v.Rows)
	}
	at := x
	for _, v := range values {
		done += v.Rows
		to := x + share(done, whole, width)
		s.rect(at, y, to-at, height, "fill", c.inks.of(v.Value).line)
		at = to
		if v.Value != "" {
			c.used["value:"+v.Value] = true
		}
	}
}

// share is part of a length in proportion.
func share(part, whole uint64, length int) int {
	for whole > 1<<32 {
		part, whole = part>>1, whole>>1
	}
	return int(part * uint64(length) / max(whole, 1))
}

// arrow draws one message.
func (c *canvas) arrow(x1, y1, x2, y2 int, a Arrow) {
	s := &c.front
	if a.Missing {
		s.missing(x1, y1, x1+(x2-x1)*2/3, y1+(y2-y1)*2/3)
		c.used["missing"] = true
		return
	}
	value := a.Values.One()
	line := c.inks.of(value).line
	var attributes []any
	switch {
	case a.Lie:
		line = inkFault
		attributes = append(attributes, "stroke-width", 1.6, "stroke-dasharray", "5 3")
		c.used["lie"] = true
	case value == "":
		attributes = append(attributes, "stroke-width", 1.1)
		c.used["mixed"] = true
	default:
		attributes = append(attributes, "stroke-width", 1.4)
		c.used["value:"+value] = true
	}
	c.used[line] = true
	s.line(x1, y1, x2, y2, append(attributes, "stroke", line, "marker-end", "url(#"+headOfArrow(line)+")")...)
}

// legend explains what is in the picture.
func (c *canvas) legend() []legendEntry {
	var out []legendEntry
	sample := func(colour string, more ...any) func(s *svg, x, y int) {
		return func(s *svg, x, y int) {
			s.line(x, y, x+26, y, append([]any{"stroke", colour, "stroke-width", 2}, more...)...)
		}
	}
	var values []string
	for what := range c.used { // order: sorted below
		if v, ok := strings.CutPrefix(what, "value:"); ok {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	for _, v := range values {
		out = append(out, valueEntry(c.inks, v))
	}
	if c.used["mixed"] {
		out = append(out, legendEntry{sign: sample(inkMixed), text: "several values"})
	}
	if c.used["lie"] {
		out = append(out, legendEntry{sign: sample(inkFault, "stroke-dasharray", "5 3"), text: "a lie that the trace shows"})
	}
	if c.used["missing"] {
		out = append(out, legendEntry{sign: func(s *svg, x, y int) {
			sample(inkMixed, "stroke-dasharray", "1 3")(s, x, y)
			s.cross(x+13, y)
		}, text: "did not come"})
	}
	if c.used["own"] {
		out = append(out, legendEntry{sign: func(s *svg, x, y int) {
			s.put("circle", "cx", x+13, "cy", y, "r", 7, "fill", "none", "stroke", inkFaint, "stroke-width", 1.2)
			s.put("circle", "cx", x+13, "cy", y, "r", 4, "fill", inkFaint)
		}, text: "keeps its own copy"})
	}
	if c.used["faulty"] {
		out = append(out, legendEntry{sign: sample(inkFaulty, "stroke-dasharray", "5 3"), text: "faulty process"})
	}
	return out
}

// valueEntry is the legend of one value.
func valueEntry(inks palette, v string) legendEntry {
	wide := max(26, pillWidth(v))
	return legendEntry{func(s *svg, x, y int) { s.pill(x+wide/2, y, v, inks.of(v)) }, "value " + prose.Cut(v, 24), wide}
}
