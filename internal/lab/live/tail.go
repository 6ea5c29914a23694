package live

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cluster"
	draw "parley/internal/draw/live"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/internal/lists"
	"parley/lockstep"
	"parley/membership/group"
	"parley/trace"
)

// scenery is what a picture shows.
type scenery struct {
	names []string        // by node
	tails [][]trace.Trace // by node
	marks [][]mark        // by node
	lanes []draw.Lane     // by node
	cuts  []cut
	began time.Time // of the cluster: time 0
	until time.Time // the end of the picture
}

// picture draws the last seconds.
func (s *scenery) picture(width int) string {
	d := draw.Picture{
		Style: reading.Style{Name: s.name}, Lanes: s.lanes, Until: s.tick(s.until), Width: width,
		Protocol: parley.Protocol{N: len(s.names)},
	}
	for _, c := range s.cuts {
		one := draw.Cut{A: parley.ID(c.a), B: parley.ID(c.b), From: s.tick(c.from)}
		if !c.until.IsZero() {
			one.Until = s.tick(c.until)
		}
		d.Cuts = append(d.Cuts, one)
	}
	log := new(trace.Log)
	if merged := merged(s.tails); merged != nil {
		log = merged.Log
		shift := parley.Tick(merged.Header.Node.Began - s.began.UnixNano())
		for i := range log.Events {
			log.Events[i].Time += shift
		}
		d.Protocol = protocolOf(merged.Header)
	}
	d.Events = s.together(log.Events)
	return string(svg.Page(d.Scene(), "live"))
}

func (s *scenery) name(id parley.ID) string {
	if int(id) < len(s.names) {
		return s.names[id]
	}
	return id.String()
}

// tick returns a time as the picture counts it.
func (s *scenery) tick(t time.Time) parley.Tick { return parley.Tick(t.Sub(s.began)) }

// merged merges the tails of all nodes, without heartbeats: these look all alike, so that nothing tells which was
// received when the sending of some is older than the tail. It returns nil if there is nothing to merge.
func merged(tails [][]trace.Trace) *trace.MergedTrace {
	var all []trace.Trace
	for _, t := range slices.Concat(tails...) {
		log := &trace.Log{Keep: true, Gaps: t.Log.Gaps, Until: t.Log.Until}
		for _, e := range t.Log.Events {
			switch {
			case e.Op == trace.Timeout, e.Op == trace.Keep, e.Op == trace.Append, beat(&t.Header, e):
			default:
				log.Add(e)
			}
		}
		all = append(all, trace.Trace{Name: t.Name, Header: t.Header, Log: log})
	}
	w, err := trace.Merge(all, trace.Merging{})
	if err != nil {
		return nil // nothing, or nodes of different configurations
	}
	return w
}

// beat reports whether an event is a heartbeat that a group with views sends or receives.
func beat(h *trace.Header, e trace.Event) bool {
	return strings.HasPrefix(h.Node.Machine, "group/") && h.Node.Level != "byzantine" &&
		(e.Op == trace.Send || e.Op == trace.Receive) && e.Path == 0 && e.Msg.Kind == group.Beat
}

// protocolOf returns the protocol of a machine, or one without words if it is not known.
func protocolOf(h trace.Header) parley.Protocol {
	if p, ok := cluster.GroupProtocol(h); ok {
		return p
	}
	if p, _, ok := cluster.SlotProtocol(h); ok {
		return p
	}
	if p, ok := cluster.StreamProtocol(h); ok {
		return p
	}
	return parley.Protocol{N: h.N}
}

// together returns the events of the nodes with what happened to their processes, in order and with new numbers.
func (s *scenery) together(events []trace.Event) []trace.Event {
	events = slices.DeleteFunc(slices.Clone(events), s.omitted)
	for id, marks := range s.marks {
		for _, m := range marks {
			events = append(events, trace.Event{At: parley.ID(id), Op: m.op, Time: s.tick(m.at)})
		}
	}
	slices.SortStableFunc(events, func(a, b trace.Event) int { return cmp.Compare(a.Time, b.Time) })
	numbers := make(map[uint64]uint64, len(events)) // from old to new
	for i := range events {
		e := &events[i]
		if e.ID != 0 {
			numbers[e.ID] = uint64(i + 1)
		}
		e.ID, e.Cause = uint64(i+1), numbers[e.Cause]
		switch {
		case e.Msg.Kind == lockstep.Frame: // see cluster.SlotProtocol
			e.Msg.Value = 0
		case e.Msg.Kind == parley.Carried && (e.Op == trace.Request || e.Op == trace.Deliver):
			if texts := cluster.Payloads(e.Msg.Body); len(texts) > 0 {
				e.Msg.Body = bytes.Join(texts, []byte(" "))
			}
		}
	}
	return events
}

// omitted reports whether the picture does not show an event: the marks know better when a process ended and began, and
// the other events concern only the machine and its service.
func (s *scenery) omitted(e trace.Event) bool {
	switch e.Op {
	case trace.Crash, trace.Restart:
		return len(s.marks[e.At]) > 0
	case trace.Request:
		return e.Msg.Kind != parley.Carried && e.Msg.Kind != parley.Propose
	case trace.Indicate:
		return e.Msg.Kind != parley.View && e.Msg.Kind != parley.Suspect
	}
	return false
}

// reach returns the time up to which the events of all nodes that answered are known, or other if none did.
func reach(all []found, other time.Time) time.Time {
	ends := lists.Of(slices.DeleteFunc(slices.Clone(all), func(f found) bool {
		return !f.asked || f.err != nil || f.partly != nil || len(f.tail) == 0
	}), func(f found) time.Time {
		last := f.tail[len(f.tail)-1]
		return time.Unix(0, last.Header.Node.Began+int64(last.Log.Until))
	})
	if len(ends) == 0 {
		return other
	}
	return slices.MinFunc(ends, time.Time.Compare)
}
