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

// Merging configures a merge.
type Merging struct {
	// Liars are nodes whose own traces are no evidence. Merge takes the messages that they sent from the
	// receipts of others. It adds the nodes whose traces say that they lie.
	Liars parley.Set
	// Grace is the time at the end of a receiver's trace in which missing messages do not count as lost,
	// because they may still be in flight. 0 means one second.
	Grace time.Duration
}

// MergedTrace is the result of [Merge].
type MergedTrace struct {
	Header Header // with Node.Self = Merged
	Log    *Log
	Liars  parley.Set
	// Absent are nodes without a trace, except liars.
	Absent parley.Set
	// Crashed are nodes with a trace that has no footer. Restarted are nodes with more than one trace.
	// Recorded reports that some trace has only the events that a recorder kept.
	Crashed, Restarted parley.Set
	Recorded           bool
	// Dropped is the number of events that correct nodes did not record, by node.
	Dropped map[parley.ID]uint64
	// Ends is the time at which the trace of each node ends.
	Ends map[parley.ID]parley.Tick
	// Lost is the number of messages that did not arrive although sender and receiver were up. Reordered
	// reports that messages arrived out of order. Doubled reports that messages arrived twice, which only
	// numbered traces show.
	Lost               uint64
	Reordered, Doubled bool
	// Unsent are the numbers, in the log, of the receipts that have no send, although the sender does not lie and its
	// trace is complete.
	Unsent []uint64
}

// Complete returns an error that says which events of correct nodes are missing, or nil if none are missing.
// The last events of a crashed node may be missing without any sign.
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

// Name returns the name of the node that ran a process or, if there is none, the process's number.
func (h *Header) Name(id parley.ID) string {
	if h.Node != nil && int(id) < len(h.Node.Members) {
		return h.Node.Members[id]
	}
	return id.String()
}

// Merge merges the traces of one machine at all nodes into one log. The cause of each receipt is its send. On
// a link messages arrive in the order of sending, so a message that is missing between two others was lost.
// Numbered traces name the send of a receipt, and the lost messages. In the log every cause comes before its
// effect. Otherwise events are ordered by the nodes' clocks. Time 0 is the earliest beginning of a trace. If
// a clock is behind, Merge moves its times forward as far as that order requires. Merge returns an error if
// the traces do not belong together.
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

// merger is a merge in progress.
type merger struct {
	how   Merging
	w     *MergedTrace
	start int64                   // Unix time of tick 0
	nodes []*nodeTrace            // by process; nil: no trace, or a liar
	lost  map[sending][]parley.ID // processes that were up and at which a message did not arrive
}

// sending identifies a message that a node sent (see [Sending]).
type sending struct {
	from   parley.ID
	number uint64
}

// nodeTrace holds the traces of one node, one after another.
type nodeTrace struct {
	items    []nodeEvent
	next     int
	begins   []parley.Tick // when each incarnation begins
	end      parley.Tick
	intact   bool   // no events are missing
	gaps     bool   // some are missing in the middle
	broken   bool   // some may be missing at the end of an incarnation
	numbered bool   // receipts name their send
	killed   []bool // by incarnation: it ended by a crash
}

// nodeEvent is an event of one trace, as merging links it with the events of others.
type nodeEvent struct {
	Event
	life   int
	stated uint64     // number from [Sending]: of a send, or of the send of a receipt in a numbered trace
	cause  *nodeEvent // of a receipt: its send
	id     uint64
}

// gather assigns the traces to nodes.
func gather(traces []Trace, how Merging) (*merger, error) {
	if len(traces) == 0 {
		return nil, errors.New("trace: nothing to merge")
	}
	first := traces[0].Header
	g := &merger{how: how, lost: make(map[sending][]parley.ID), w: &MergedTrace{
		Liars: how.Liars, Dropped: make(map[parley.ID]uint64), Ends: make(map[parley.ID]parley.Tick),
	}}
	order := slices.Clone(traces)
	for _, t := range order {
		if err := alike(&first, &t.Header); err != nil {
			return nil, fmt.Errorf("%s and %s: %w", traces[0].Place(), t.Place(), err)
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
	g.nodes = make([]*nodeTrace, first.N)
	for i, t := range order {
		id := parley.ID(t.Header.Node.Self)
		if i > 0 && order[i-1].Header.Node.Self == int(id) && order[i-1].Header.Node.Life == t.Header.Node.Life {
			return nil, fmt.Errorf("%s and %s are of the same life of %s: name each file once", order[i-1].Place(), t.Place(),
				first.Name(id))
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

// alike returns why two traces are not of one machine, or nil.
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

// live adds an incarnation of a node that does not lie.
func (g *merger) live(id parley.ID, t Trace) {
	l := g.nodes[id]
	if l == nil {
		l = &nodeTrace{intact: true}
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

// add adds the events of an incarnation. A loss in a numbered trace is recorded with its send.
func (l *nodeTrace) add(id parley.ID, t Trace, shift parley.Tick, lost map[sending][]parley.ID) {
	numbered, nth := t.Header.Node.Numbered, uint64(0)
	l.numbered = l.numbered || numbered
	for _, e := range t.Log.Events {
		one := nodeEvent{Event: e, life: len(l.begins)}
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

// crash ends an incarnation.
func (g *merger) crash(id parley.ID, l *nodeTrace) {
	if n := len(l.items); n > 0 && l.items[n-1].Op == Crash {
		return // its killer has recorded the crash
	}
	l.items = append(l.items, nodeEvent{Event: Event{Op: Crash, At: id, Time: l.end}, life: len(l.begins)})
}

// pair finds the send of every receipt.
func (g *merger) pair() {
	for to, l := range g.nodes {
		if l == nil {
			continue
		}
		byPeer := make([][]*nodeEvent, len(g.nodes))
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

// content returns a hash of a message, without what may be cut off its end.
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

// same reports whether a receipt fits a send, as far as both bodies are recorded.
func same(sent, got *Event) bool {
	a, b := &sent.Msg, &got.Msg
	k := min(len(a.Body), len(b.Body))
	return sent.Path == got.Path && sent.Epoch == got.Epoch && a.Kind == b.Kind && a.Origin == b.Origin &&
		a.Seq == b.Seq && a.Value == b.Value &&
		len(a.Body)+int(sent.Cut) == len(b.Body)+int(got.Cut) && bytes.Equal(a.Body[:k], b.Body[:k])
}

// link pairs what one node received from another with what that one sent, in order.
func (g *merger) link(from, to parley.ID, got []*nodeEvent) {
	var sent []*nodeEvent
	index := make(map[uint64][]int) // indices in sent, by content, of sends that are not paired
	for i := range g.nodes[from].items {
		if e := &g.nodes[from].items[i]; e.Op == Send && (e.Peer == to || e.Peer == parley.All) {
			key := content(&e.Event)
			index[key] = append(index[key], len(sent))
			sent = append(sent, e)
		}
	}
	pairs := make([]*nodeEvent, len(sent))
	named := make(map[uint64]int) // indices in sent, by the number in numbered receipts
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
		if at < k { // not after the last one: that may have overtaken it
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

// missing looks for sends without a receipt. A message between two that arrived in the same incarnation of the
// receiver was lost. So was one that was sent after the receiver had begun, if the receiver's trace did not
// end soon after. The last messages of a process that crashed are not lost by a link: they end with the
// process. Neither are the last messages to a process that crashed, if the sender would have recorded their
// loss: the process never read them.
func (g *merger) missing(sent, pairs []*nodeEvent, from, to parley.ID) {
	l := g.nodes[to]
	if l.gaps {
		return // it may have arrived
	}
	life := 0 // incarnation of the receiver at the last arrival
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
				continue // recorded by its sender, or possibly in flight
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
func (g *merger) merge() {
	g.w.Log = &Log{Keep: true}
	last := parley.Tick(0)
	for {
		var best, blocked *nodeTrace
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
			head := &best.items[best.next] // it would come before its cause, so that is not its cause
			head.cause = nil
		}
		e := &best.items[best.next]
		best.next++
		last = max(last, e.Time)
		g.put(e, last)
	}
}

// put adds an event to the log, with what it shows of others: the send of a liar, or losses.
func (g *merger) put(e *nodeEvent, now parley.Tick) {
	event := e.Event
	event.Time = now
	switch {
	case event.Op != Receive:
	case e.cause != nil:
		event.Cause = e.cause.id
	case int(event.Peer) >= len(g.nodes) || event.Peer == event.At:
	case g.nodes[event.Peer] == nil: // a liar, or no trace
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

// sum fills in the facts.
func (g *merger) sum() {
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
