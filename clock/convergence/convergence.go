// Package convergence is interactive convergence: it keeps the clocks of n
// processes together although up to m of them show what they like, and show
// different processes different things.
//
// The problem: hardware clocks drift. Each process is to have a logical clock, its
// hardware clock with a correction, such that those of any two correct processes
// are never further apart than some delta, at any time. That there be no master is
// the point: a clock that lies to all is no worse than one that stands still.
//
// The model: a correct hardware clock gains or loses at most rho; a correct process
// can read the clock of another with an error of at most eps, because messages
// between them have a least delay and their round trips a longest; and the clocks
// begin together, or by a start that brings them together (see Begin). Messages are
// oral, and at most m processes are faulty in any way, those among them that are
// down or not yet in.
//
// The bound: n > 3m, and delta as [Plan] says.
//
// Once a period, when its own clock says so, a process reads the clocks of all
// others, and adjusts its own by the mean of the differences: its own counts as 0,
// and so does one that could not be read or that is larger than delta can explain.
//
// Why it works: of a correct clock two processes use readings that differ by 2 eps.
// A liar's must be within delta of each reader's own, and these are within delta of
// each other, so what the two use of it differs by 3 delta at most. The means of
// the two then differ by (3m/n) delta and the errors: less than delta if n > 3m, and
// the rest of delta is for the drift until the next time.
//
// What is not promised: anything of the real time, for the mean of all clocks drifts
// as clocks do; synchrony where there is none, beyond the start; anything during a
// time in which more than m processes are faulty, down, cut off or read too slowly,
// and after it only that a process which sees fewer than n-m clocks near its own
// says so and joins again. A start is such a time if its messages are late or lost,
// as where links come up meanwhile. Clocks may then begin further apart than delta,
// and nobody notices: see Shown.Checked for when delta is not assumed but found.
//
// Source: lecture, "Fault-Tolerant Clock Synchronization"; Lamport and
// Melliar-Smith, "Synchronizing clocks in the presence of faults" (1985), algorithm
// CNV, under the conditions of Rushby and von Henke (1993), for the first proof had
// gaps. That an adjustment may be spread without loss is of Schmuck and Cristian
// (1990); the start by messages that are echoed is that of Srikanth and Toueg (1987).
//
// # Decisions
//
// A bound is reported when it was measured, not when it follows from the start, because no process
// knows how long a START took. After one, a clock is called synchronized when all readings, each with
// the error that its round trip allows, lie within delta, or after so many resynchronizations that
// clocks which passed the check of the threshold have come together. Motive: that check alone allows
// twice the threshold, and five nodes that started on a busy machine were some milliseconds further
// apart than they said. Cost: after such a start clocks are synchronized one or some periods later;
// so they are after every start where readings are about as wrong as is configured.
package convergence

import (
	"fmt"

	"parley"
)

// The messages. A time in a field is a Tick as an unsigned number.
const (
	// Read asks for the time. Seq: the time T1 on the asker's clock, by which it
	// knows the answer. Origin, Value and Body: unused.
	Read parley.Kind = iota + 1
	// Time is the answer. Seq: T1 of the question. Value: the time on the clock of
	// the one who answers, which is T2 and T3, because it answers at once. Origin and
	// Body: unused.
	Time
	// Start is said by those who begin without clocks that are together. No field is used.
	Start
)

// What a process delivers: the corners of its logical clock. Between two of them
// the clock runs evenly, as far as the hardware does. Origin: the process. Seq: the
// time on its hardware clock. Value: the time on its logical clock. Body: the event
// in words, for a reader.
const (
	// Enters: the clock counts from now on.
	Enters parley.Kind = parley.Local + 0x20 + iota
	// Reads: the process begins a resynchronization.
	Reads
	// Adjusts: it begins to spread an adjustment.
	Adjusts
	// Settles: the adjustment is over.
	Settles
	// Leaves: the clock counts no more, and the process joins again. Body: the reason.
	Leaves
)

// New returns the protocol. It panics if no Plan can be made of c.
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
		Relies:     parley.ModelAssumptions{Delay: plan.Least + plan.Eps, Offset: plan.Initial / 2, Drift: plan.Rho},
	}
	if plan.Resyncs == 0 {
		p.Span = 8*plan.Period + plan.settled()
	}
	if plan.Begin == Cold || plan.Begin == Either {
		p.Relies.Offset = 1 << 62 // a cold start takes clocks that show anything
	}
	if plan.Begin == Cold {
		p.Proposers = parley.Everyone(c.N)
	}
	return p
}

// The timers. Only one of them runs at a time.
const (
	resync parley.Timer = iota + 1 // the next resynchronization begins
	window                         // it is time to make something of the readings
	settle                         // the adjustment is over
	again                          // a joiner asks again
)

// phase is how far a process has come.
type phase uint8

const (
	outside phase = iota // it has no clock, and waits for the start
	joining              // it has none, and asks the others
	silent               // it has one that nobody may rely on yet
	in
)

// process is one process.
type process struct {
	*Plan
	self parley.ID

	phase phase
	clock clock
	next  parley.Tick // the logical time of the next resynchronization
	tries int         // how often it has asked to join

	checked     bool          // n-m clocks were near its own, and it is sure
	sure        bool          // correct clocks are within delta, since it has one
	reading     bool          // readings are awaited
	began, wait parley.Tick   // since when, on its own clock, and for how long
	times       int           // how often it has asked since
	asked       parley.Tick   // T1 of the last question
	read        parley.Set    // whose clocks have been read
	differences []parley.Tick // and by how much they are ahead, one a process
	low, high   parley.Tick   // between these all of them are for certain, and 0

	starts starts
}

func newProcess(self parley.ID, plan *Plan) *process {
	return &process{
		Plan: plan, self: self, differences: make([]parley.Tick, plan.N),
		starts: starts{old: plan.Begin == Cold, when: make([]parley.Tick, plan.N)},
	}
}

// Start: who begins with the others has a clock, and who comes later asks for it.
func (p *process) Start(s *parley.Step) {
	switch {
	case s.Restart || p.Begin >= Joining:
		p.join(s)
	case p.Begin == Together:
		p.enter(s, 0)
	}
}

// A clock that begins near a multiple of the period, ahead or behind, is first
// resynchronized at the multiple after that.
func (p *process) enter(s *parley.Step, base parley.Tick) {
	p.phase, p.clock, p.reading, p.checked, p.sure = in, clock{base: base}, false, false, false
	nearest, _ := floorDiv(p.clock.at(s.Now)+p.Period/2, p.Period)
	p.next = (nearest + 1) * p.Period
	p.corner(s, Enters, "is in")
	p.sleep(s)
}

// sleep waits for the next resynchronization. The clock has settled.
func (p *process) sleep(s *parley.Step) {
	if p.Resyncs == 0 || p.next <= parley.Tick(p.Resyncs)*p.Period {
		s.SetTimer(resync, p.next-p.clock.at(s.Now))
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // suspicions and the like: who cannot be read does not count
	case m.Origin != 0 || len(m.Body) > 0 || m.Kind != Time && m.Value != 0:
		s.Refuse(from, "fields that are not used")
	// A process that is in tells its time to whoever asks.
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
		if p.phase >= silent { // else it has lost its clock since
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

// close makes something of the readings, when there was time enough for all.
func (p *process) close(s *parley.Step) {
	switch {
	case !p.reading: // a START came meanwhile
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

// Once a period the process reads the clocks of all others. One that wakes too
// late for that does not do it alone when all others have done it.
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

// question asks those whose clocks have not been read, as often as there is time for.
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

// furthest is how far a clock may be from one's own that is to be reckoned with: 73
// years of nanoseconds.
const furthest parley.Tick = 1 << 61

// An answer that took long tells little: such a clock could not be read.
func (p *process) note(s *parley.Step, from parley.ID, m parley.Msg) {
	t1, t2, t4 := p.asked, parley.Tick(m.Value), p.clock.at(s.Now)
	switch {
	case !p.reading && m.Seq == uint64(t1) && p.Begin == Either: // a START came meanwhile
	case !p.reading || m.Seq != uint64(t1) || p.read.Has(from):
		s.Refuse(from, "a time that was not asked for")
	case t4-t1 > p.RoundTrip:
		s.Refuse(from, "reading took too long")
	case apart(t2, t4) > furthest:
		s.Refuse(from, "a time out of all reckoning")
	default:
		p.read.Add(from)
		d := offset(t1, t2, t2, t4)
		// The round trip tells how wrong the reading may be, mostly less than any may be.
		wrong := p.Error - p.Eps + max((t4-t1+1)/2-p.Least, 0)
		p.differences[from] = d
		p.low, p.high = min(p.low, d-wrong), max(p.high, d+wrong)
	}
}

// The process takes the mean, and spreads the adjustment. Of a correct process's
// readings n-m are within the threshold, its own among them: if there are fewer, its
// own clock is wrong, or too many others are.
func (p *process) adjust(s *parley.Step) {
	threshold := p.Threshold
	if p.phase == silent {
		threshold += p.Error // its clock came of a reading
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

// makeSure: that n-m clocks are within the threshold of one's own says only that correct ones are
// within twice as much, of which delta follows if they began as a start should have them begin.
// No one notices a START that is late, or lost because a link was not up. So a process is sure of
// delta only when all clocks that it has read are so near each other, or when they have been
// pulled together for long enough. Those that began at 0 show for how long.
func (p *process) makeSure() {
	assumed := p.Begin == Together || p.Begin == Joining
	p.sure = p.sure || assumed || p.high-p.low <= p.Delta || p.next/p.Period >= parley.Tick(p.Pulls)
}

// mean is the mean of the differences; in the other form that of the values that
// the clocks have now by these differences, from which one's own is taken again.
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

// The adjustment is over. A joiner that has made one is as near as all others.
func (p *process) settle(s *parley.Step) {
	p.clock.settle()
	if p.phase == silent {
		p.phase = in
		p.corner(s, Enters, "is in")
	} else {
		p.corner(s, Settles, "settles")
	}
	p.next += p.Period
	p.sleep(s)
}

// corner tells what the clocks show, if this one counts.
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
