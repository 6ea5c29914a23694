package draw

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/trace"
)

// SpaceTimeOptions say how a space-time diagram looks.
type SpaceTimeOptions struct {
	Style
	// Most is how many lines are drawn before the rest is counted; 200 if 0.
	Most int
	// Beats draws signs of life too. Otherwise they are counted, unless there is
	// nothing else to draw.
	Beats bool
}

// SpaceTime draws a run as text: a lane for each process, time going down. A
// message is a line at the time of its arrival, from the lane of its sender to that
// of its receiver; what it says stands at the right with the time of its sending.
func SpaceTime(p parley.Protocol, events []trace.Event, o SpaceTimeOptions) string {
	d := lanes{p: p, o: o, down: make([]bool, p.N), sent: make(map[uint64]parley.Tick)}
	d.lane = 5
	for id := range parley.ID(p.N) {
		d.lane = max(d.lane, columns(o.marked(id))+2)
	}
	most := o.Most
	if most <= 0 {
		most = 200
	}
	d.beats = beatsOf(p.N, events)
	if o.Beats || !d.beats.amid(events) {
		d.beats = beats{}
	}
	for _, e := range events {
		if d.beats.has(e) {
			d.left(e)
			continue
		}
		before := len(d.lines)
		if !d.event(e) {
			continue
		}
		if d.drawn++; d.drawn > most {
			d.lines = d.lines[:before]
		}
	}
	return d.text(most)
}

// lanes is a diagram in the making.
type lanes struct {
	p     parley.Protocol
	o     SpaceTimeOptions
	lane  int // columns of a lane
	down  []bool
	sent  map[uint64]parley.Tick
	lines []string
	drawn int // events worth a line, drawn or not
	wide  int // columns of the time
	beats beats
	alive uint64 // signs of life that are not drawn
	sign  string // what the first of them says
}

// left counts a sign of life.
func (d *lanes) left(e trace.Event) {
	if e.Op != trace.Receive && e.Op != trace.Lose {
		return
	}
	if d.alive++; d.sign == "" {
		d.sign = d.rows(parley.Env{From: e.Peer, To: e.At, Path: e.Path, Epoch: e.Epoch}, e.Msg)
	}
}

// event draws one event, if it is worth a line.
func (d *lanes) event(e trace.Event) bool {
	var mark, says string
	switch e.Op {
	case trace.Send:
		d.sent[e.ID] = e.Time
		return false
	case trace.Receive, trace.Lose:
		return d.arrow(e)
	case trace.Request:
		mark, says = "○", asked(d.o.Style, d.p, e.Path, e.Msg)
	case trace.Deliver:
		mark, says = "◆", Delivered(d.o.Style, d.p, e.Peer, e.Path, e.Msg)
	case trace.Indicate:
		mark, says = "◇", Indicated(d.o.Style, d.p, e.Path, e.Msg)
	case trace.Crash:
		mark, says, d.down[e.At] = cross, "crashes", true
	case trace.Restart:
		mark, says, d.down[e.At] = "●", "comes back", false
		if e.Msg.Value == 1 {
			says += " without its disk"
		}
	case trace.Suspect:
		mark, says = "!", "is told that "+d.o.name(e.Msg.Origin)+" has failed"
	case trace.Pause:
		mark, says = "=", "stands still"
	case trace.Resume:
		mark, says = "=", "goes on"
	default:
		return false
	}
	d.row(e.Time, func(id parley.ID) string {
		if id == e.At {
			return mark
		}
		return ""
	}, d.o.name(e.At)+" "+says)
	return true
}

// arrow draws a message that came, or that was lost on its way.
func (d *lanes) arrow(e trace.Event) bool {
	if int(e.Peer) >= d.p.N || int(e.At) >= d.p.N {
		return false
	}
	from, to := int(e.Peer), int(e.At)
	env := parley.Env{From: e.Peer, To: e.At, Path: e.Path, Epoch: e.Epoch}
	says := d.rows(env, e.Msg)
	end := "▶"
	if to < from {
		end = "◀"
	}
	if e.Op == trace.Lose {
		end, says = cross, says+", lost"
	}
	if at, known := d.sent[e.Cause]; known {
		says += fmt.Sprintf("  (sent at %s)", Number(uint64(max(at, 0))))
	}
	var b strings.Builder
	low, high := min(from, to), max(from, to)
	for i := range d.p.N {
		left, middle, right := " ", "│", " "
		if d.down[i] {
			middle = " "
		}
		if i > low && i <= high {
			left = "─"
		}
		if i >= low && i < high {
			right = "─"
		}
		switch {
		case i == to && i > from:
			left, middle = "─", end
		case i == to:
			middle = end
		case i == from:
			middle = "●"
		case i > low && i < high:
			middle = "─"
			if !d.down[i] {
				middle = "┼"
			}
		}
		d.cell(&b, left, middle, right)
	}
	d.line(e.Time, b.String(), says)
	return true
}

// cell draws one lane: its centre and what goes through at both sides.
func (d *lanes) cell(b *strings.Builder, left, middle, right string) {
	half := (d.lane - 1) / 2
	b.WriteString(strings.Repeat(left, half) + middle + strings.Repeat(right, d.lane-1-half))
}

func (d *lanes) row(t parley.Tick, mark func(parley.ID) string, says string) {
	var b strings.Builder
	for i := range d.p.N {
		middle := mark(parley.ID(i))
		switch {
		case middle != "":
		case d.down[i]:
			middle = " "
		default:
			middle = "│"
		}
		d.cell(&b, " ", middle, " ")
	}
	d.line(t, b.String(), says)
}

func (d *lanes) line(t parley.Tick, cells, says string) {
	time := Number(uint64(max(t, 0)))
	d.wide = max(d.wide, len(time))
	d.lines = append(d.lines, time+"\x00"+cells+" "+says)
}

// rows is what a message says, on one line.
func (d *lanes) rows(e parley.Env, m parley.Msg) string {
	r := reader{p: d.p, g: Gathering{Style: d.o.Style}}
	var parts []string
	for row := range r.rowsOf(e, m) {
		if len(parts) == 3 {
			parts = append(parts, ellipsis)
			break
		}
		parts = append(parts, row)
	}
	if len(parts) == 0 {
		return "(nothing)"
	}
	return strings.Join(parts, " ")
}

// payload is what is carried, where there is a whole line for it.
func (s Style) payload(v []byte) string { return cut(Value(v), max(12, s.width()/3)) }

// asked is what a process is asked from above.
func asked(s Style, p parley.Protocol, path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Propose:
		return "proposes " + s.payload(m.Body)
	case parley.Carried:
		return "broadcasts " + s.payload(m.Body)
	case problem.CarryTo:
		if to, body, err := problem.Decode(m, p.N); err == nil {
			return "broadcasts " + s.payload(body) + " to " + s.list(slices.Collect(to.All()))
		}
	}
	if row := explained(s, p, path, m); row != "" {
		return "is asked: " + row
	}
	if len(m.Body) == 0 {
		return fmt.Sprintf("is asked, kind %#x", uint8(m.Kind))
	}
	return "is asked " + s.payload(m.Body)
}

// explained is what the protocol says of what it is asked or tells, if anything.
func explained(s Style, p parley.Protocol, path parley.Path, m parley.Msg) string {
	if p.Explain != nil {
		for row := range p.Explain(parley.Env{Path: path}, m, s.name) {
			return row
		}
	}
	return ""
}

// text puts the lines together under a head.
func (d *lanes) text(most int) string {
	var b strings.Builder
	b.WriteString(d.o.paint(bold, "Space and time") + "\n")
	head := strings.Repeat(" ", d.wide+1)
	for id := range parley.ID(d.p.N) {
		name := d.o.marked(id)
		half := (d.lane - columns(name)) / 2
		head += strings.Repeat(" ", half) + pad(name, d.lane-half)
	}
	b.WriteString(strings.TrimRight(head, " ") + "\n")
	for _, line := range d.lines {
		time, rest, _ := strings.Cut(line, "\x00")
		full := strings.Repeat(" ", d.wide-len(time)) + time + " " + rest
		b.WriteString(strings.TrimRight(cut(full, d.o.width()), " ") + "\n")
	}
	if d.drawn > most {
		fmt.Fprintf(&b, "and %s more\n", Count(uint64(d.drawn-most), "event", "events"))
	}
	if d.alive > 0 {
		b.WriteString(Fold(fmt.Sprintf("not drawn: %s such as %q",
			Count(d.alive, "sign of life,", "signs of life,"), d.sign), d.o.width()) + "\n")
	}
	legend := "○ asked   ●──▶ message, at its arrival   ◆ delivers   ◇ indicates   " + cross + " crash, or lost"
	b.WriteString(Fold(legend, d.o.width()) + "\n")
	return b.String()
}

// Delivered says what was delivered, and from whom. path is where in the machine.
func Delivered(s Style, p parley.Protocol, from parley.ID, path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Decide:
		return "decides " + s.payload(m.Body)
	case parley.Carried:
		return "delivers " + s.payload(m.Body) + " of " + s.name(from)
	}
	if row := explained(s, p, path, m); row != "" && m.Kind >= parley.Local {
		return row
	}
	return "delivers " + s.payload(m.Body)
}

// Indicated says what a process tells those above it. path is where in the machine.
func Indicated(s Style, p parley.Protocol, path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Suspect:
		return "suspects " + s.name(m.Origin)
	case parley.View:
		text := fmt.Sprintf("installs view %d", m.Seq)
		if members, rest, err := problem.ReadSet(m.Body, p.N); err == nil && len(rest) == 0 {
			text += " of " + s.list(slices.Collect(members.All()))
		}
		return text
	}
	if row := explained(s, p, path, m); row != "" {
		return row
	}
	return fmt.Sprintf("indicates kind %#x", uint8(m.Kind))
}
