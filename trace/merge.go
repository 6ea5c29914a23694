package trace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"parley"
)

// Merging says how traces of one machine at several nodes become one.
type Merging struct {
	// Liars are nodes whose own traces are no evidence. What they sent is taken from what
	// the others received of them. To those given here come those that say so themselves.
	Liars parley.Set
	// Grace is how long before the end of a receiver's trace something must have been sent
	// for it to count as lost if it did not come; by default a second.
	Grace time.Duration
}

// MergedTrace is what [Merge] makes.
type MergedTrace struct {
	Header Header // with Node.Self = Merged
	Log    *Log
	Liars  parley.Set
	// Absent are nodes of which there is no trace, and which are no liars.
	Absent parley.Set
	// Crashed are nodes of which a trace ended without its last line, Restarted those that
	// have more than one trace, and Recorded tells that there is what recorders kept alone.
	Crashed, Restarted parley.Set
	Recorded           bool
	// Dropped is how many events correct nodes did not write down, by node.
	Dropped map[parley.ID]uint64
	// Ends is when the trace of each node ends.
	Ends map[parley.ID]parley.Tick
	// Lost is how many messages between nodes that were up did not arrive; Reordered tells
	// that some came out of the order in which they were sent, and Doubled that some came
	// twice, which only numbered traces show.
	Lost               uint64
	Reordered, Doubled bool
	// Unsent are receipts, from nodes that do not lie and of which everything is there, of
	// what these have not sent: their numbers in the log.
	Unsent []uint64
}

// Complete tells why not all is known that happened at correct nodes; nil: all is. What a
// node that crashed did last may be missing without anybody knowing.
func (w *MergedTrace) Complete() error {
	name := func(id parley.ID) string { return w.Header.Name(id) }
	var why []error
	for id := range w.Absent.All() {
		why = append(why, fmt.Errorf("there is no trace of %s", name(id)))
	}
	for id := range parley.ID(w.Header.N) {
		if w.Dropped[id] > 0 {
			why = append(why, fmt.Errorf("%s dropped %d events", name(id), w.Dropped[id]))
		}
	}
	for id := range w.Crashed.All() {
		why = append(why, fmt.Errorf("a trace of %s ended without a footer", name(id)))
	}
	if w.Recorded {
		why = append(why, errors.New("a recorder kept the last events only"))
	}
	return errors.Join(why...)
}

// Name is what the node of a process is called, or its number.
func (h *Header) Name(id parley.ID) string {
	if h.Node != nil && int(id) < len(h.Node.Members) {
		return h.Node.Members[id]
	}
	return id.String()
}

// Merge makes one log of the traces of one machine at all nodes. Each receipt has the
// sending for its cause: on a link messages arrive in the order in which they were sent,
// and what is missing between two that arrived was lost; numbered traces say themselves what
// a receipt is of, and what was lost. Events are in an order in which
// every cause comes before what it brought about, and otherwise by the nodes' clocks.
// Times are from the earliest beginning of a trace on; a clock that is behind is moved as
// far as that order demands.
func Merge(traces []Trace, how Merging) (*MergedTrace, error) {
	if how.Grace == 0 {
		how.Grace = time.Second
	}
	g, err := gather(traces, how)
	if err != nil {
		return nil, err
	}
	g.pair()
	g.merge()
	g.sum()
	return g.w, nil
}

// merging is a merge under way.
type merging struct {
	how   Merging
	w     *MergedTrace
	start int64                   // Unix time of tick 0
	nodes []*lives                // by process; nil: nothing is known, or nothing to be believed
	lost  map[sending][]parley.ID // at whom what was sent did not arrive, though they were up
}

// sending is something that a node sent: see [Sending].
type sending struct {
	from   parley.ID
	number uint64
}

// lives are the traces of one node, one after another.
type lives struct {
	items    []item
	next     int
	begins   []parley.Tick // when each life begins
	end      parley.Tick
	intact   bool   // no events are missing
	gaps     bool   // some are, in the middle
	broken   bool   // some may be, at the end of a life
	numbered bool   // receipts say what they are of
	killed   []bool // by life: it ended by a crash
}

// item is an event of a node.
type item struct {
	Event
	life   int
	stated uint64 // the [Sending] that it is, or of a receipt in a numbered trace, that it is of
	cause  *item  // of a receipt
	id     uint64
}

// gather sorts out which trace is whose.
func gather(traces []Trace, how Merging) (*merging, error) {
	if len(traces) == 0 {
		return nil, errors.New("trace: nothing to merge")
	}
	first := traces[0].Header
	g := &merging{how: how, lost: make(map[sending][]parley.ID), w: &MergedTrace{
		Liars: how.Liars, Dropped: make(map[parley.ID]uint64), Ends: make(map[parley.ID]parley.Tick),
	}}
	order := slices.Clone(traces)
	for _, t := range order {
		if err := alike(&first, &t.Header); err != nil {
			return nil, fmt.Errorf("%s and %s: %w", traces[0].Name, t.Name, err)
		}
		node := t.Header.Node
		if node.Lies != "" {
			g.w.Liars.Add(parley.ID(node.Self))
		}
		if g.start == 0 || node.Began < g.start {
			g.start = node.Began
		}
	}
	slices.SortStableFunc(order, func(a, b Trace) int {
		x, y := a.Header.Node, b.Header.Node
		return cmp.Or(cmp.Compare(x.Self, y.Self), cmp.Compare(x.Life, y.Life))
	})
	g.nodes = make([]*lives, first.N)
	for i, t := range order {
		id := parley.ID(t.Header.Node.Self)
		if i > 0 && order[i-1].Header.Node.Self == int(id) && order[i-1].Header.Node.Life == t.Header.Node.Life {
			return nil, fmt.Errorf("%s and %s are of the same life of %s", order[i-1].Name, t.Name, first.Name(id))
		}
		if !g.w.Liars.Has(id) {
			g.live(id, t)
		}
	}
	h, node := first, *first.Node
	node.Self, node.Life, node.Began, node.Lies, node.Recorded = Merged, 0, g.start, "", false
	node.Numbered = false
	h.Node, h.Faulty = &node, nil
	for id := range g.w.Liars.All() {
		h.Faulty = append(h.Faulty, int(id))
	}
	g.w.Header = h
	for id := range parley.ID(first.N) {
		if g.nodes[id] == nil && !g.w.Liars.Has(id) {
			g.w.Absent.Add(id)
		}
	}
	return g, nil
}

// alike tells why two traces are not of one machine.
func alike(a, b *Header) error {
	switch {
	case a.Node == nil || b.Node == nil:
		return errors.New("not the trace of a node")
	case b.Node.Self < 0 || b.Node.Self >= b.N:
		return fmt.Errorf("a trace of node %d among %d", b.Node.Self, b.N)
	case a.Node.Machine != b.Node.Machine || a.Node.Channel != b.Node.Channel || a.Node.Cluster != b.Node.Cluster:
		return fmt.Errorf("traces of %s of cluster %q and of %s of cluster %q",
			a.Node.Machine, a.Node.Cluster, b.Node.Machine, b.Node.Cluster)
	case a.Protocol != b.Protocol || a.N != b.N || a.M != b.M || !slices.Equal(a.Args, b.Args) ||
		!slices.Equal(a.Node.Members, b.Node.Members):
		return errors.New("traces of different configurations")
	}
	return nil
}

// live adds a life of a node that is believed.
func (g *merging) live(id parley.ID, t Trace) {
	l := g.nodes[id]
	if l == nil {
		l = &lives{intact: true}
		g.nodes[id] = l
	} else {
		g.w.Restarted.Add(id)
		g.crash(id, l)
	}
	shift := parley.Tick(t.Header.Node.Began - g.start)
	begin := shift
	if len(t.Log.Events) > 0 {
		begin = t.Log.Events[0].Time + shift
	}
	l.begins = append(l.begins, begin)
	l.end = max(l.end, begin)
	l.add(id, t, shift, g.lost)
	l.end = max(l.end, t.Log.Until+shift)
	if dropped := t.Log.Dropped(); dropped > 0 {
		g.w.Dropped[id] += dropped
		l.intact, l.gaps = false, true
	}
	last := len(t.Log.Events) - 1
	l.killed = append(l.killed, t.Log.Broken || last >= 0 && t.Log.Events[last].Op == Crash)
	if t.Log.Broken {
		l.intact, l.broken = false, true
	}
	if t.Header.Node.Recorded {
		g.w.Recorded, l.intact, l.gaps = true, false, true
	}
}

// add adds the events of a life. What a numbered trace says was lost goes to what was sent.
func (l *lives) add(id parley.ID, t Trace, shift parley.Tick, lost map[sending][]parley.ID) {
	numbered, nth := t.Header.Node.Numbered, uint64(0)
	l.numbered = l.numbered || numbered
	for _, e := range t.Log.Events {
		one := item{Event: e, life: len(l.begins)}
		switch {
		case e.Op == Send:
			nth++
			one.stated = Sending(t.Header.Node.Life, nth)
		case numbered && e.Op == Receive:
			one.stated = e.Cause
		case numbered && e.Op == Lose:
			at := sending{id, Sending(t.Header.Node.Life, nth)}
			lost[at] = append(lost[at], e.Peer)
			continue
		}
		one.Time, one.At, one.Cause = e.Time+shift, id, 0
		l.end = max(l.end, one.Time)
		l.items = append(l.items, one)
	}
}

// crash ends a life.
func (g *merging) crash(id parley.ID, l *lives) {
	if n := len(l.items); n > 0 && l.items[n-1].Op == Crash {
		return // whoever killed it has said so
	}
	l.items = append(l.items, item{Event: Event{Op: Crash, At: id, Time: l.end}, life: len(l.begins)})
}

// pair finds the sending of every receipt.
func (g *merging) pair() {
	for to, l := range g.nodes {
		if l == nil {
			continue
		}
		byPeer := make([][]*item, len(g.nodes))
		for i := range l.items {
			if e := &l.items[i]; e.Op == Receive && int(e.Peer) < len(g.nodes) {
				byPeer[e.Peer] = append(byPeer[e.Peer], e)
			}
		}
		for from := range g.nodes {
			if g.nodes[from] != nil && from != to {
				g.link(parley.ID(from), parley.ID(to), byPeer[from])
			}
		}
	}
}

var seed = maphash.MakeSeed()

// content is a hash of what a message says, as far as what may be cut off its end.
func content(e *Event) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var head [40]byte
	b := parley.AppendMsg(head[:0], e.Path, parley.Msg{
		Kind: e.Msg.Kind, Origin: e.Msg.Origin, Seq: e.Msg.Seq, Value: e.Msg.Value,
	})
	_, _ = h.Write(b)
	_ = h.WriteByte(byte(e.Epoch))
	_ = h.WriteByte(byte(len(e.Msg.Body) + int(e.Cut)))
	_, _ = h.Write(e.Msg.Body[:min(len(e.Msg.Body), 64)])
	return h.Sum64()
}

// same tells whether a receipt is of what was sent, as far as both are there.
func same(sent, got *Event) bool {
	a, b := &sent.Msg, &got.Msg
	k := min(len(a.Body), len(b.Body))
	return sent.Path == got.Path && sent.Epoch == got.Epoch && a.Kind == b.Kind && a.Origin == b.Origin &&
		a.Seq == b.Seq && a.Value == b.Value &&
		len(a.Body)+int(sent.Cut) == len(b.Body)+int(got.Cut) && bytes.Equal(a.Body[:k], b.Body[:k])
}

// link pairs what one node received of another with what that one sent, in order.
func (g *merging) link(from, to parley.ID, got []*item) {
	var sent []*item
	index := make(map[uint64][]int) // places in sent, by content, of what is not paired
	for i := range g.nodes[from].items {
		if e := &g.nodes[from].items[i]; e.Op == Send && (e.Peer == to || e.Peer == parley.All) {
			key := content(&e.Event)
			index[key] = append(index[key], len(sent))
			sent = append(sent, e)
		}
	}
	pairs := make([]*item, len(sent))
	named := make(map[uint64]int) // places in sent, of what numbered receipts name
	if len(got) > 0 && got[0].stated > 0 {
		for i, s := range sent {
			named[s.stated] = i
		}
	}
	next := 0
	for _, r := range got {
		if i, ok := named[r.stated]; ok && same(&sent[i].Event, &r.Event) {
			g.w.Doubled = g.w.Doubled || pairs[i] != nil
			g.w.Reordered = g.w.Reordered || i+1 < next
			next = max(next, i+1)
			r.cause, pairs[i] = sent[i], cmp.Or(pairs[i], r)
			continue
		} else if r.stated > 0 {
			continue
		}
		key := content(&r.Event)
		places := index[key]
		k, _ := slices.BinarySearch(places, next)
		at := slices.IndexFunc(places[k:], func(i int) bool { return same(&sent[i].Event, &r.Event) }) + k
		if at < k { // not behind the last one: it may have been overtaken
			if at = slices.IndexFunc(places[:k], func(i int) bool { return same(&sent[i].Event, &r.Event) }); at < 0 {
				continue
			}
			g.w.Reordered = true
		}
		i := places[at]
		if at == 0 {
			index[key] = places[1:]
		} else {
			index[key] = slices.Delete(places, at, at+1)
		}
		next = max(next, i+1)
		r.cause, pairs[i] = sent[i], r
	}
	g.missing(sent, pairs, from, to)
}

// missing looks at what was sent and did not arrive. Between two messages that arrived in
// the same life of the receiver it was lost; so it was if the receiver had begun before
// it was sent, and did not end soon after. What a process sent last before it crashed dies
// with it: no link lost that. Nor is anything lost by a link that was sent last to a process
// which crashed, where its sender would have said so: the process never came to read it.
func (g *merging) missing(sent, pairs []*item, from, to parley.ID) {
	l := g.nodes[to]
	if l.gaps {
		return // it may have come
	}
	life := 0 // of the receiver, when the last message arrived
	for i := 0; i < len(sent); {
		if pairs[i] != nil {
			life = pairs[i].life
			i++
			continue
		}
		end := i
		for end < len(sent) && pairs[end] == nil {
			end++
		}
		for _, s := range sent[i:end] {
			if g.nodes[from].killed[s.life-1] && (end == len(sent) || sent[end].life != s.life) {
				continue
			}
			at := sending{from, s.stated}
			if slices.Contains(g.lost[at], to) || l.numbered && s.Time+parley.Tick(g.how.Grace) >= l.end {
				continue // its sender says so; or it may be on its way
			}
			if end < len(sent) {
				if pairs[end].life == max(life, 1) && s.Time > l.begins[0] {
					g.lost[at] = append(g.lost[at], to)
				}
				continue
			}
			if last := len(l.begins); life != 0 && life < last || l.numbered && l.killed[last-1] {
				continue
			} else if s.Time > l.begins[last-1] && s.Time+parley.Tick(g.how.Grace) < l.end {
				g.lost[at] = append(g.lost[at], to)
			}
		}
		i = end
	}
}

// merge puts the events of all nodes into one order.
func (g *merging) merge() {
	g.w.Log = &Log{Keep: true}
	last := parley.Tick(0)
	for {
		var best, blocked *lives
		for _, l := range g.nodes {
			if l == nil || l.next == len(l.items) {
				continue
			}
			head := &l.items[l.next]
			if head.cause != nil && head.cause.id == 0 {
				if blocked == nil || head.Time < blocked.items[blocked.next].Time {
					blocked = l
				}
				continue
			}
			if best == nil || head.Time < best.items[best.next].Time {
				best = l
			}
		}
		if best == nil {
			if best = blocked; best == nil {
				return
			}
			head := &best.items[best.next] // it would come before its cause: that is none
			head.cause = nil
		}
		e := &best.items[best.next]
		best.next++
		last = max(last, e.Time)
		g.put(e, last)
	}
}

// put adds an event to the log, and what it shows of others.
func (g *merging) put(e *item, now parley.Tick) {
	event := e.Event
	event.Time = now
	switch {
	case event.Op != Receive:
	case e.cause != nil:
		event.Cause = e.cause.id
	case int(event.Peer) >= len(g.nodes) || event.Peer == event.At:
	case g.nodes[event.Peer] == nil: // a liar, or nobody knows
		sent := event
		sent.Op, sent.At, sent.Peer = Send, event.Peer, event.At
		event.Cause = g.w.Log.Add(sent)
	}
	e.id = g.w.Log.Add(event)
	if event.Op == Receive && event.Cause == 0 && (int(event.Peer) >= len(g.nodes) || g.nodes[event.Peer].intact) {
		g.w.Unsent = append(g.w.Unsent, e.id)
	}
	if event.Op != Send {
		return
	}
	for _, to := range g.lost[sending{event.At, e.stated}] {
		lost := event
		lost.Op, lost.At, lost.Peer, lost.Cause = Lose, to, event.At, e.id
		g.w.Log.Add(lost)
		g.w.Lost++
	}
}

// sum says how it ended.
func (g *merging) sum() {
	facts := &g.w.Header.Facts
	*facts = Facts{Over: true}
	for id, l := range g.nodes {
		if l == nil {
			continue
		}
		g.w.Ends[parley.ID(id)] = l.end
		if l.broken {
			g.w.Crashed.Add(parley.ID(id))
		}
	}
	facts.Network.Lost = g.w.Lost > 0
	facts.Network.Reordered, facts.Network.Doubled = g.w.Reordered, g.w.Doubled
	facts.Processes.Restarted = g.w.Restarted != (parley.Set{})
}
