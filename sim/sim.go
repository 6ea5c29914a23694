// Package sim runs the machines of a protocol on one thread, in virtual time,
// from one seed. The same options give the same run, event by event.
package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// Sim is a run that can be looked into.
type Sim struct {
	Stats   Stats
	History parley.History

	opt       Options
	seats     []parley.Seat
	procs     []process
	faulty    parley.Set
	members   []parley.Set // for each process: its seat
	step      parley.Step
	seated    *parley.Seat // whose members the step has
	order     uint64       // happenings so far
	due       schedule
	wire      store
	delays    *rand.Rand
	choices   *rand.Rand
	now       parley.Tick
	armed     int32 // timers set so far
	broadcast bool  // one delay for all: a message to all is one event
	ruled     bool  // links are not all alike
	skewed    bool  // clocks are not all alike
	pausing   bool  // processes pause
	rules     []Link
	late      []event       // what happened in pauses that are over
	last      []parley.Tick // where links keep the order: by link, the latest arrival
	refused   refused

	restarted, diskless, paused parley.Set // to whom that has happened
	doomed                      parley.Set // who is to crash for good, or has

	delaySource, choiceSource *rand.PCG
}

// refused are the faulty processes of which a step has refused something.
type refused struct {
	step uint64
	from parley.Set
}

// process is what the simulator keeps of one process.
type process struct {
	seat    *parley.Seat
	down    bool
	gone    bool  // it is not to come back
	lost    bool  // it is to come back without what was durable
	doom    int32 // 1 + the crash that waits for a step to come in, or 0
	steps   int
	lives   uint64          // how often it has come back
	state   []byte          // durable: what Compact put in the place of records
	log     []parley.Record // durable: the records since
	timers  []timer
	clock   Clock
	until   parley.Tick // when its pause ends; 0: it is in none
	waiting []event     // what has happened in its pause
	rushing bool
}

// New sets up a run. A protocol or a set of options that cannot be run panics:
// they are the program's own. What users say is checked before.
func New(opt Options) *Sim {
	s := new(Sim)
	s.Reset(opt)
	return s
}

// Reset sets up another run in the memory of the last one. Stats and History of
// that are overwritten.
func (s *Sim) Reset(opt Options) {
	s.opt = checked(opt)
	p, n := s.opt.Protocol, s.opt.Protocol.N
	if s.delays == nil {
		s.delaySource, s.choiceSource = rand.NewPCG(0, 0), rand.NewPCG(0, 0)
		s.delays, s.choices = rand.New(s.delaySource), rand.New(s.choiceSource)
	}
	s.delaySource.Seed(opt.Seed, 1)
	s.choiceSource.Seed(opt.Seed, 2)
	s.now, s.armed, s.order, s.refused = 0, 0, 0, refused{}
	s.restarted, s.diskless, s.paused, s.doomed = parley.Set{}, parley.Set{}, parley.Set{}, parley.Set{}
	s.due.reset()
	s.wire.reset()
	s.rules = checkedLinks(s.opt)
	s.ruled = opt.FIFO || len(opt.Links) > 0 || len(opt.Graph) > 0 || opt.Heal > 0
	s.late, s.last = s.late[:0], s.last[:0]
	s.last = slices.Grow(s.last, n*n)[:n*n]
	clear(s.last)
	s.broadcast = s.opt.Delay.Least == s.opt.Delay.Most && opt.Loss == 0 && opt.Twice == 0 && opt.Log == nil &&
		!s.ruled && len(opt.Pauses) == 0 && opt.Detect == 0
	if len(s.procs) != n {
		s.procs, s.members = make([]process, n), make([]parley.Set, n)
	}
	for i := range s.procs {
		s.procs[i] = process{timers: s.procs[i].timers[:0], waiting: s.procs[i].waiting[:0]}
	}
	s.seat(p)
	reasons := s.Stats.Refused
	if reasons == nil {
		reasons = make(map[string]uint64)
	}
	clear(reasons)
	s.Stats = Stats{Refused: reasons, Sent: s.Stats.Sent[:0]}
	s.History = parley.History{
		N: n, Faulty: s.faulty, Requests: s.History.Requests[:0], Deliveries: s.History.Deliveries[:0],
		Indications: s.History.Indications[:0], Restarts: s.History.Restarts[:0],
	}
	s.seated = nil
	s.step = parley.Step{N: n, Host: (*host)(s), Effects: s.step.Effects[:0]}
	s.plan()
	if opt.More != nil {
		s.further()
	}
	for _, r := range opt.Requests {
		if r.When > 0 {
			s.due.at(r.When, event{what: asked, to: r.At, ref: s.wire.put(stored{msg: r.Msg, refs: 1})})
		}
	}
}

// seat makes the machines: one a correct process, one for all faulty ones.
func (s *Sim) seat(p parley.Protocol) {
	s.seats, s.faulty = s.seats[:0], parley.Set{}
	// order: a set has none
	for id := range s.opt.Faulty {
		s.faulty.Add(id)
	}
	if len(s.opt.Faulty) > 0 {
		s.seats = append(s.seats, faulty.New(p, s.opt.Rush, s.opt.Faulty).Seat())
	}
	for id := range parley.ID(p.N) {
		if !s.faulty.Has(id) {
			s.seats = append(s.seats, parley.Seat{IDs: []parley.ID{id}, Machine: p.New(id)})
		}
	}
	for i := range s.seats {
		for _, id := range s.seats[i].IDs {
			s.procs[id].seat = &s.seats[i]
			s.procs[id].rushing = s.seats[i].Rushing
			s.members[id] = parley.SetOf(s.seats[i].IDs...)
		}
	}
}

// Seats returns the seats of the run. Between two events a machine may be put in
// the place of another.
func (s *Sim) Seats() []parley.Seat { return s.seats }

// Fresh returns a new machine for a seat of the run.
func (s *Sim) Fresh(seat int) parley.Machine {
	if ids := s.seats[seat].IDs; !s.faulty.Has(ids[0]) {
		return s.opt.Protocol.New(ids[0])
	}
	return faulty.New(s.opt.Protocol, s.opt.Rush, s.opt.Faulty)
}

// Machine returns the machine that process id is part of.
func (s *Sim) Machine(id parley.ID) parley.Machine { return s.procs[id].seat.Machine }

// Correct returns the processes that are not faulty, as the history has it: they
// are not in the coalition and are not to crash for good or, when the run is over,
// did not.
func (s *Sim) Correct() parley.Set { return parley.Everyone(len(s.procs)).Minus(s.History.Faulty) }

// Now returns the virtual time.
func (s *Sim) Now() parley.Tick { return s.now }

// Run runs to the end and returns the simulation itself.
func Run(opt Options) *Sim {
	s := New(opt)
	s.Run()
	return s
}

// Run starts every process, makes the requests due at time 0 and goes on until
// nothing is due, the time is up or the steps are; in the last case the history
// is not over. A Sim runs once.
func (s *Sim) Run() {
	for id := range s.procs {
		if s.spent() {
			return
		}
		s.trace(trace.Event{Op: trace.Start, At: parley.ID(id)})
		s.do(parley.ID(id), 0, func(m parley.Machine) { m.Start(&s.step) })
	}
	for _, r := range s.opt.Requests {
		if r.When == 0 {
			s.request(r.At, r.Msg)
		}
	}
	for !s.Stats.OutOfSteps {
		e, ok := s.next()
		if ok {
			s.happen(e)
			if s.opt.Between != nil && !s.Stats.OutOfSteps {
				s.opt.Between(s)
			}
			continue
		}
		t, ok := s.due.next()
		if !ok || s.opt.Until > 0 && t > s.opt.Until {
			s.over()
			return
		}
		s.now = t
	}
}

// over ends the run. Who was to crash for good, and did not come to it, was correct.
func (s *Sim) over() {
	s.History.Over = true
	for id := range s.doomed.All() {
		if !s.procs[id].gone {
			s.doomed.Remove(id)
			s.History.Faulty.Remove(id)
		}
	}
}

// spent tells, where there is a step to make, whether the steps are used up.
func (s *Sim) spent() bool {
	if s.Stats.Steps >= s.opt.Steps {
		s.Stats.OutOfSteps = true
	}
	return s.Stats.OutOfSteps
}

// next returns the next event of the present time.
func (s *Sim) next() (event, bool) {
	if len(s.late) == 0 {
		return s.due.pop()
	}
	e := s.late[0]
	s.late = s.late[1:]
	return e, true
}

// happen carries out one event that is due.
func (s *Sim) happen(e event) {
	if s.pausing && s.waits(e) {
		return
	}
	switch e.what {
	case arrival:
		s.arrive(e)
	case expiry:
		p := &s.procs[e.to]
		i := p.find(e.ref)
		if i < 0 || s.spent() { // stopped, replaced, or of the time before a crash
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
		if !s.spent() {
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

// arrive hands a message to its receiver, or to all of them.
func (s *Sim) arrive(e event) {
	first, last := e.to, e.to
	if e.to == parley.All {
		first, last = 0, parley.ID(len(s.procs)-1)
	}
	faulty := s.faulty.Has(e.from)
	for id := first; id <= last; id++ {
		if id == e.from && e.to == parley.All {
			continue
		}
		if s.procs[id].down {
			s.Stats.Missed++
			continue
		}
		if s.spent() {
			return
		}
		w := &s.wire.slots[e.ref]
		s.Stats.Deliveries++
		if faulty && !s.faulty.Has(id) {
			s.Stats.FromFaulty++
		}
		if s.opt.Log != nil {
			s.trace(trace.Event{Op: trace.Receive, At: id, Peer: e.from, Cause: w.id, Epoch: w.epoch,
				Path: w.path, Msg: w.msg})
		}
		p := &s.procs[id]
		s.prepare(id, w.path)
		s.step.Epoch = w.epoch
		p.seat.Machine.Receive(&s.step, e.from, w.msg)
		s.carry(id)
	}
	s.wire.drop(e.ref)
}

// seen numbers what is seen from above, and has it in the history or tells who
// observes the run.
func (s *Sim) seen(op trace.Op, h parley.Happening) {
	s.order++
	h.When, h.Order = s.now, s.order
	if s.opt.Observe != nil {
		s.opt.Observe(op, h)
		return
	}
	trace.Record(&s.History, op, h)
}

// request asks a process something from above.
func (s *Sim) request(at parley.ID, m parley.Msg) {
	if s.procs[at].down || s.spent() {
		return
	}
	s.seen(trace.Request, parley.Happening{At: at, From: at, Msg: m})
	s.trace(trace.Event{Op: trace.Request, At: at, Msg: m})
	s.do(at, 0, func(mc parley.Machine) { mc.Request(&s.step, m) })
}

// further puts the next one of the requests that come one by one into the schedule.
func (s *Sim) further() {
	r, ok := s.opt.More()
	if !ok {
		return
	}
	if r.When < s.now || int(r.At) >= len(s.procs) {
		panic(fmt.Sprintf("sim: process %d is to be asked at time %d, when it is %d", r.At, r.When, s.now))
	}
	s.due.at(r.When, event{what: more, to: r.At, ref: s.wire.put(stored{msg: r.Msg, refs: 1})})
}

// do runs one clause of a process and carries out what it asks for.
func (s *Sim) do(id parley.ID, path parley.Path, clause func(parley.Machine)) {
	s.prepare(id, path)
	clause(s.procs[id].seat.Machine)
	s.carry(id)
}

func (s *Sim) prepare(id parley.ID, path parley.Path) {
	st := &s.step
	st.Self, st.Now, st.Path, st.Epoch = id, s.now, path, 0
	if s.skewed {
		st.Now = s.procs[id].clock.at(s.now)
	}
	if seat := s.procs[id].seat; seat != s.seated {
		st.Members, s.seated = s.members[id], seat
	}
	st.Effects = st.Effects[:0]
	s.Stats.Steps++
}

// host answers what a step asks while it runs.
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
	if h.faulty.Has(at) {
		return
	}
	h.Stats.Refused[why]++
	if h.opt.Log != nil {
		(*Sim)(h).trace(trace.Event{Op: trace.Refuse, At: at, Peer: from, Msg: parley.Msg{Body: []byte(why)}})
	}
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

// trace logs an event, if there is a log, and returns its number.
func (s *Sim) trace(e trace.Event) uint64 {
	if s.opt.Log == nil {
		return 0
	}
	e.Time = s.now
	return s.opt.Log.Add(e)
}
