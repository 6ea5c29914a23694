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

// Round is what was sent in one round, or in one phase if there are no rounds.
type Round struct {
	Number int
	Title  string // empty: a title such as Round 2
	// Said is ordered by sender. The sends of one sender are separated by content, in the order of the first receiver
	// of each.
	Said []Said
}

// Said is what one process sends in one round to some receivers, the same to all
// of them.
type Said struct {
	From parley.ID
	To   []parley.ID // in order; includes From if it keeps its own copy
	Rows []string    // the messages as shown, or the first of them
	// Total is the number of rows, shown or not. 0 means that the process was silent where a message was due.
	Total uint64
	// Values are the values in the rows, in order, if they are known.
	Values Shares
	// Spans says when it was in flight to each receiver.
	Spans map[parley.ID]Span
	// Fate is what became of it at the receivers.
	Fate Fate
	// Lie reports whether a faulty process does not send the honest messages, as far as the trace shows them: its own
	// copy, or the initial value that it was given.
	Lie bool
}

// Span is when a message was in flight, as event numbers of the trace. Until is 0 if it did not arrive.
type Span struct{ Since, Until uint64 }

// Fate is what becomes of a message.
type Fate uint8

// The fates of messages.
const (
	Arrives Fate = iota
	Lost         // on its link
	Late         // it arrived after its round, and was refused
	Omitted      // its faulty receiver failed to receive it
)

// String returns the beginning of a phrase that the receivers end.
func (f Fate) String() string {
	switch f {
	case Lost:
		return "lost on the way to"
	case Late:
		return "late at"
	case Omitted:
		return "omitted by"
	}
	return "to"
}

// Share is the number of rows with a value.
type Share struct {
	Value string
	Rows  uint64
}

// Shares are the numbers of rows with each value, ordered by value.
type Shares []Share

// One returns the only value, or "" if there are none or several.
func (s Shares) One() string {
	if len(s) != 1 {
		return ""
	}
	return s[0].Value
}

// Gathering configures Gather.
type Gathering struct {
	// Style has the names and the faulty processes.
	Style
	// Rows is the maximum number of rows kept for each content; 12 if 0.
	Rows int
}

// Gather reads the rounds from the events of a trace: who sent what to whom. Two receivers are sent the same if the
// bytes are equal. Long messages are not expanded for that, and only the kept number of their rows is produced.
func Gather(p parley.Protocol, events []trace.Event, g Gathering) []Round {
	r := reader{p: p, g: g, rounds: make(map[int]*gathered), given: make(map[parley.ID][]byte),
		arrived: make(map[arrival]uint64), fates: make(map[arrival]Fate),
		late: make(map[int]parley.Tick), before: make(map[parley.ID]trace.Event)}
	for _, e := range events {
		r.add(e)
	}
	if len(g.Honest) > 0 {
		r.truth = &reader{p: p, g: g, rounds: make(map[int]*gathered)}
		for _, e := range g.Honest {
			r.truth.add(e)
		}
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

	arrived map[arrival]uint64        // the event of a message's arrival
	fates   map[arrival]Fate          // of messages that do not arrive in time
	before  map[parley.ID]trace.Event // the last receipt of each process
	late    map[int]parley.Tick       // the first time at which a correct process refused a frame of a round as late

	truth *reader // what faulty processes would have sent if they were honest; nil: unknown

	last []byte // the last bytes digested
	sum  string // their digest
}

// arrival is the arrival at one receiver of what an event sent.
type arrival struct {
	cause uint64
	at    parley.ID
}

// gathered has the events of one round by sender.
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
		r.arrived[arrival{e.Cause, e.At}], r.before[e.At] = e.ID, e
		if round, _ := r.roundOf(e); r.g.Faulty.Has(e.At) && r.late[round] > 0 {
			r.fates[arrival{e.Cause, e.At}] = Late // traces have no refusals of faulty processes
		}
	case trace.Lose:
		r.fates[arrival{e.Cause, e.At}] = Lost
	case trace.Refuse:
		before, known := r.before[e.At]
		if fate := fateOf(e); fate != Arrives && known && before.Peer == e.Peer {
			r.fates[arrival{before.Cause, e.At}] = fate
			if round, _ := r.roundOf(before); fate == Late && r.late[round] == 0 {
				r.late[round] = e.Time
			}
		}
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

// fateOf returns what a refusal says about the message that has just arrived.
func fateOf(e trace.Event) Fate {
	switch string(e.Msg.Body) {
	case parley.Omitted:
		return Omitted
	case lockstep.LateFrame, lockstep.AfterLastRound:
		return Late
	}
	return Arrives
}

// RoundOf returns the round of an event that sends something in a protocol with rounds.
func RoundOf(p parley.Protocol, e trace.Event) (number int, is bool) {
	if e.Op != trace.Send && e.Op != trace.Keep {
		return 0, false
	}
	r := reader{p: p}
	number, _ = r.roundOf(e)
	return number, true
}

// roundOf returns the round of a message, and its title. The messages of a synchronous protocol carry their round in
// Seq, as frames do. In others each kind of message is a phase of its own.
func (r *reader) roundOf(e trace.Event) (number int, title string) {
	if r.p.Timing == parley.Synchronous {
		return int(min(e.Msg.Seq, math.MaxInt32)), ""
	}
	return int(e.Msg.Kind), r.kind(e.Msg)
}

// kind returns the name of a message's kind.
func (r *reader) kind(m parley.Msg) string {
	if int(m.Kind) < len(r.p.Kinds) {
		return r.p.Kinds[m.Kind]
	}
	return "kind " + strconv.Itoa(int(m.Kind))
}

// content is what one process sends to all receivers of the same content.
type content struct {
	key    string
	fate   Fate
	events []trace.Event
	to     []parley.ID
	spans  map[parley.ID]Span
}

// contentKey distinguishes contents by their bytes and by what became of them.
type contentKey struct {
	key  string
	fate Fate
}

// span returns when the messages to one receiver in a round are in flight.
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

// contents groups the receivers of a sender by what they are sent. Receivers that are sent nothing have the key "".
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
			mine[to].fate = max(mine[to].fate, r.fates[arrival{e.ID, to}])
			mine[to].events = append(mine[to].events, e)
		}
	}
	var out []content
	places := make(map[contentKey]int)
	for to := range parley.ID(r.p.N) {
		key := contentKey{mine[to].key, mine[to].fate}
		at, known := places[key]
		if !known {
			at = len(out)
			places[key] = at
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

// digest returns a digest of the content of one message. A frame counts as the messages in it, and frames to several
// receivers often share their bytes.
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

// joinCopies joins the sender's own copy with the frames of the same content: a frame is the sequence of its
// messages.
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

// spokenTo returns the processes to which correct processes send anything in a round.
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

// sender returns what one process sends in a round.
func (r *reader) sender(round int, first bool, from parley.ID, spoken parley.Set) []Said {
	var out []Said
	var silent []parley.ID
	// A message, or its absence, means nothing for a receiver to which no correct process sends.
	beside := func(id parley.ID) bool { return id == from || spoken != (parley.Set{}) && !spoken.Has(id) }
	speaks := false
	all := r.contents(round, from)
	honest := r.honest(round, first, from, all)
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

// honest returns a function that judges what a faulty process sends: it must be what the process would have sent if it
// were honest. If that is unknown, each row must be in its own copy, or in the first round have the value that it was
// given. If neither is known, everything passes.
func (r *reader) honest(round int, first bool, from parley.ID, all []content) func(c content, said Said) bool {
	given, known := r.given[from]
	own := slices.IndexFunc(all, func(c content) bool { return c.key != "" && slices.Contains(c.to, from) })
	truth := r.truths(round, from)
	switch {
	case !r.g.Faulty.Has(from):
	case truth != nil:
		return func(c content, _ Said) bool {
			return !slices.ContainsFunc(c.to, func(to parley.ID) bool { return to != from && truth[to] != c.key })
		}
	case own >= 0:
		kept := make(map[string]bool)
		for row := range r.each(from, all[own]) {
			if kept[row] = true; len(kept) > counted {
				break // all or nothing
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
		value := parley.Printable(given)
		if meant, sent, other := r.meant(value); sent {
			value = meant
		} else if other {
			break // values are sent in another form, and that of this one is unknown
		}
		return func(_ content, said Said) bool { return said.Values.One() == value }
	}
	return func(content, Said) bool { return true }
}

// truths returns what a process would send to each receiver in a round if it were honest, or nil if that is unknown.
func (r *reader) truths(round int, from parley.ID) map[parley.ID]string {
	if r.truth == nil || r.truth.rounds[round] == nil || len(r.truth.rounds[round].from[from]) == 0 {
		return nil
	}
	keys := make(map[parley.ID]string)
	for _, c := range r.truth.contents(round, from) {
		for _, to := range c.to {
			keys[to] = c.key
		}
	}
	return keys
}

// meant returns how correct processes send an initial value in the first round, if one of them has it: a vote of yes
// may be sent as 1. other reports that some initial value is sent in another form.
func (r *reader) meant(value string) (form string, sent, other bool) {
	first := slices.Sorted(maps.Keys(r.rounds))[0]
	for from := range parley.ID(r.p.N) {
		given, known := r.given[from]
		if !known || r.g.Faulty.Has(from) {
			continue
		}
		for _, c := range r.contents(first, from) {
			said := r.explain(from, c, 1).Values.One()
			if c.key == "" || said == "" {
				continue
			}
			other = other || said != parley.Printable(given)
			if parley.Printable(given) == value {
				form, sent = said, true
			}
		}
	}
	return form, sent, other
}

// due reports whether a process that sends nothing in a round should have sent something. A faulty one should: in
// round 0 if it is a proposer, and later unless it is the only proposer.
func (r *reader) due(round int, from parley.ID) bool {
	proposes := r.p.Proposers.Has(from)
	return r.g.Faulty.Has(from) && (round == 0 && proposes || round > 0 && (!proposes || r.p.Proposers.Len() > 1))
}
