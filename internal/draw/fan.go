package draw

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/internal/draw/reading"
	"parley/internal/draw/scene"

	"parley/internal/draw/prose"
)

// labels says how the messages of a band are written above its slots.
type labels uint8

const (
	noLabels    labels = iota // nothing to write, or no room
	wholeLabels               // {0,132}
	shortLabels               // 0,132
)

func (l labels) write(label string) string {
	if l == shortLabels {
		return strings.TrimSuffix(strings.TrimPrefix(label, "{"), "}")
	}
	return label
}

// fit chooses the labels of a band for the width of one slot.
func (c *canvas) fit(b band, room int) labels {
	for _, l := range []labels{wholeLabels, shortLabels} {
		some, fits := false, true
		for _, s := range b.slots {
			if a, alike := s.common(); alike {
				some = true
				fits = fits && wide("words", l.write(a.label())) <= room
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
	sender, first := scene.Sender(b.arrows[0].round, b.from), len(s.marks)
	near, tip := x+min(12, width/4), x+width-min(14, width/4)
	common, alike := b.common()
	if alike && l != noLabels {
		c.label(x+width/2, width, common, l.write(common.label()))
		s.about(first, sender, common.Spans[common.to].Since, 0)
	}
	own := false
	for _, a := range b.arrows {
		if a.From == a.to {
			own = true
			continue
		}
		c.arrow(near, from, tip, c.y(c.rows[a.to]), a)
	}
	for _, a := range b.arrows {
		if v := a.Values.One(); !alike && !a.missing() && v != "" && a.From != a.to {
			to, first := c.y(c.rows[a.to]), len(s.marks)
			s.pill(near+(tip-near)*2/3, from+(to-from)*2/3, v, c.value(v), max(columns("value", width-24), arrowMost))
			a.mark(s, first, c.Style)
		}
	}
	ink, faulty := scene.Ink(0), c.Faulty.Has(b.from)
	if alike {
		ink = c.inks.Of(common.Values.One())
	}
	first = len(s.marks)
	if own {
		m := s.circle("own", near, from)
		m.Ink, m.Faulty = ink, faulty
		c.used["own"] = true
	}
	m := s.circle("sender", near, from)
	m.Ink, m.Faulty = ink, faulty
	text := fmt.Sprintf("%s sends in round %d", c.Called(b.from), b.arrows[0].round)
	if own {
		text += " and keeps its own copy"
	}
	s.tip(first, text)
	s.about(first, sender, common.Spans[common.to].Since, 0)
}

// label shows in the head of the band what a sender sends to all: the message, or the number of messages and, as a
// bar, their values.
func (c *canvas) label(x, width int, a arrow, text string) {
	s, y := &c.front, c.top+c.head-8
	switch {
	case a.missing():
		s.parts("words", x, y, middle, toned("silent", true))
	case len(a.Values) < 2:
		s.parts("words", x, y, middle, inked(text, c.inks.Of(a.Values.One())))
	default:
		s.parts("words", x, y-6, middle, inked(text, 0))
		bar := min(width-10, 36)
		c.bar(s, x-bar/2, y-2, bar, 5, a.Values)
	}
}

// bar divides a length by values.
func (c *canvas) bar(s *sketch, x, y, width, height int, values reading.Shares) {
	whole, done := uint64(0), uint64(0)
	for _, v := range values {
		whole = reading.Sum(whole, v.Rows)
	}
	at := x
	for _, v := range values {
		done += v.Rows
		to := x + share(done, whole, width)
		m := s.rect("share", at, y, to-at, height)
		m.Value, m.Ink = v.Value, c.value(v.Value)
		at = to
	}
}

// share returns a part of a length in proportion.
func share(part, whole uint64, length int) int {
	for whole > 1<<32 {
		part, whole = part>>1, whole>>1
	}
	return int(part * uint64(length) / max(whole, 1))
}

// arrow draws one message.
func (c *canvas) arrow(x1, y1, x2, y2 int, a arrow) {
	s, first := &c.front, len(c.front.marks)
	defer func() { a.mark(s, first, c.Style) }()
	if a.missing() {
		s.missing(x1, y1, x1+(x2-x1)*2/3, y1+(y2-y1)*2/3)
		c.used["missing"] = true
		return
	}
	var m *scene.Mark
	switch a.Fate {
	case reading.Late:
		m = s.stopped("message", "late", x1, y1, x2, y2)
		c.used["late"] = true
	case reading.Omitted:
		m = s.omitted("message", x1, y1, x2, y2)
		c.used["omitted"] = true
	default:
		m = s.line("message", x1, y1, x2, y2)
		m.Arrow = true
	}
	m.Value, m.Lie = a.Values.One(), a.Lie
	switch {
	case a.Lie:
		c.used["lie"] = true
	case m.Value == "":
		c.used["mixed"] = true
	default:
		c.value(m.Value)
	}
	m.Ink = c.inks.Of(m.Value)
}

// legend explains the signs in the picture.
func (c *canvas) legend() (out legend) {
	for _, what := range slices.Sorted(maps.Keys(c.used)) {
		if v, ok := strings.CutPrefix(what, "value:"); ok {
			out = append(out, valueEntry(c.inks, v))
		}
	}
	out.add(c.used["mixed"], "several values", lineSign(false, false))
	out.add(c.used["lie"], "a lie that the trace shows", lineSign(true, false))
	out.add(c.used["missing"], "did not arrive", func(s *sketch, x, y int) {
		s.line("missing-sign", x, y, x+26, y)
		s.cross(x+13, y)
	})
	out.add(c.used["late"], "late: it counts as missing", func(s *sketch, x, y int) {
		s.stopped("line-sign", "late", x, y, x+24, y)
	})
	out.add(c.used["omitted"], "omitted by its faulty receiver", func(s *sketch, x, y int) {
		s.omitted("line-sign", x, y, x+22, y)
	})
	out.add(c.used["fat"], "messages of one sender, with their number", func(s *sketch, x, y int) {
		s.path("tip", "M%d,%d h18 v-3 l8,7 l-8,7 v-3 h-18 Z", x, y-4)
	})
	out.add(c.used["short"], "some did not arrive in time", func(s *sketch, x, y int) { s.missing(x, y, x+22, y) })
	out.add(c.used["own"], "keeps its own copy", func(s *sketch, x, y int) {
		s.circle("own-sign", x+13, y)
		s.circle("sender-sign", x+13, y)
	})
	out.addFaulty(c.used["faulty"])
	return out
}

// valueEntry returns the legend entry of one value.
func valueEntry(inks scene.Palette, v string) legendEntry {
	room := max(26, pillWidth(v))
	by := func(s *sketch, x, y int) { s.pill(x+room/2, y, v, inks.Of(v), pillMost) }
	return legendEntry{by, "value " + prose.Cut(v, 24), room}
}
