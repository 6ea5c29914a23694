package explore

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley"
	"parley/explore/internal/timer"
	"parley/faulty"
)

// space is what the states of a search are made of, each thing under one number, and what a
// model lets happen to them.
type space struct {
	p     parley.Protocol
	o     Options
	timed bool // messages arrive in time
	still bool // nothing happens but for messages and timers that are due
	asks  bool // at any time; else all requests come first
	// reliable tells that no message is lost, and none comes twice, and no process crashes.
	reliable bool
	// relative tells that it is always time 0: when time passes, all that is to come moves
	// nearer. Rounds are counted from the beginning, and need no such thing to end.
	relative bool
	delay    parley.Tick // within which they do
	// prompt tells that a machine has set a timer on a message that is due at once, where
	// messages arrive in time.
	prompt atomic.Bool
	limits [budgets]uint8
	roots  []*root

	components table[processState]
	messages   table[message]
	queues     table[queue]
	outs       table[observations]
	pasts      table[history]
	threads    table[processHistory]
}

// root is how runs begin, with its processes seated.
type root struct {
	faulty   parley.Set
	how      map[parley.ID]faulty.Behavior
	worst    parley.FaultModel
	seats    []seat
	slot     [most]uint8 // where the component of a process is: the first process of its seat
	requests [most][]parley.Msg
}

func newRoot(p parley.Protocol, r Root) *root {
	out := &root{how: r.Faulty}
	out.faulty, out.worst = faulty.Cast(r.Faulty)
	for _, q := range r.Requests {
		out.requests[q.At] = append(out.requests[q.At], q.Msg)
	}
	add := func(s seat) {
		for i, id := range s.ids {
			s.place[id] = uint8(i)
			s.members.Add(id)
			out.slot[id] = uint8(s.ids[0])
		}
		out.seats = append(out.seats, s)
	}
	if len(r.Faulty) > 0 {
		add(seat{ids: slices.Collect(out.faulty.All()), rushing: true, liars: true})
	}
	for id := range parley.ID(p.N) {
		if !out.faulty.Has(id) {
			add(seat{ids: []parley.ID{id}})
		}
	}
	return out
}

// seat is one machine's place.
type seat struct {
	ids     []parley.ID
	members parley.Set
	place   [most]uint8 // of a process among ids
	rushing bool
	liars   bool
}

// fresh returns a new machine for a seat.
func (x *space) fresh(r *root, s *seat) parley.Machine {
	if !s.liars {
		return x.p.New(s.ids[0])
	}
	wait := parley.Tick(0)
	if x.timed {
		wait = Rush(x.p)
	}
	return faulty.New(x.p, wait, r.how)
}

// slot returns where among the parts of a state the component of a process is.
func (x *space) slot(s *state, p parley.ID) int { return int(x.roots[s.root].slot[p]) }

// askedOf is how many requests a process has got.
func (x *space) askedOf(part *processState, p parley.ID) int {
	seat := &x.roots[part.root].seats[part.seat]
	return part.asked >> (4 * seat.place[p]) & 15
}

// may tells whether something that is bounded may still happen.
func (x *space) may(s *state, budget int) bool { return s.used[budget] < x.limits[budget] }

// spend takes a move from the budgets. What is on its way to a process that is down for
// good is forgotten.
func (x *space) spend(s *state, t *transition) {
	if t.cost >= 0 {
		s.used[t.cost]++
	}
	if t.what == OnLostDisk {
		s.used[disks]++
	}
	if t.in&amid != 0 && t.cost != crashes {
		s.used[crashes]++
	}
	if t.cost != crashes && t.in&amid == 0 {
		return
	}
	s.flight = slices.DeleteFunc(s.flight, func(elem uint32) bool {
		if !x.forgotten(s, x.messages.at(x.message(elem)).to) {
			return false
		}
		s.sum -= x.share(elem)
		return true
	})
}

// forgotten tells whether a process is down for good: nothing is on its way to it.
func (x *space) forgotten(s *state, p parley.ID) bool {
	return x.limits[restarts] == 0 && x.limits[crashes] > 0 && x.components.at(s.parts[x.slot(s, p)]).down
}

// due returns the turn of the first process of which a timer is due at a time.
func (x *space) due(s *state, at parley.Tick) (transition, bool) {
	if s.wake > at {
		return transition{}, false
	}
	for i := range x.roots[s.root].seats {
		seat := &x.roots[s.root].seats[i]
		if part := x.components.at(s.parts[seat.ids[0]]); part.wakes() <= at {
			return transition{what: OnTimeout, at: part.timers[0].Of, in: expire, elem: -1, cost: -1, now: at}, true
		}
	}
	panic("explore: a timer is due and is not found")
}

// rewake finds out when the next timer is due.
func (x *space) rewake(s *state) {
	s.wake = timer.Never
	for i := range x.roots[s.root].seats {
		s.wake = min(s.wake, x.components.at(s.parts[x.roots[s.root].seats[i].ids[0]]).wakes())
	}
}

// fallen is a component after a crash.
func (x *space) fallen(c *processState) processState {
	out := processState{root: c.root, seat: c.seat, down: true, asked: c.asked, lives: c.lives}
	if x.limits[restarts] > 0 {
		out.durable, out.log = c.durable, c.log
	}
	return out
}

// arrives returns until when a message has arrived that is sent in a call. A timer runs
// out at its time; what is sent because of a message is sent when that has arrived at
// the latest; but rounds on call begin when the clock of a process shows that they do, so that
// it is sent then. The coalition, which rushes, is heard at once.
func (x *space) arrives(c clauseInput) parley.Tick {
	sent, most := c.now, x.delay
	if c.in.kind() == deliver && !x.p.OnDemand {
		sent = max(sent, x.messages.at(c.in.ref()).due)
	}
	if part := x.components.at(c.part); x.roots[part.root].seats[part.seat].rushing {
		most = 1
	}
	return sent + most
}

// seen returns the number of a list of events.
func (x *space) seen(list []event) uint32 {
	if len(list) == 0 {
		return 0
	}
	var key []byte
	for i := range list {
		part := eventKey(nil, &list[i])
		key = parley.AppendBytes(key, part)
	}
	return x.outs.number(key, func(at *observations) { at.events = list })
}

// within is the time in which messages arrive: what the protocol relies on, or as in the
// simulator.
func within(p parley.Protocol) parley.Tick { return cmp.Or(p.Relies.Delay, 900) }

// Rush is how long liars wait in a round of a synchronous protocol until they have heard the
// others: longer than messages take, and less long than the round, which is a tenth longer or more.
func Rush(p parley.Protocol) parley.Tick {
	delay := within(p)
	return delay + max(1, delay/18)
}

// question is what is to be answered in a state.
func (x *space) question(s *state, over bool) verdictKey {
	q := verdictKey{past: s.past, root: uint16(s.root), over: over}
	for i, used := range s.used {
		if used > 0 {
			q.had |= 1 << i
		}
	}
	for p := range parley.ID(x.p.N) {
		if s.used[crashes] > 0 && x.components.at(s.parts[x.slot(s, p)]).down {
			q.down |= 1 << p
		}
	}
	return q
}
