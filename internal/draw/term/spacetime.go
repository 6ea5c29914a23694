package term

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/trace"
)

// SpaceTimeOptions configure a space-time diagram in text.
type SpaceTimeOptions struct {
	reading.SpaceTimeOptions
	// Most is the maximum number of lines with events; the rest is counted. 0 means no limit.
	Most int
	// Untimed leaves out the times, which mean nothing in a run whose order alone counts.
	Untimed bool
	// All is the flag that shows everything, and AllBeats the one that draws heartbeats.
	All, AllBeats string
}

// SpaceTime returns a run as text: a lane for each process, time from top to bottom.
//
// In a protocol with rounds, a line has what one process sends in one round, with an arrowhead at each receiver, unless
// rounds begin at any time, perhaps several at once.
// In others, a message leaves its sender's lane in the line of its sending and reaches its receiver's lane in the line
// of its arrival. If so many messages are in flight together that the lines do not fit, a message is a straight line
// at its arrival, with the time of its sending beside it.
func SpaceTime(p parley.Protocol, events []trace.Event, o SpaceTimeOptions) string {
	run := reading.SpaceTime(p, events, o.SpaceTimeOptions)
	d := &diagram{n: p.N, o: o, used: make(map[string]bool)}
	if p.Timing == parley.Synchronous && !p.OnDemand && !p.Serves {
		d.rounds(p, events, run.Moments)
	} else {
		all := slices.Concat(run.Moments, run.Unarrived)
		some := slices.DeleteFunc(slices.Clone(all), func(m reading.Moment) bool {
			return m.Message() && m.Says == reading.Nothing
		})
		d.empty = uint64(len(all) - len(some))
		d.moments(some)
	}
	var b strings.Builder
	put := func(line string) { b.WriteString(strings.TrimRight(line, " ") + "\n") }
	put(paint(o.Style, bold, "Space and time"))
	for _, line := range d.lines() {
		put(line)
	}
	if d.left > 0 {
		text := prose.Ellipsis + " " + prose.Count(uint64(d.left), "more event", "more events")
		if o.All != "" {
			text += ": " + o.All + " shows all"
		}
		put(prose.Fold(text, o.Columns()))
	}
	if d.empty > 0 {
		put("not drawn: " + prose.Count(d.empty, "message", "messages") + " without content")
	}
	if run.Alive > 0 {
		text := fmt.Sprintf("not drawn: %s such as %q",
			prose.Count(run.Alive, "sign of life,", "signs of life,"), run.Sign)
		if o.AllBeats != "" {
			text += ": " + o.AllBeats + " draws them"
		}
		put(prose.Fold(text, o.Columns()))
	}
	for _, line := range d.legend() {
		put(line)
	}
	return b.String()
}

// timeOf returns a time in words, or "" if times are not shown.
func (d *diagram) timeOf(t parley.Tick) string {
	if d.o.Untimed {
		return ""
	}
	return prose.Number(uint64(max(t, 0)))
}

// diagram is a space-time diagram under construction.
type diagram struct {
	n       int
	o       SpaceTimeOptions
	rows    []row
	left    int    // events without a row
	empty   uint64 // messages without content, which have no row
	flights []*flight
	used    map[string]bool

	lanes         []int    // the column of each lane
	tracks        [][2]int // columns for lines in flight, at the left and right of each lane
	margin, width int      // width of the times, and of the lanes
}

// row is one line of a diagram.
type row struct {
	scale string // time or round
	at    []parley.ID
	sign  string // in the lanes of at; empty: none
	red   bool   // the sign and the text are about a fault

	// The text is the message, what it causes, and when it was sent; what does not fit is left out, from the end and
	// then from the beginning.
	says, does, sent string

	bends   []bend // lines that begin or end here
	heads   []head // ends of straight lines from at
	silent  bool   // nothing goes to the heads
	down    bool   // the processes are down from here on
	restart bool   // they are up again
}

// text returns the text of a row for the given width.
func (r *row) text(width int) string {
	text := r.says
	if r.does != "" && text != "" {
		text += "; "
	}
	if text += r.does; prose.Width(text) > width && r.does != "" {
		text = r.does
	}
	if r.sent != "" && prose.Width(text)+2+prose.Width(r.sent) <= width {
		text += "  " + r.sent
	}
	return prose.Cut(text, width)
}

// head is the end of a straight line in the lane of a receiver.
type head struct {
	to   parley.ID
	sign string // empty: the line ends at the lane with an arrowhead
	mark string // in the receiver's lane
}

// most returns the maximum number of rows.
func (d *diagram) most() int {
	if d.o.Most == 0 {
		return math.MaxInt
	}
	return d.o.Most
}

// signs are the marks in the lane of a process for its events.
var signs = map[trace.Op]string{
	trace.Request: "○", trace.Deliver: "◆", trace.Indicate: "◇", trace.Crash: reading.Cross, trace.Restart: "◉",
	trace.Suspect: "!", trace.Pause: "‖", trace.Resume: "‖",
}

// signed returns the row of an event that is not a message.
func (d *diagram) signed(m *reading.Moment) row {
	return row{
		scale: d.timeOf(m.Time), at: []parley.ID{m.At}, sign: signs[m.Op], does: m.Says,
		red: m.Op == trace.Crash, down: m.Op == trace.Crash, restart: m.Op == trace.Restart,
	}
}

// add adds a row, or counts it. What several processes do at the same time is one row.
func (d *diagram) add(r row) {
	if last := len(d.rows) - 1; last >= 0 && !d.o.Untimed && d.rows[last].joins(&r) {
		d.rows[last].at = append(d.rows[last].at, r.at...)
		return
	}
	if len(d.rows) == d.most() {
		d.left++
		return
	}
	d.rows = append(d.rows, r)
}

// joins reports whether two rows say the same of different processes.
func (r *row) joins(next *row) bool {
	return len(r.heads)+len(r.bends)+len(next.heads)+len(next.bends) == 0 && r.scale == next.scale &&
		r.sign == next.sign && r.does == next.does && next.at[0] > r.at[len(r.at)-1]
}

// whole returns the text of a row with the processes that it is about.
func (d *diagram) whole(r row) row {
	if r.silent {
		r.says = d.o.List(r.at) + ": " + r.says
	}
	if r.says == "" && len(r.heads)+len(r.bends) == 0 {
		names := d.o.List(r.at)
		if len(r.at) > 1 {
			names += ": each"
		}
		r.does = names + " " + r.does
	}
	return r
}

// legend explains the signs in the diagram.
func (d *diagram) legend() (lines []string) {
	entries := []struct{ sign, text string }{
		{"○", "request"}, {"●", "sends"}, {"▶", "arrives"}, {lossSign, "does not arrive"}, {"◆", "delivers or decides"},
		{"◇", "indicates"}, {reading.Cross, "crashes"}, {"◉", "restarts"}, {"!", "is notified of a failure"},
		{"‖", "is paused, resumes"},
	}
	for _, e := range entries {
		if !d.used[e.sign] {
			continue
		}
		entry := e.sign + " " + e.text
		if last := len(lines) - 1; last >= 0 && prose.Width(lines[last])+3+prose.Width(entry) <= d.o.Columns() {
			lines[last] += "   " + entry
		} else {
			lines = append(lines, entry)
		}
	}
	return lines
}

// layout sets the columns of the lanes.
func (d *diagram) layout() {
	for i := range d.rows {
		d.margin = max(d.margin, prose.Width(d.rows[i].scale))
	}
	names := 0
	for id := range parley.ID(d.n) {
		names = max(names, prose.Width(d.o.Marked(id)))
	}
	if d.place(max(5, names+2)); d.margin+1+d.width+leastWords > d.o.Columns() {
		d.place(max(4, names+1))
	}
}

// place sets the columns of the lanes, at least pitch columns apart.
func (d *diagram) place(pitch int) {
	if d.tracks == nil {
		d.tracks = make([][2]int, d.n)
	}
	d.lanes = make([]int, d.n)
	x := 0
	for id := range d.n {
		step := d.tracks[id][0] + 2
		if id > 0 {
			step = max(pitch, d.tracks[id-1][1]+2+d.tracks[id][0]+2)
		} else {
			step = max(step, (pitch-1)/2)
		}
		x += step
		d.lanes[id] = x
	}
	d.width = x + max((pitch-1)/2, d.tracks[d.n-1][1]+2) + 1
}

// lines returns the heads of the lanes and the rows.
func (d *diagram) lines() (out []string) {
	d.layout()
	if d.margin+1+d.width+leastWords > d.o.Columns() {
		return append([]string{prose.Cut(fmt.Sprintf("(%d lanes need %d columns: listed)", d.n,
			d.margin+1+d.width+leastWords), d.o.Columns())}, d.words()...)
	}
	heads := ""
	for id := range parley.ID(d.n) {
		name := d.o.Marked(id)
		heads = prose.Pad(heads, d.lanes[id]-(prose.Width(name)-1)/2)
		if d.o.Faulty.Has(id) {
			name = paint(d.o.Style, red, name)
		}
		heads += name
	}
	out = append(out, prose.Cut(strings.Repeat(" ", d.margin+1)+heads, d.o.Columns()))
	var down parley.Set
	var flying []*flight
	left := d.flights // in the order of their beginnings
	for i := range d.rows {
		r := d.whole(d.rows[i])
		for _, id := range r.at {
			if r.restart {
				down.Remove(id)
			}
			if r.down {
				down.Add(id)
			}
		}
		for len(left) > 0 && left[0].begins < i {
			flying, left = append(flying, left[0]), left[1:]
		}
		flying = slices.DeleteFunc(flying, func(f *flight) bool { return f.ends <= i })
		out = append(out, d.line(&r, down, flying))
	}
	return out
}

// leastWords is the room for words beside straight lines. Without it, events are listed instead of drawn.
const leastWords = 10

// words returns the rows in words.
func (d *diagram) words() (out []string) {
	for i := range d.rows {
		r := d.whole(d.rows[i])
		out = append(out, d.listed(&r))
	}
	return out
}

// listed returns a row in words.
func (d *diagram) listed(r *row) string {
	text := r.text(math.MaxInt)
	if len(r.heads) > 0 {
		var to []parley.ID
		for _, h := range r.heads {
			to = append(to, h.to)
		}
		if r.silent {
			text += " to " + d.o.List(to)
		} else {
			text = d.o.List(r.at) + " ▶ " + d.o.List(to) + ": " + text
		}
	}
	scale := strings.Repeat(" ", d.margin-prose.Width(r.scale)) + r.scale
	return prose.Cut(scale+"  "+text, d.o.Columns())
}

// line returns one row as text, with the processes that are down and the flights that pass it.
func (d *diagram) line(r *row, down parley.Set, flying []*flight) string {
	c := make(canvas, d.width)
	for id, x := range d.lanes {
		if !down.Has(parley.ID(id)) {
			c.vertical(x, d.laneInk(parley.ID(id)))
		}
	}
	for _, f := range flying {
		c.vertical(d.trackOf(f), d.inkOf(f.from))
	}
	d.drawHeads(c, r)
	d.drawBends(c, r)
	if r.sign != "" {
		d.used[r.sign] = true
		for _, id := range r.at {
			ink := d.inkOf(id)
			if r.red {
				ink = red
			}
			c.sign(d.lanes[id], r.sign, ink)
		}
	}
	scale := strings.Repeat(" ", d.margin-prose.Width(r.scale)) + r.scale
	room := d.o.Columns() - d.margin - 1 - d.width - 1
	text := r.text(room)
	if r.red {
		text = paint(d.o.Style, red, text)
	}
	return paint(d.o.Style, dim, scale) + " " + c.text(d.o.Style) + " " + text
}

// inkOf returns the color of a process's signs and of the lines of its messages.
func (d *diagram) inkOf(id parley.ID) string {
	if d.o.Faulty.Has(id) {
		return red
	}
	return plain
}

// laneInk returns the color of a process's lane, which stands back behind messages.
func (d *diagram) laneInk(id parley.ID) string {
	if d.o.Faulty.Has(id) {
		return red
	}
	return dim
}

// drawHeads draws the straight lines of a row.
func (d *diagram) drawHeads(c canvas, r *row) {
	if len(r.heads) == 0 {
		return
	}
	ink, from := d.inkOf(r.at[0]), d.lanes[r.at[0]]
	for _, h := range r.heads {
		if r.silent {
			break
		}
		to := d.lanes[h.to]
		step := 1
		if to < from {
			step = -1
		}
		c.horizontal(from, to-step, ink)
	}
	for _, h := range r.heads {
		to, sign := d.lanes[h.to], "▶"
		if to < from {
			sign = "◀"
		}
		d.used[cmp.Or(h.sign, "▶")] = true
		end := to - 1
		if to < from {
			end = to + 1
		}
		if h.sign != "" {
			sign, ink = h.sign, red
		}
		c.sign(end, sign, ink)
		if h.mark != "" {
			d.used[h.mark] = true
			c.sign(to, h.mark, d.inkOf(h.to))
		}
	}
}
