package reading

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"strconv"

	"parley"
	"parley/lockstep"
	"parley/trace"
)

// Round is what was said in one round, or in one phase where there are no rounds.
type Round struct {
	Number int
	Title  string // Round 2, if it is empty
	// Said goes sender by sender, in order. What one sender says is told apart
	// by its content, in the order of the first receiver of each.
	Said []Said
}

// Said is what one process sends in one round to some receivers, the same to all
// of them.
type Said struct {
	From parley.ID
	To   []parley.ID // in order; From is among them if it keeps a copy of its own
	Rows []string    // the messages as a reader sees them, or the first of them
	// Total is how many rows there are, shown or not. With none the process was
	// silent where it should have spoken.
	Total uint64
	// Values are the values that the rows speak of, in order, if they are known.
	Values Shares
	// Spans tell when it was under way to each receiver.
	Spans map[parley.ID]Span
	// Lie tells that a faulty process does not say what it honestly would, as
	// far as the trace shows: its own copy, or the initial value it was given.
	Lie bool
}

// Span is when a message was under way, in events of the trace by number. Until is 0 if it
// did not arrive.
type Span struct{ Since, Until uint64 }

// Share is how many rows speak of a value.
type Share struct {
	Value string
	Rows  uint64
}

// Shares are how many rows speak of each value, in the order of the values.
type Shares []Share

// One is the only value there is, or "".
func (s Shares) One() string {
	if len(s) != 1 {
		return ""
	}
	return s[0].Value
}

// Gathering says how to read messages off a trace.
type Gathering struct {
	// Style gives names and tells which processes are faulty.
	Style
	// Rows is how many rows of one content are kept; 12 if 0.
	Rows int
}

// Gather reads the rounds off the events of a trace: who told whom what. Two
// receivers are told the same if the bytes are the same; a long message is not
// written out for that, and only as many of its rows as are kept.
func Gather(p parley.Protocol, events []trace.Event, g Gathering) []Round {
	r := reader{p: p, g: g, rounds: make(map[int]*gathered), given: make(map[parley.ID][]byte),
		arrived: make(map[arrival]uint64)}
	for _, e := range events {
		r.add(e)
	}
	var out []Round
	for i, number := range slices.Sorted(maps.Keys(r.rounds)) {
		round := Round{Number: number, Title: r.rounds[number].title}
		spoken := r.spokenTo(number)
		for from := range parley.ID(p.N) {
			round.Said = append(round.Said, r.sender(number, i == 0, from, spoken)...)
		}
		if len(round.Said) > 0 {
			out = append(out, round)
		}
	}
	return out
}

// reader sorts events by round and sender.
type reader struct {
	p      parley.Protocol
	g      Gathering
	rounds map[int]*gathered
	given  map[parley.ID][]byte // initial values

	arrived map[arrival]uint64 // the event by which a message came

	last []byte // the bytes that were digested last
	sum  string // and their digest
}

// arrival is the arrival of what was sent in an event at one receiver.
type arrival struct {
	cause uint64
	at    parley.ID
}

// gathered is the events of one round by sender.
type gathered struct {
	title string
	from  [parley.MaxProcesses][]trace.Event
}

func (r *reader) add(e trace.Event) {
	switch e.Op {
	case trace.Request:
		if _, again := r.given[e.At]; e.Msg.Kind == parley.Propose && !again {
			r.given[e.At] = e.Msg.Body
		}
	case trace.Receive:
		r.arrived[arrival{e.Cause, e.At}] = e.ID
	case trace.Send, trace.Keep:
		if e.At >= parley.MaxProcesses {
			return
		}
		number, title := r.roundOf(e)
		if r.rounds[number] == nil {
			r.rounds[number] = &gathered{title: title}
		}
		round := r.rounds[number]
		round.from[e.At] = append(round.from[e.At], e)
	}
}

// roundOf is the round of a message, and its title. The messages of a synchronous protocol
// carry their round in Seq, as frames do; in others each kind of message is a phase of its own.
func (r *reader) roundOf(e trace.Event) (number int, title string) {
	if r.p.Timing == parley.Synchronous {
		return int(min(e.Msg.Seq, math.MaxInt32)), ""
	}
	return int(e.Msg.Kind), r.kind(e.Msg)
}

// kind is the name of a message's kind.
func (r *reader) kind(m parley.Msg) string {
	if int(m.Kind) < len(r.p.Kinds) {
		return r.p.Kinds[m.Kind]
	}
	return "kind " + strconv.Itoa(int(m.Kind))
}

// content is what one process sends to the receivers of one content.
type content struct {
	key    string
	events []trace.Event
	to     []parley.ID
	spans  map[parley.ID]Span
}

// span is when what one receiver is sent in a round is under way.
func (r *reader) span(events []trace.Event, to parley.ID) (s Span) {
	for i, e := range events {
		if i == 0 {
			s.Since = e.ID
		}
		s.Until = max(s.Until, r.arrived[arrival{e.ID, to}])
		if e.Op == trace.Keep {
			s.Until = max(s.Until, e.ID)
		}
	}
	return s
}

// contents groups the receivers of a sender by what they are sent. Those that
// are sent nothing have the key "".
func (r *reader) contents(round int, from parley.ID) []content {
	mine := make([]content, r.p.N) // for each receiver
	for _, e := range r.rounds[round].from[from] {
		digest := r.digest(e)
		for to := range parley.ID(r.p.N) {
			switch {
			case e.Op == trace.Keep && to != from, e.Op == trace.Send && to == from:
				continue
			case e.Op == trace.Send && e.Peer != to && e.Peer != parley.All:
				continue
			}
			mine[to].key += digest
			mine[to].events = append(mine[to].events, e)
		}
	}
	var out []content
	places := make(map[string]int)
	for to := range parley.ID(r.p.N) {
		at, known := places[mine[to].key]
		if !known {
			at = len(out)
			places[mine[to].key] = at
			mine[to].spans = make(map[parley.ID]Span)
			out = append(out, mine[to])
		}
		out[at].spans[to] = r.span(mine[to].events, to)
		out[at].to = append(out[at].to, to)
	}
	return r.joinCopies(out)
}

func (r *reader) framed(e trace.Event) bool {
	return e.Op == trace.Send && r.p.Timing == parley.Synchronous && e.Msg.Kind == lockstep.Frame
}

// digest stands for the content of one message. A frame is what is in it, and
// frames to several receivers often share their bytes.
func (r *reader) digest(e trace.Event) string {
	b := e.Msg.Body
	if !r.framed(e) {
		b = parley.AppendMsg(nil, e.Path, e.Msg)
	}
	if len(b) == 0 || len(b) != len(r.last) || &b[0] != &r.last[0] {
		sum := sha256.Sum256(b)
		r.last, r.sum = b, string(sum[:])
	}
	return r.sum
}

// joinCopies puts the sender's own copy with the frames that hold the same: a
// frame is the messages in it, one after the other.
func (r *reader) joinCopies(all []content) []content {
	own := slices.IndexFunc(all, func(c content) bool { return len(c.events) > 0 && c.events[0].Op == trace.Keep })
	if own < 0 {
		return all
	}
	var kept []byte
	for _, e := range all[own].events {
		kept = parley.AppendMsg(kept, e.Path, e.Msg)
	}
	for i := range all {
		if i == own || len(all[i].events) != 1 {
			continue
		}
		if e := all[i].events[0]; r.framed(e) && bytes.Equal(e.Msg.Body, kept) {
			all[i].to = append(all[i].to, all[own].to...)
			slices.Sort(all[i].to)
			maps.Copy(all[i].spans, all[own].spans)
			return slices.Delete(all, own, own+1)
		}
	}
	return all
}

// spokenTo is whom correct processes say something to in a round.
func (r *reader) spokenTo(round int) parley.Set {
	var out parley.Set
	for from := range parley.ID(r.p.N) {
		if r.g.Faulty.Has(from) {
			continue
		}
		for _, c := range r.contents(round, from) {
			if r.explain(from, c, 0).Total > 0 {
				for _, to := range c.to {
					out.Add(to)
				}
			}
		}
	}
	return out
}

// sender returns what one process says in a round.
func (r *reader) sender(round int, first bool, from parley.ID, spoken parley.Set) []Said {
	var out []Said
	var silent []parley.ID
	// What goes to those whom nobody else speaks to, or does not, says nothing.
	beside := func(id parley.ID) bool { return id == from || spoken != (parley.Set{}) && !spoken.Has(id) }
	speaks := false
	all := r.contents(round, from)
	honest := r.honest(first, from, all)
	for _, c := range all {
		if c.key == "" {
			silent = slices.DeleteFunc(c.to, beside)
			continue
		}
		speaks = speaks || slices.ContainsFunc(c.to, func(id parley.ID) bool { return !beside(id) })
		said := r.explain(from, c, cmp.Or(r.g.Rows, 12))
		if said.Total > 0 {
			said.Lie = !honest(c, said)
			out = append(out, said)
		}
	}
	missed := r.p.Timing == parley.Synchronous && len(silent) > 0
	if missed && (len(out) > 0 || !speaks && r.due(round, from)) {
		out = append(out, Said{From: from, To: silent})
	}
	slices.SortStableFunc(out, func(a, b Said) int { return int(a.To[0]) - int(b.To[0]) })
	return out
}

// honest returns the judge of what a faulty process says: each row must be in
// the copy that it keeps itself, or in the first round speak of the value that
// it was given. Where neither is known everything passes.
func (r *reader) honest(first bool, from parley.ID, all []content) func(c content, said Said) bool {
	given, known := r.given[from]
	own := slices.IndexFunc(all, func(c content) bool { return c.key != "" && slices.Contains(c.to, from) })
	switch {
	case !r.g.Faulty.Has(from):
	case own >= 0:
		kept := make(map[string]bool)
		for row := range r.each(from, all[own]) {
			if kept[row] = true; len(kept) > counted {
				break // all or nothing, then
			}
		}
		return func(c content, said Said) bool {
			if c.key == all[own].key || said.Total > counted || len(kept) > counted {
				return c.key == all[own].key
			}
			for row := range r.each(from, c) {
				if !kept[row] {
					return false
				}
			}
			return true
		}
	case first && known:
		return func(_ content, said Said) bool { return said.Values.One() == parley.Printable(given) }
	}
	return func(content, Said) bool { return true }
}

// due tells whether a process that sends nothing at all in a round should have spoken. A
// faulty one should: in round 0 if it is a proposer, and later unless it is the only one.
func (r *reader) due(round int, from parley.ID) bool {
	proposes := r.p.Proposers.Has(from)
	return r.g.Faulty.Has(from) && (round == 0 && proposes || round > 0 && (!proposes || r.p.Proposers.Len() > 1))
}
