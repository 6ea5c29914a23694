package term

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/trace"
)

// SpaceTime returns a run as text: a lane for each process, time from top to bottom. A message is a line at the time
// of its arrival, from the lane of its sender to that of its receiver. Its text is at the right, with the time of its
// sending.
func SpaceTime(p parley.Protocol, events []trace.Event, o reading.SpaceTimeOptions) string {
	run := reading.SpaceTime(p, events, o)
	d := lanes{n: p.N, o: o, width: 5, down: make([]bool, p.N)}
	for id := range parley.ID(p.N) {
		d.width = max(d.width, prose.Width(o.Marked(id))+2)
	}
	time := 0 // width of the time
	for _, m := range run.Moments {
		time = max(time, len(timeOf(m.Event)))
	}
	most := cmp.Or(o.Most, 200)
	var b strings.Builder
	put := func(line string) { b.WriteString(strings.TrimRight(line, " ") + "\n") }
	put(paint(o.Style, bold, "Space and time"))
	put(strings.Repeat(" ", time+1) + d.heads())
	for _, m := range run.Moments[:min(most, len(run.Moments))] {
		put(prose.Cut(fmt.Sprintf("%*s %s", time, timeOf(m.Event), d.moment(&m)), o.Columns()))
	}
	if left := len(run.Moments) - most; left > 0 {
		put(fmt.Sprintf("and %s more", prose.Count(uint64(left), "event", "events")))
	}
	if run.Alive > 0 {
		put(prose.Fold(fmt.Sprintf("not drawn: %s such as %q",
			prose.Count(run.Alive, "sign of life,", "signs of life,"), run.Sign), o.Columns()))
	}
	legend := "○ asked   ●──▶ message, at its arrival   ◆ delivers   ◇ indicates   " + reading.Cross + " crash, or lost"
	put(prose.Fold(legend, o.Columns()))
	return b.String()
}

func timeOf(e trace.Event) string { return prose.Number(uint64(max(e.Time, 0))) }

// lanes is a diagram under construction.
type lanes struct {
	n     int
	o     reading.SpaceTimeOptions
	width int // width of a lane
	down  []bool
}

func (d *lanes) heads() (out string) {
	for id := range parley.ID(d.n) {
		name := d.o.Marked(id)
		half := (d.width - prose.Width(name)) / 2
		out += strings.Repeat(" ", half) + prose.Pad(name, d.width-half)
	}
	return out
}

// marks are the signs in the lane of a process for its events.
var marks = map[trace.Op]string{
	trace.Request: "○", trace.Deliver: "◆", trace.Indicate: "◇", trace.Crash: reading.Cross, trace.Restart: "●",
	trace.Suspect: "!", trace.Pause: "=", trace.Resume: "=",
}

// moment returns the lanes at a moment, with its description.
func (d *lanes) moment(m *reading.Moment) string {
	if m.Message() {
		return d.arrow(m)
	}
	if m.Op == trace.Crash || m.Op == trace.Restart {
		d.down[m.At] = m.Op == trace.Crash
	}
	line := ""
	for id := range parley.ID(d.n) {
		middle := d.rest(int(id), "│")
		if id == m.At {
			middle = marks[m.Op]
		}
		line += d.cell(" ", middle, " ")
	}
	return line + " " + d.o.Called(m.At) + " " + m.Says
}

// arrow returns the line of a message that arrived or was lost.
func (d *lanes) arrow(m *reading.Moment) string {
	from, to, says, end := int(m.Peer), int(m.At), m.Says, "▶"
	if to < from {
		end = "◀"
	}
	if m.Op == trace.Lose {
		end, says = reading.Cross, says+", lost"
	}
	if m.Sent.ID != 0 {
		says += fmt.Sprintf("  (sent at %s)", timeOf(m.Sent))
	}
	line := ""
	low, high := min(from, to), max(from, to)
	for i := range d.n {
		left, middle, right := " ", d.rest(i, "│"), " "
		if i > low && i <= high {
			left = "─"
		}
		if i >= low && i < high {
			right = "─"
		}
		switch {
		case i == to:
			middle = end
		case i == from:
			middle = "●"
		case i > low && i < high:
			middle = d.rest(i, "┼")
			if d.down[i] {
				middle = "─"
			}
		}
		line += d.cell(left, middle, right)
	}
	return line + " " + says
}

// rest returns the lane of a process without an event: blank while it is down.
func (d *lanes) rest(i int, up string) string {
	if d.down[i] {
		return " "
	}
	return up
}

// cell returns one lane: its center, and the lines that pass on both sides.
func (d *lanes) cell(left, middle, right string) string {
	half := (d.width - 1) / 2
	return strings.Repeat(left, half) + middle + strings.Repeat(right, d.width-1-half)
}
