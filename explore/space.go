package explore

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley"
	"parley/explore/internal/timer"
	"parley/faulty"
)

// space holds the numbered parts of a search's states, and the faults that the model allows.
type space struct {
	p               parley.Protocol
	o               Options
	timed           bool // messages arrive in time
	onlyMessages    bool // nothing happens except deliveries and timers that are due
	requestsAnytime bool // otherwise all requests come first
	// reliable means that no message is lost or duplicated, and no process crashes.
	reliable bool
	// relative means that the time is always 0: when time passes, every due time moves nearer. Rounds are
	// counted from the beginning, and need no relative time to be finite.
	relative bool
	delay    parley.Tick // within which messages arrive
	// prompt means that a machine has set, on a message, a timer that is due at once, where messages arrive
	// in time.
	prompt atomic.Bool
	limits [budgets]uint8
	roots  []*root

	processStates table[processState]
	messages      table[message]
	queues        table[queue]
	observations  table[observations]
	histories     table[history]
	threads       table[processHistory]
}

// root is one way a run may begin, with its processes seated.
type root struct {
	faulty   parley.Set
	how      map[parley.ID]faulty.Behavior
	worst    parley.FaultModel
	seats    []seat
	slot     [most]uint8 // the index of a process's state: the first process of its seat
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

// seat is the place of one machine.
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

// slot returns the index of a process's state among the parts of a state.
func (x *space) slot(s *state, p parley.ID) int { return int(x.roots[s.root].slot[p]) }

// askedOf returns how many requests a process has received.
func (x *space) askedOf(part *processState, p parley.ID) int {
	seat := &x.roots[part.root].seats[part.seat]
	return part.asked >> (4 * seat.place[p]) & 15
}

// may returns whether another fault of a bounded kind is allowed.
func (x *space) may(s *state, budget int) bool { return s.used[budget] < x.limits[budget] }

// mayCrash returns whether another crash is allowed, and process p may be the one.
func (x *space) mayCrash(s *state, p parley.ID) bool {
	only := x.o.Model.CrashOnly
	return x.may(s, crashes) && !x.roots[s.root].faulty.Has(p) && (only == (parley.Set{}) || only.Has(p))
}

// spend subtracts a transition from the budgets. Messages in flight to a process that is down for good are
// dropped.
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

// forgotten returns whether a process is down for good: nothing is in flight to it.
func (x *space) forgotten(s *state, p parley.ID) bool {
	return x.limits[restarts] == 0 && x.limits[crashes] > 0 && x.processStates.at(s.parts[x.slot(s, p)]).down
}

// due returns the transition of the first process that has a timer due at time at.
func (x *space) due(s *state, at parley.Tick) (transition, bool) {
	if s.wake > at {
		return transition{}, false
	}
	for i := range x.roots[s.root].seats {
		seat := &x.roots[s.root].seats[i]
		if part := x.processStates.at(s.parts[seat.ids[0]]); part.nextDue() <= at {
			return transition{what: OnTimeout, at: part.timers[0].Of, in: expire, elem: -1, cost: -1, now: at}, true
		}
	}
	panic("explore: a timer is due and is not found")
}

// rewake computes when the next timer is due.
func (x *space) rewake(s *state) {
	s.wake = timer.Never
	for i := range x.roots[s.root].seats {
		s.wake = min(s.wake, x.processStates.at(s.parts[x.roots[s.root].seats[i].ids[0]]).nextDue())
	}
}

// afterCrash returns a process state after a crash.
func (x *space) afterCrash(c *processState) processState {
	out := processState{root: c.root, seat: c.seat, down: true, asked: c.asked, lives: c.lives}
	if x.limits[restarts] > 0 {
		out.durable, out.log = c.durable, c.log
	}
	return out
}

// arrives returns the latest arrival of a message that is sent on an input. A timer expires at its time; a
// message sent because of another one is sent at the latest arrival of that one. Rounds on demand begin by
// the clock of a process, so their messages are sent at that time. Messages of the coalition, which rushes,
// arrive at once.
func (x *space) arrives(c clauseInput) parley.Tick {
	sent, most := c.now, x.delay
	if c.in.kind() == deliver && !x.p.OnDemand {
		sent = max(sent, x.messages.at(c.in.ref()).due)
	}
	if part := x.processStates.at(c.part); x.roots[part.root].seats[part.seat].rushing {
		most = 1
	}
	return sent + most
}

// observationsID returns the number of a list of events, 0 for none.
func (x *space) observationsID(list []event) uint32 {
	if len(list) == 0 {
		return 0
	}
	var key []byte
	for i := range list {
		part := eventKey(nil, &list[i])
		key = parley.AppendBytes(key, part)
	}
	return x.observations.number(key, func(at *observations) { at.events = list })
}

// messageDelay returns the maximum delay of messages: what the protocol relies on, otherwise the
// simulator's.
func messageDelay(p parley.Protocol) parley.Tick { return cmp.Or(p.Relies.Delay, 900) }

// Rush returns how long liars wait in a round of a synchronous protocol, to receive the others' messages
// first. This time is longer than the message delay, and shorter than the round. A round is at least a tenth
// longer than the delay.
func Rush(p parley.Protocol) parley.Tick {
	delay := messageDelay(p)
	return delay + max(1, delay/18)
}

// verdictKey returns the key of the verdict on a state.
func (x *space) verdictKey(s *state, over bool) verdictKey {
	q := verdictKey{history: s.history, root: uint16(s.root), over: over}
	for i, used := range s.used {
		if used > 0 {
			q.had |= 1 << i
		}
	}
	for p := range parley.ID(x.p.N) {
		if s.used[crashes] > 0 && x.processStates.at(s.parts[x.slot(s, p)]).down {
			q.down |= 1 << p
		}
	}
	return q
}
