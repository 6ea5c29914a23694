package sim

import (
	"fmt"
	"math/bits"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// Clock says how wrong a process's clock is: at the true time t it shows Offset + t + t*Drift/1,000,000,
// rounded down. The process's timers run on this clock, and its machine sees no other time. Traces and
// histories use true time.
type Clock struct {
	At     parley.ID
	Offset parley.Tick // ticks ahead of the true time, at time 0
	Drift  int64       // parts per million by which the clock is fast, or slow if negative
}

// Pause stops process At for For ticks, from tick From on. The process does nothing during the pause. At the
// end of the pause it gets all messages that have arrived, and then all timers that have expired. A pause at
// time 0 begins after Start and the requests of that time. If a process crashes in a pause, the waiting
// messages and timers are lost, and the process is not paused after its restart. A process that is down at
// the time From is not paused.
type Pause struct {
	At        parley.ID
	From, For parley.Tick
}

// Crash stops a process in the middle of a step, after the first Effects effects of that step. The records of
// a step become durable before its other effects, so with Effects 0 the records of the step are lost. A send
// to all is one effect for each receiver.
//
// Either Step or When sets the time:
//   - Step: the process stops in its step of that number, counted from 1, across restarts.
//   - When, with Effects 0: it stops exactly at the tick When, between two steps.
//   - When, with Effects > 0: it stops in the first step from the tick When on that has effects, or at the tick
//     When+Patience if there is none.
//
// If both are 0, the process crashes at tick 0. Its first step is its start, so with Effects 0 it never does
// anything. A process that is down at the time When does not crash again, and if Back is 0 it does not
// restart.
type Crash struct {
	At      parley.ID
	Step    int
	When    parley.Tick
	Effects int
	// Back is how many ticks after the crash the process restarts. 0 means never.
	Back parley.Tick
	// LostDisk makes the process restart without its log.
	LostDisk bool
}

// Patience is how long, in ticks from Crash.When on, a crash with Effects > 0 waits for a step with effects.
// If there is no such step, the process crashes at the end of that time.
const Patience parley.Tick = 1000

// million is the unit of drifts: parts per million.
const million = 1_000_000

// plan schedules the faults of the options.
func (s *Sim) plan() {
	n := len(s.procs)
	for _, c := range s.opt.Clocks {
		if int(c.At) >= n || c.Drift <= -million || c.Drift > million {
			panic(fmt.Sprintf("sim: the clock of process %d drifts by %d parts in a million", c.At, c.Drift))
		}
		s.procs[c.At].clock = c
	}
	s.skewed = len(s.opt.Clocks) > 0
	s.pausing = len(s.opt.Pauses) > 0
	for i, c := range s.opt.Crashes {
		if int(c.At) >= n || s.faulty.Has(c.At) {
			panic(fmt.Sprintf("sim: process %d is to crash, and is in the coalition, or not there", c.At))
		}
		if c.Step > 0 && c.When > 0 || c.Step < 0 || c.When < 0 || c.Effects < 0 || c.Back < 0 {
			panic(fmt.Sprintf("sim: process %d is to crash in step %d and at time %d", c.At, c.Step, c.When))
		}
		if c.Back == 0 {
			s.doomed.Add(c.At)
			s.History.Faulty.Add(c.At)
		}
		switch {
		case c.When > 0:
			s.due.at(c.When, event{what: crashing, to: c.At, ref: int32(i)})
		case c.Step == 0:
			s.procs[c.At].doom = int32(i + 1)
			s.due.at(Patience, event{what: overdue, to: c.At, ref: int32(i)})
		}
	}
	for i, p := range s.opt.Pauses {
		if int(p.At) >= n || p.From < 0 || p.For < 1 || p.From+p.For < p.From {
			panic(fmt.Sprintf("sim: process %d is to pause at time %d for %d", p.At, p.From, p.For))
		}
		s.due.at(p.From, event{what: pausing, to: p.At, ref: int32(i)})
	}
	for _, q := range s.opt.Suspicions {
		if q.When < 0 || int(q.At) >= n || int(q.Of) >= n {
			panic(fmt.Sprintf("sim: process %d is to suspect %d at time %d", q.At, q.Of, q.When))
		}
		s.due.at(q.When, event{what: hinted, to: q.At, from: q.Of})
	}
}

// Clock returns the time on the clock of a process.
func (s *Sim) Clock(id parley.ID) parley.Tick { return s.procs[id].clock.Shows(s.now) }

// Shows returns the time that the clock shows at the true time t, or the greatest Tick if the result would
// exceed it. Before time 0 the clock does not drift.
func (c *Clock) Shows(t parley.Tick) parley.Tick {
	if t < 0 {
		return t + c.Offset
	}
	if c.Drift != 0 {
		hi, lo := bits.Mul64(uint64(t), uint64(million+c.Drift))
		if hi >= million/2 {
			return never
		}
		q, _ := bits.Div64(hi, lo, million)
		t = parley.Tick(q)
	}
	return after(c.Offset, t)
}

// When returns the first true time at which the clock shows t or more, or the greatest Tick if there is none.
func (c *Clock) When(t parley.Tick) parley.Tick {
	if t == never || c.Offset < 0 && t > never+c.Offset {
		return never
	}
	t -= c.Offset
	if c.Drift == 0 || t <= 0 {
		return t
	}
	d := uint64(million + c.Drift)
	hi, lo := bits.Mul64(uint64(t), million)
	if hi >= d {
		return never
	}
	q, rest := bits.Div64(hi, lo, d)
	if rest > 0 {
		q++
	}
	if q > uint64(never) {
		return never
	}
	return parley.Tick(q)
}

// pause pauses a process.
func (s *Sim) pause(id parley.ID, length parley.Tick) {
	p := &s.procs[id]
	if p.down {
		return
	}
	s.paused.Add(id)
	s.Stats.Pauses++
	s.trace(trace.Event{Op: trace.Pause, At: id})
	end := after(s.now, length)
	p.until = max(p.until, end)
	s.due.at(end, event{what: resuming, to: id})
}

// resume ends a pause, and delivers what happened in it.
func (s *Sim) resume(id parley.ID) {
	p := &s.procs[id]
	if p.until == 0 || s.now < p.until {
		return // another pause continues, or a crash has ended this one
	}
	p.until = 0
	s.trace(trace.Event{Op: trace.Resume, At: id})
	s.due.missed = append(s.due.missed, p.waiting...)
	p.waiting = p.waiting[:0]
}

// crashAt handles the time When of a crash.
func (s *Sim) crashAt(i int32) {
	c := s.opt.Crashes[i]
	p := &s.procs[c.At]
	if p.doom > 0 { // an earlier crash waits for a step: it waits no longer
		s.crash(s.opt.Crashes[p.doom-1])
	}
	switch {
	case p.down:
		p.gone = p.gone || c.Back == 0
	case c.Effects == 0:
		s.crash(c)
	default:
		p.doom = i + 1
		s.due.at(after(s.now, Patience), event{what: overdue, to: c.At, ref: i})
	}
}

// crash stops a process. Effects that it has not carried out are lost.
func (s *Sim) crash(c Crash) {
	p := &s.procs[c.At]
	p.down, p.doom, p.until = true, 0, 0
	p.timers = p.timers[:0]
	for _, e := range p.waiting {
		switch e.what {
		case arrival:
			s.Stats.Missed++
			s.wire.drop(e.ref)
		case asked:
			s.wire.drop(e.ref)
		}
	}
	p.waiting = p.waiting[:0]
	s.Stats.Crashes++
	s.trace(trace.Event{Op: trace.Crash, At: c.At})
	if c.LostDisk {
		p.state, p.log, p.lost = nil, nil, true
	}
	if c.Back > 0 {
		s.due.at(after(s.now, c.Back), event{what: back, to: c.At})
	} else {
		p.gone = true
	}
	for id := range s.procs {
		s.detect(&s.due, s.now, parley.ID(id), c.At)
	}
}

// restart begins a new incarnation of a process. It loads the durable state before Start, which gets the later
// records in its log.
func (s *Sim) restart(id parley.ID) {
	p := &s.procs[id]
	if p.gone {
		return
	}
	p.down = false
	s.restarted.Add(id)
	s.Stats.Restarts++
	var m parley.Msg
	if p.lost {
		p.lost, m.Value = false, 1
		s.diskless.Add(id)
		s.Stats.LostDisks++
	}
	p.seat.Machine = s.opt.Protocol.New(id)
	state, records := s.Durable(id)
	if len(state) > 0 && !parley.LoadDurable(p.seat.Machine, s.Clock(id), state) {
		panic("sim: a machine does not load the durable state it saved")
	}
	s.seen(trace.Restart, parley.ExternalEvent{At: id, From: id, Msg: m})
	s.trace(trace.Event{Op: trace.Restart, At: id, Msg: m})
	for of := range s.procs {
		if s.procs[of].down {
			s.detect(&s.due, s.now, id, parley.ID(of))
		}
	}
	p.lives++
	s.step.Restart, s.step.Log, s.step.Life = true, records, p.lives
	s.do(id, 0, func(m parley.Machine) { m.Start(&s.step) })
	s.step.Restart, s.step.Log, s.step.Life = false, nil, 0
}

// suspect notifies a process, as a detector beneath it would, that another one is suspected to have crashed.
func (s *Sim) suspect(at, of parley.ID) {
	if s.procs[at].down || s.Stats.spent(s.opt.Steps) {
		return
	}
	s.Stats.suspicion(!s.faulty.Has(at) && s.serves(of))
	m := parley.Msg{Kind: parley.Suspect, Origin: of}
	s.trace(trace.Event{Op: trace.Suspect, At: at, Msg: m})
	s.do(at, 0, func(mc parley.Machine) { mc.Receive(&s.step, at, m) })
}

// RunConditions returns the conditions of the run so far, for [parley.Judge]: the faults that happened, not
// the faults that the options allowed. Call it when the run is over. Restarts, lost disks, pauses, and wrong
// clocks of processes in History.Faulty do not count, because these processes may do anything. There is one
// exception: a process that is in History.Faulty only because it crashed for good was correct until then, so
// its earlier faults count.
func (s *Sim) RunConditions() parley.RunConditions {
	return s.Facts().RunConditions(s.opt.Protocol, &s.History)
}

// Facts returns facts about the run so far that no event shows, for the header of its trace.
func (s *Sim) Facts() trace.Facts {
	p := s.opt.Protocol
	a := trace.Facts{Over: s.History.Over}
	_, a.Worst = faulty.Cast(s.opt.Faulty)
	up := s.up(s.Correct())
	joined := s.opt.Joined(up, s.now)
	free := s.History.Faulty.Minus(s.doomed) // processes that may do anything
	a.Network = parley.NetworkFaults{
		Lost: s.Stats.Lost > 0, Doubled: s.Stats.Doubled > 0, Reordered: s.Stats.Overtaken > 0,
		Late: s.Stats.Late > 0, Cut: s.Stats.Cut > 0 || s.Stats.NoEdge > 0 && !p.Relays, Disconnected: joined < up.Len(),
	}
	befell := func(whom parley.Set) bool { return whom.Minus(free) != parley.Set{} }
	a.Processes = parley.ProcessFaults{
		Restarted: befell(s.restarted), LostDisk: befell(s.diskless), Paused: befell(s.paused) || s.opt.WrongClock(free),
		Suspected: s.Stats.FalseSuspicions > 0, Minority: 2*joined <= p.N,
	}
	return a
}
