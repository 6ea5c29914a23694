// Package convergence implements interactive convergence: it synchronizes the clocks of n processes. Up to m clocks
// may be faulty. A faulty clock may show any time, and may show different times to different processes.
//
// The problem: hardware clocks drift. Each process must have a logical clock, which is its hardware clock with a
// correction. The difference between the logical clocks of any two correct processes must never exceed a bound,
// delta. There must be no master clock, because a master could be faulty.
//
// The model has three conditions. First, a correct hardware clock gains or loses at most the rate rho. Second, a
// correct process can read the clock of another with an error of at most eps, because message delays have a minimum
// and round trips have a maximum. Third, the clocks begin together, or a start protocol brings them together (see
// Begin). Messages are oral (unsigned). At most m processes are faulty. Faulty processes may do anything. A process
// that is down, or whose clock does not count yet, is one of the m.
//
// The bound: n > 3m. [Plan] computes delta.
//
// Once in each period of its own clock, a process reads the clocks of all others, and computes the differences to its
// own clock. It adjusts its own clock by the mean of n differences: these differences, and 0 for its own clock. A
// difference also counts as 0 if the process could not read the other clock, or if the difference is too large for
// correct clocks (larger than delta plus the error of a reading).
//
// Why it works: consider two correct processes that read the same clock. If this clock is correct, their readings
// differ by at most 2 eps. If this clock is faulty, each of the two processes accepts a reading only if the reading
// is within delta of the process's own clock. The own clocks of the two processes differ by at most delta, so the
// accepted readings differ by at most 3 delta. At most m of the n clocks are faulty, so the means of the two
// processes differ by at most (3m/n) delta, plus the errors of readings. If n > 3m, that is less than delta. The rest
// of delta allows for the drift until the next resynchronization.
//
// Nothing is promised about real time, because the mean of all clocks drifts as single clocks do. Clocks do not
// become synchronized without a start protocol. Nothing is promised while more than m processes are faulty, down or
// disconnected, or have clocks that take too long to read.
//
// After a time with more than m faults, only one thing is promised. If a process reads fewer than n-m clocks that are
// near its own clock, it reports this and joins again. During a start, a late or lost message also counts as a fault.
// For example, this happens if links come up only during the start. After a start with more than m faults, clocks may
// differ by more than delta, and no process may detect this. Shown.Checked says whether delta was measured or only
// assumed.
//
// Source: the lecture (docs/explanation/sources.md), "Fault-Tolerant Clock Synchronization"; Lamport and
// Melliar-Smith, "Synchronizing clocks in the presence of faults" (1985), algorithm CNV. The conditions are from
// Rushby and von Henke (1993), because the first proof had gaps. Schmuck and Cristian (1990) show that an
// adjustment may be spread over time without loss of precision. The start by echoed messages is from Srikanth and
// Toueg (1987).
//
// # Decisions
//
// A node reports that clocks are synchronized within delta only when it knows this. After a start, it knows this in
// two cases. First, all readings are within delta, even after adding the error that their round trips allow. Second,
// enough resynchronizations have passed to bring the clocks together. Motive: the start proves nothing, because no
// process knows how long a START message took. Each resynchronization checks that n-m clocks are within a threshold,
// but clocks that pass this check may differ by twice the threshold. Cost: clocks count as synchronized one or more
// periods after the start. If the errors of readings are close to the configured maximum, this happens after every
// start.
package convergence

import (
	"fmt"

	"parley"
)

// The messages. A time in a field is a Tick, as an unsigned number.
const (
	// Read asks for the time. Seq: the time T1 on the asker's clock, which identifies the answer. Origin,
	// Value and Body: unused.
	Read parley.Kind = iota + 1
	// Time is the answer. Seq: T1 of the question. Value: the time on the clock of the answering process. This time
	// is both T2 and T3, because the process answers at once. Origin and Body: unused.
	Time
	// Start comes from processes that begin without synchronized clocks. It uses no field.
	Start
)

// The deliveries of a process: the corners of its logical clock. Between two corners, the ratio of the clock's rate
// to the rate of the hardware clock is constant. Origin: the process. Seq: the time on its hardware clock. Value: the
// time on its logical clock. Body: the event in words, for a reader.
const (
	// Enters: the clock counts from now on.
	Enters parley.Kind = parley.Local + 0x20 + iota
	// Reads: the process begins a resynchronization.
	Reads
	// Adjusts: the process begins to spread an adjustment.
	Adjusts
	// Settles: the adjustment ends.
	Settles
	// Leaves: the clock no longer counts, and the process joins again. Body: the reason.
	Leaves
)

// New returns the protocol. It panics if c.Plan fails.
func New(c Config) parley.Protocol {
	plan, err := c.Plan()
	if err != nil {
		panic("convergence: " + err.Error())
	}
	p := parley.Protocol{
		Name:       "convergence",
		Title:      "Clock synchronization by interactive convergence",
		Paper:      "lecture, Fault-Tolerant Clock Synchronization; Lamport, Melliar-Smith 1985",
		Timing:     parley.Asynchronous,
		Faults:     parley.OralByzantineFaults,
		Kinds:      []string{"", "READ", "TIME", "START"},
		N:          c.N,
		M:          c.M,
		New:        func(self parley.ID) parley.Machine { return newProcess(self, &plan) },
		Properties: plan.properties(),
		Promises:   plan.promises,
		Bound:      bound,
		Cost:       plan.cost,
		Size:       size,
		Explain:    explain,
		Lies:       plan.lies,
		Flags:      parley.Flags(c, Flags, New),
		Clock:      &parley.ClockView{Apart: plan.Ever, Formula: plan.formula(), Corner: cornerOf},
		Relies:     parley.ModelAssumptions{Delay: plan.Least + plan.Eps, Offset: plan.Initial / 2, Drift: plan.Rho},
	}
	if plan.Resyncs == 0 {
		p.Span = 8*plan.Period + plan.settled()
	}
	if plan.Begin == Cold || plan.Begin == Either {
		p.Relies.Offset = 1 << 62 // a cold start allows clocks that show anything
	}
	if plan.Begin == Cold {
		p.Proposers = parley.Everyone(c.N)
	}
	return p
}

// The timers. Only one of them is set at a time.
const (
	resync parley.Timer = iota + 1 // the next resynchronization begins
	window                         // the readings are complete or late
	settle                         // the adjustment ends
	again                          // a joiner asks again
)

// phase is the state of a process.
type phase uint8

const (
	outside phase = iota // no clock: waits for the start
	joining              // no clock: asks the others
	silent               // a clock that must not count yet
	in
)

// process is the machine of one process.
type process struct {
	*Plan
	self parley.ID

	phase phase
	clock clock
	next  parley.Tick // the logical time of the next resynchronization
	tries int         // how often the process has asked to join

	checked     bool          // at the last adjustment n-m clocks were near its own, and sure was set
	sure        bool          // correct clocks are within delta, for as long as it keeps this clock
	reading     bool          // waits for readings
	began, wait parley.Tick   // since when, by its own clock, and for how long
	times       int           // questions since then
	asked       parley.Tick   // T1 of the last question
	read        parley.Set    // the processes whose clocks have been read
	differences []parley.Tick // how far each of these is ahead, by process
	low, high   parley.Tick   // bounds of all true differences, including 0

	starts startLog
}

func newProcess(self parley.ID, plan *Plan) *process {
	return &process{
		Plan: plan, self: self, differences: make([]parley.Tick, plan.N),
		starts: startLog{old: plan.Begin == Cold, when: make([]parley.Tick, plan.N)},
	}
}

// Start gives a process that begins with the others a clock. A process that comes later asks for one.
func (p *process) Start(s *parley.Step) {
	switch {
	case s.Restart || p.Begin >= Joining:
		p.join(s)
	case p.Begin == Together:
		p.enter(s, 0)
	}
}

// enter begins with a clock. A clock near a multiple of the period, ahead or behind, is first resynchronized
// at the multiple after that.
func (p *process) enter(s *parley.Step, base parley.Tick) {
	p.phase, p.clock, p.reading, p.checked, p.sure = in, clock{base: base}, false, false, false
	nearest, _ := floorDiv(p.clock.at(s.Now)+p.Period/2, p.Period)
	p.next = (nearest + 1) * p.Period
	p.corner(s, Enters, "is synchronized")
	p.sleep(s)
}

// sleep waits for the next resynchronization.
func (p *process) sleep(s *parley.Step) {
	if p.Resyncs == 0 || p.next <= parley.Tick(p.Resyncs)*p.Period {
		s.SetTimer(resync, p.next-p.clock.at(s.Now))
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // a suspicion, for example: a process that cannot be read does not count
	case m.Origin != 0 || len(m.Body) > 0 || m.Kind != Time && m.Value != 0:
		s.Refuse(from, "fields that are not used")
	// A process whose clock counts sends its time to any process that asks.
	case m.Kind == Read:
		if p.phase == in {
			s.Send(from, parley.Msg{Kind: Time, Seq: m.Seq, Value: uint64(p.clock.at(s.Now))})
		}
	case m.Kind == Time:
		p.note(s, from, m)
	case m.Kind == Start && m.Seq == 0 && (p.Begin == Cold || p.Begin == Either):
		p.heard(s, from)
	default:
		s.Refuse(from, "no message of this protocol")
	}
}

func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	switch t {
	case resync:
		if p.phase >= silent { // otherwise it has lost its clock since
			p.resync(s)
		}
	case window:
		p.close(s)
	case settle:
		if p.clock.span > 0 {
			p.settle(s)
		}
	case again:
		if p.phase == joining {
			p.join(s)
		}
	}
}

// close uses the readings, when there was enough time for all.
func (p *process) close(s *parley.Step) {
	switch {
	case !p.reading: // a START came in the meantime
	case p.times < p.Readings:
		p.question(s)
	case p.phase == joining:
		p.reading = false
		p.joinBy(s)
	case p.clock.at(s.Now)-p.began > p.Window+p.late():
		p.leave(s, "asleep when its clock was to be adjusted")
	default:
		p.reading = false
		p.adjust(s)
	}
}

// resync reads the clocks of all others, once a period. A process that wakes too late, after all others have
// adjusted, must not adjust alone.
func (p *process) resync(s *parley.Step) {
	if p.clock.at(s.Now)-p.next > p.late() {
		p.leave(s, "asleep when the clocks were to be read")
		return
	}
	p.corner(s, Reads, "reads")
	p.ask(s, p.Window)
}

func (p *process) ask(s *parley.Step, wait parley.Tick) {
	p.reading, p.began, p.times, p.read = true, p.clock.at(s.Now), 0, parley.Set{}
	p.wait, p.low, p.high = wait, 0, 0
	clear(p.differences)
	p.question(s)
}

// question asks the processes whose clocks have not been read, as often as the time allows.
func (p *process) question(s *parley.Step) {
	p.times++
	p.asked = p.clock.at(s.Now)
	left := p.wait - (p.asked - p.began)
	if p.times < p.Readings && left > p.RoundTrip {
		left = p.RoundTrip
	} else {
		p.times = p.Readings
	}
	m := parley.Msg{Kind: Read, Seq: uint64(p.asked)}
	if p.read == (parley.Set{}) {
		s.SendAll(m)
	} else {
		s.SendTo(parley.Everyone(p.N).Minus(p.read).Minus(parley.SetOf(p.self)), m)
	}
	s.SetTimer(window, max(left, 0))
}

// furthest is the largest difference that a reading may have: 73 years of nanoseconds.
const furthest parley.Tick = 1 << 61

// note handles an answer. One that took too long is discarded.
func (p *process) note(s *parley.Step, from parley.ID, m parley.Msg) {
	t1, t2, t4 := p.asked, parley.Tick(m.Value), p.clock.at(s.Now)
	switch {
	case !p.reading && m.Seq == uint64(t1) && p.Begin == Either: // a START came in the meantime
	case !p.reading || m.Seq != uint64(t1) || p.read.Has(from):
		s.Refuse(from, "a time that was not asked for")
	case t4-t1 > p.RoundTrip:
		s.Refuse(from, "reading took too long")
	case apart(t2, t4) > furthest:
		s.Refuse(from, "a time out of all reckoning")
	default:
		p.read.Add(from)
		d := offset(t1, t2, t2, t4)
		// The round trip bounds the error of the reading, mostly more tightly than Error.
		wrong := p.Error - p.Eps + max((t4-t1+1)/2-p.Least, 0)
		p.differences[from] = d
		p.low, p.high = min(p.low, d-wrong), max(p.high, d+wrong)
	}
}

// adjust computes the mean, and spreads the adjustment. At least n-m of a correct process's readings are
// within the threshold, including its own. If there are fewer, its own clock is wrong, or too many others are.
func (p *process) adjust(s *parley.Step) {
	threshold := p.Threshold
	if p.phase == silent {
		threshold += p.Error // its clock came from a reading
	}
	for id := range p.read.All() {
		if apart(p.differences[id], 0) > threshold {
			s.Refuse(id, "a clock beyond the threshold")
		}
	}
	mean := p.mean(p.clock.at(s.Now), threshold)
	if mean.kept < p.N-p.M {
		p.leave(s, "fewer than n-m clocks are near this one")
		return
	}
	p.makeSure()
	p.checked = p.sure
	p.clock.spread(mean.rounded(), s.Now, p.Span)
	p.corner(s, Adjusts, fmt.Sprintf("adjusts by %+d", p.clock.amount))
	s.SetTimer(settle, p.Span)
}

// makeSure sets sure when delta is measured. That n-m clocks are within the threshold of its own shows only
// that correct clocks are within twice as much. delta follows if the start was good, but no process notices a
// START that was late, or lost because a link was not up. So a process is sure of delta only when all clocks
// that it has read are that near each other, or when they have been pulled together for long enough; clocks
// that began at 0 show how long.
func (p *process) makeSure() {
	assumed := p.Begin == Together || p.Begin == Joining
	p.sure = p.sure || assumed || p.high-p.low <= p.Delta || p.next/p.Period >= parley.Tick(p.Pulls)
}

// mean returns the mean of the differences. In the other form it is the mean of the values that the clocks
// have now by these differences, minus the own value.
func (p *process) mean(now, threshold parley.Tick) mean {
	if p.Form == Differences {
		return meanOf(p.self, 0, p.differences, p.read, threshold)
	}
	values := make([]parley.Tick, p.N)
	for i, d := range p.differences {
		values[i] = now + d
	}
	m := meanOf(p.self, now, values, p.read, threshold)
	m.whole -= now
	return m
}

// settle ends the adjustment. A joiner that has made one is as near as all others.
func (p *process) settle(s *parley.Step) {
	p.clock.settle()
	if p.phase == silent {
		p.phase = in
		p.corner(s, Enters, "is synchronized")
	} else {
		p.corner(s, Settles, "settles")
	}
	p.next += p.Period
	p.sleep(s)
}

// corner delivers what the clock shows, if it counts.
func (p *process) corner(s *parley.Step, kind parley.Kind, words string) {
	if p.phase != in {
		return
	}
	now := p.clock.at(s.Now)
	s.Deliver(p.self, parley.Msg{
		Kind: kind, Origin: p.self, Seq: uint64(s.Now), Value: uint64(now),
		Body: fmt.Appendf(nil, "%s at %d", words, now),
	})
}

func (p *process) State(v *parley.Vars) {
	parley.Num(v, "phase", &p.phase)
	p.clock.state(v)
	parley.Num(v, "next", &p.next)
	parley.Num(v, "tries", &p.tries)
	v.Bool("checked", &p.checked)
	v.Bool("sure", &p.sure)
	v.Bool("reading", &p.reading)
	parley.Num(v, "began", &p.began)
	parley.Num(v, "wait", &p.wait)
	parley.Num(v, "times", &p.times)
	parley.Num(v, "asked", &p.asked)
	v.Set("read", &p.read)
	parley.PerProcess(v, "difference", p.differences, func(_ parley.ID, d *parley.Tick) {
		parley.Num(v, "ahead", d)
	})
	parley.Num(v, "low", &p.low)
	parley.Num(v, "high", &p.high)
	p.starts.state(v)
}
