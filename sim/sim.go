// Package sim implements the simulator. It runs the machines of a protocol on one thread, in virtual time. A seed
// determines everything that is random, so the same options give the same run, event by event.
//
// This example runs four processes, of which process 2 is faulty:
//
//	s := sim.Run(sim.Options{
//		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("retreat")}, lockstep.Simulated),
//		Faulty:   map[parley.ID]faulty.Behavior{2: faulty.Random},
//		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("attack")}}},
//		Seed:     1,
//	})
//	for _, d := range s.History.Deliveries {
//		fmt.Printf("at tick %d process %d decides %q\n", d.When, d.At, d.Msg.Body)
//	}
package sim

import (
	"fmt"
	"math/rand/v2"

	"parley"
	"parley/trace"
)

// Sim is a run that can be inspected.
type Sim struct {
	Stats   Stats
	History parley.History

	opt Options
	seating
	network
	order     uint64 // number of external events so far
	due       schedule
	wire      messageStore
	choices   *rand.Rand
	chance    *rand.PCG // source of choices
	now       parley.Tick
	armed     int32 // timers set so far
	broadcast bool  // one delay for all: a message to all is one event
	pausing   bool  // some process pauses
	refused   refused

	restarted, diskless, paused parley.Set // processes to which that has happened
	doomed                      parley.Set // processes that will crash for good, or have
}

// refused holds the faulty processes whose messages a step has refused.
type refused struct {
	step uint64
	from parley.Set
}

// New sets up a run. It panics if the protocol or the options are invalid, so check user input before the
// call.
func New(opt Options) *Sim {
	s := new(Sim)
	s.Reset(opt)
	return s
}

// Reset sets up another run in the memory of the last one, whose Stats and History it overwrites.
func (s *Sim) Reset(opt Options) {
	s.opt = checked(opt)
	if s.choices == nil {
		s.chance = rand.NewPCG(0, 0)
		s.choices = rand.New(s.chance)
	}
	s.chance.Seed(opt.Seed, 2)
	s.now, s.armed, s.order, s.refused = 0, 0, 0, refused{}
	s.restarted, s.diskless, s.paused, s.doomed = parley.Set{}, parley.Set{}, parley.Set{}, parley.Set{}
	s.due.reset()
	s.wire.reset()
	s.seating.reset(&s.opt)
	s.network.reset(&s.opt)
	s.broadcast = s.opt.Delay.Least == s.opt.Delay.Most && opt.Loss == 0 && opt.Twice == 0 && opt.Log == nil &&
		!s.ruled && len(opt.Pauses) == 0 && opt.Detect == 0
	reasons := s.Stats.Refused
	if reasons == nil {
		reasons = make(map[string]uint64)
	}
	clear(reasons)
	s.Stats = Stats{Refused: reasons, Sent: s.Stats.Sent[:0]}
	s.History = parley.History{
		N: len(s.procs), Faulty: s.faulty, Requests: s.History.Requests[:0], Deliveries: s.History.Deliveries[:0],
		Indications: s.History.Indications[:0], Restarts: s.History.Restarts[:0],
	}
	s.step = parley.Step{N: len(s.procs), Host: (*host)(s), Effects: s.step.Effects[:0]}
	s.plan()
	if opt.More != nil {
		s.further()
	}
	for _, r := range opt.Requests {
		if r.When > 0 {
			s.due.at(r.When, event{what: asked, to: r.At, ref: s.wire.put(storedMessage{msg: r.Msg, refs: 1})})
		}
	}
}

// Run runs a simulation to its end and returns it.
func Run(opt Options) *Sim {
	s := New(opt)
	s.Run()
	return s
}

// Run starts every process and makes the requests due at time 0. It continues until nothing is due, the time
// Until is reached, or all Steps are used up. In the last case History.Over is false. Call Run only once.
func (s *Sim) Run() {
	between := func() {
		if s.opt.Between != nil && !s.Stats.OutOfSteps {
			s.opt.Between(s)
		}
	}
	for id := range s.procs {
		if s.Stats.spent(s.opt.Steps) {
			return
		}
		s.trace(trace.Event{Op: trace.Start, At: parley.ID(id)})
		s.do(parley.ID(id), 0, func(m parley.Machine) { m.Start(&s.step) })
		between()
	}
	for _, r := range s.opt.Requests {
		if r.When == 0 {
			s.request(r.At, r.Msg)
			between()
		}
	}
	for !s.Stats.OutOfSteps {
		e, ok := s.due.pop()
		if ok {
			s.happen(e)
			between()
			continue
		}
		t, ok := s.due.next()
		if !ok || s.opt.Until > 0 && t > s.opt.Until {
			break
		}
		s.now = t
	}
	if s.Stats.OutOfSteps {
		return
	}
	s.History.Over = true
	for id := range s.doomed.All() { // a process whose crash for good did not happen was correct
		if !s.procs[id].gone {
			s.doomed.Remove(id)
			s.History.Faulty.Remove(id)
		}
	}
}

// happen carries out one event that is due.
func (s *Sim) happen(e event) {
	if s.pausing && s.procs[e.to].waits(e) {
		return
	}
	switch e.what {
	case arrival:
		s.arrive(e)
	case expiry:
		p := &s.procs[e.to]
		i := p.find(e.ref)
		if i < 0 || s.Stats.spent(s.opt.Steps) { // stopped, replaced, or set before a crash
			return
		}
		t := p.timers[i]
		p.timers = append(p.timers[:i], p.timers[i+1:]...)
		s.trace(trace.Event{Op: trace.Timeout, At: e.to, Path: t.path, Msg: parley.Msg{Value: uint64(t.number)}})
		s.do(e.to, t.path, func(m parley.Machine) { m.Timeout(&s.step, t.number) })
	case asked:
		m := s.wire.slots[e.ref].msg
		s.wire.drop(e.ref)
		s.request(e.to, m)
	case back:
		if !s.Stats.spent(s.opt.Steps) {
			s.restart(e.to)
		}
	case detected:
		if s.procs[e.from].down {
			s.suspect(e.to, e.from)
		}
	case hinted:
		s.suspect(e.to, e.from)
	case more:
		s.due.at(s.now, event{what: asked, to: e.to, ref: e.ref})
		s.further()
	case crashing:
		s.crashAt(e.ref)
	case overdue:
		if s.procs[e.to].doom == e.ref+1 {
			s.crash(s.opt.Crashes[e.ref])
		}
	case pausing:
		s.pause(e.to, s.opt.Pauses[e.ref].For)
	case resuming:
		s.resume(e.to)
	}
}

// arrive delivers a message to its receiver, or to all of them.
func (s *Sim) arrive(e event) {
	first, last := e.to, e.to
	if e.to == parley.All {
		first, last = 0, parley.ID(len(s.procs)-1)
	}
	fromFaulty := s.faulty.Has(e.from)
	for id := first; id <= last; id++ {
		if id == e.from && e.to == parley.All {
			continue
		}
		if s.procs[id].down {
			s.Stats.Missed++
			continue
		}
		if s.Stats.spent(s.opt.Steps) {
			return
		}
		w := &s.wire.slots[e.ref]
		s.Stats.Deliveries++
		if fromFaulty && !s.faulty.Has(id) {
			s.Stats.FromFaulty++
		}
		if s.opt.Log != nil {
			s.trace(trace.Event{Op: trace.Receive, At: id, Peer: e.from, Cause: w.id, Epoch: w.epoch,
				Path: w.path, Msg: w.msg})
		}
		p := &s.procs[id]
		s.prepare(id, w.path, s.now)
		s.Stats.Steps++
		s.step.Epoch = w.epoch
		p.seat.Machine.Receive(&s.step, e.from, w.msg)
		s.carry(id)
	}
	s.wire.drop(e.ref)
}

// request makes a request to a process.
func (s *Sim) request(at parley.ID, m parley.Msg) {
	if s.procs[at].down || s.Stats.spent(s.opt.Steps) {
		return
	}
	s.seen(trace.Request, parley.ExternalEvent{At: at, From: at, Msg: m})
	s.trace(trace.Event{Op: trace.Request, At: at, Msg: m})
	s.do(at, 0, func(mc parley.Machine) { mc.Request(&s.step, m) })
}

// further schedules the next request of Options.More.
func (s *Sim) further() {
	r, ok := s.opt.More()
	if !ok {
		return
	}
	if r.When < s.now || int(r.At) >= len(s.procs) {
		panic(fmt.Sprintf("sim: process %d is to be asked at time %d, when it is %d", r.At, r.When, s.now))
	}
	s.due.at(r.When, event{what: more, to: r.At, ref: s.wire.put(storedMessage{msg: r.Msg, refs: 1})})
}

// do runs one clause of a process and carries out its effects.
func (s *Sim) do(id parley.ID, path parley.Path, clause func(parley.Machine)) {
	s.prepare(id, path, s.now)
	s.Stats.Steps++
	clause(s.procs[id].seat.Machine)
	s.carry(id)
}

// seen numbers an external event, and adds it to the history or passes it to Options.Observe.
func (s *Sim) seen(op trace.Op, h parley.ExternalEvent) {
	s.order++
	h.When, h.Order = s.now, s.order
	if s.opt.Observe != nil {
		s.opt.Observe(op, h)
		return
	}
	trace.Record(&s.History, op, h)
}

// trace logs an event, if there is a log, and returns its number.
func (s *Sim) trace(e trace.Event) uint64 {
	if s.opt.Log == nil {
		return 0
	}
	e.Time = s.now
	return s.opt.Log.Add(e)
}

// Correct returns the processes that are not faulty in the history. They are not in the coalition, and the
// options do not plan that they crash for good. After the run, they are the processes that did not crash for
// good.
func (s *Sim) Correct() parley.Set { return parley.Everyone(len(s.procs)).Minus(s.History.Faulty) }

// Now returns the virtual time.
func (s *Sim) Now() parley.Tick { return s.now }

// host serves a step while it runs.
type host Sim

func (h *host) Choose(n int) int { return h.choices.IntN(n) }

func (h *host) Sign(as parley.ID, b []byte) []byte {
	h.Stats.Signs++
	return h.opt.Signer.Sign(as, b)
}

func (h *host) Verify(id parley.ID, b, sig []byte) bool {
	h.Stats.Verifies++
	return h.opt.Signer.Verify(id, b, sig)
}

func (h *host) Refused(at, from parley.ID, why string) {
	byFaulty := h.faulty.Has(at)
	if byFaulty && why != parley.Omitted {
		return
	}
	if h.opt.Log != nil {
		(*Sim)(h).trace(trace.Event{Op: trace.Refuse, At: at, Peer: from, Msg: parley.Msg{Body: []byte(why)}})
	}
	if byFaulty {
		return
	}
	h.Stats.Refused[why]++
	if !h.faulty.Has(from) {
		return
	}
	if h.refused.step != h.Stats.Steps {
		h.refused = refused{step: h.Stats.Steps}
	}
	if h.refused.from.Add(from) {
		h.Stats.RefusedFaulty++
	}
}
