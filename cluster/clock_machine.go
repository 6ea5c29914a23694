package cluster

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/stream"
	"parley/clock/convergence"
	"parley/lockstep"
)

// The messages of the clock's channel beside those of the clocks themselves.
const (
	// dateFrame is a frame of the agreement on the date.
	dateFrame parley.Kind = 0x10 + iota
	// askDate asks for the date, and toldDate answers. Value: the date.
	askDate
	toldDate
)

// dateTimer is that of the agreement on the date. The clocks' own are below.
const dateTimer parley.Timer = 16

// clockBeyond is indicated of a process whose clock was read and is further off than a
// correct one can be. Origin: who. Value: by how much it is ahead, as a signed number.
const clockBeyond parley.Kind = parley.Indication + 0x3E

// clockDated is indicated when there is a date. No field is used.
const clockDated parley.Kind = parley.Indication + 0x3F

// clockwork is the clock of one node: a logical clock that is kept together with the
// others', and a date for the time at which it showed 0.
//
// When the clocks begin together, which is at the logical time 0, the nodes agree on the
// date: each says what it takes for it, and the median of the vector that all agree on is
// nobody's false date alone. The agreement has its rounds by the clocks that have just
// begun. Who was late for it, or comes later, takes the date that m+1 nodes tell it alike.
// When they begin anew, who had the common time takes that for the date, and not what the
// machine's clock says by now: it would stand still, or jump, for all that go by it.
type clockwork struct {
	parley.Base
	plan   convergence.Plan
	self   parley.ID
	clock  parley.Machine
	rounds lockstep.Protocol // of the agreement on the date
	when   lockstep.Schedule
	wall   func() int64 // what this node takes for the date; no part of its state

	date     int64 // of the logical time 0, in nanoseconds as Unix counts them
	dated    bool  // it is that of the clocks as they go now
	once     bool  // there has been a date at all
	ahead    int64 // by how much the common time was ahead of the hardware clock when that was last known
	agreeing bool
	strays   int // how many resynchronizations on end too few others told the same date
	one      *lockstep.Instance
	lacking  int        // how many resynchronizations it has had no date for
	told     parley.Set // who has answered
	dates    []int64    // what, by process

	skew    []parley.Tick // by how much others were ahead at the last resynchronization
	read    parley.Set    // of whom that is known
	since   parley.Tick   // the first adjustment since it is in, by the hardware clock; 0: none yet
	drifted parley.Tick   // sum of all adjustments since then
}

// newClockwork makes a node's clock. Round is the length of rounds of the agreement on the
// date, and slack how late a node may be in them.
func newClockwork(plan convergence.Plan, self parley.ID, round, slack parley.Tick, wall func() int64) *clockwork {
	in := problem.Instance{N: plan.N, M: plan.M, Default: stream.NoValue()}
	rounds := interactive.Rounds(interactive.Config{Instance: in, Over: func(in problem.Instance) lockstep.Protocol {
		if in.N <= stream.MaxProcesses && in.M <= 2 {
			return eig.Observed(in)
		}
		return interactive.FromSource(in, phaseking.Rounds(phaseking.Config{Instance: in}))
	}})
	round += plan.Ever // so far may clocks be apart
	// Who takes the others' START some time after them begins with a clock that shows so much.
	begin := plan.Period/4 + plan.RoundTrip + round
	when := lockstep.Schedule{Begin: begin, Delta: round, Slack: slack, Early: true}
	return &clockwork{
		plan: plan, self: self, clock: convergence.New(plan.Config).New(self), rounds: rounds, when: when, wall: wall,
		one: lockstep.NewInstance(rounds, when, self, 0), dates: make([]int64, plan.N), skew: make([]parley.Tick, plan.N),
	}
}

// Start.
func (c *clockwork) Start(s *parley.Step) { c.clocks(s, func() { c.clock.Start(s) }) }

// Request is for the clock.
func (c *clockwork) Request(s *parley.Step, m parley.Msg) {
	c.clocks(s, func() { c.clock.Request(s, m) })
}

// Receive.
func (c *clockwork) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local:
	case m.Kind == dateFrame && !c.agreeing:
		s.Refuse(from, "a frame for no agreement on the date")
	case m.Kind == dateFrame:
		m.Kind = lockstep.Frame
		c.timed(s, func() { c.one.Receive(s, from, m) })
	case m.Kind == askDate || m.Kind == toldDate:
		c.answer(s, from, m)
	default:
		c.clocks(s, func() { c.clock.Receive(s, from, m) })
	}
}

// Timeout.
func (c *clockwork) Timeout(s *parley.Step, t parley.Timer) {
	if t != dateTimer {
		c.clocks(s, func() { c.clock.Timeout(s, t) })
	} else if c.agreeing {
		c.timed(s, func() { c.one.Expire(s) })
	}
}

// clocks runs a clause of the clock, and does what its events call for.
func (c *clockwork) clocks(s *parley.Step, clause func()) {
	mark := s.Mark()
	clause()
	for i := mark; i < len(s.Effects); i++ {
		e := &s.Effects[i]
		if e.Op != parley.OpDeliver {
			continue
		}
		switch e.Msg.Kind {
		case convergence.Enters:
			c.enters(s, c.plan.Began(parley.Tick(e.Msg.Value)))
		case convergence.Reads:
			c.missesDate(s)
		case convergence.Adjusts:
			c.adjusts(s)
		}
	}
}

// enters: the clock is in, by a start or among others that are.
func (c *clockwork) enters(s *parley.Step, started bool) {
	c.dated, c.strays, c.lacking, c.agreeing, c.since, c.drifted = false, 0, 0, started, 0, 0
	if !started {
		c.ask(s)
		return
	}
	c.one.Reset(0)
	hardware := int64(s.Now)
	c.timed(s, func() {
		now := c.wall()
		if c.ahead != 0 {
			now = hardware + c.ahead
		}
		c.one.Request(s, parley.Msg{
			Kind: parley.Propose, Body: binary.BigEndian.AppendUint64(nil, uint64(now-int64(s.Now))),
		})
	})
}

// missesDate: who has not come to have a date asks for it; and if fewer know one than would
// have to, the nodes that do not begin anew. So does who has another date than the others, for
// they did not hear it in time when all agreed: of n-m-1 others liars alone can not keep it.
func (c *clockwork) missesDate(s *parley.Step) {
	switch c.lacking++; {
	case c.agreeing: // rounds may be longer than a period
		c.lacking = 0
	case c.dated:
		c.lacking = 0
		if c.strays++; c.alike(c.date) >= c.plan.N-c.plan.M-1 {
			c.strays = 0
		}
		if c.strays <= 2 { // the first time nobody has been asked, and an answer may be lost
			c.ask(s)
			return
		}
		c.clocks(s, func() { c.clock.Request(s, parley.Msg{Kind: convergence.Anew}) })
	case c.lacking == 1:
		c.ask(s)
	default:
		c.clocks(s, func() { c.clock.Request(s, parley.Msg{Kind: convergence.Anew}) })
	}
}

// adjusts notes what was read, and the common time.
func (c *clockwork) adjusts(s *parley.Step) {
	if c.dated {
		t, _ := convergence.Now(c.clock, s.Now)
		c.ahead = c.date + int64(t-s.Now)
	}
	v, _ := convergence.Look(c.clock)
	c.read = v.Read
	copy(c.skew, v.Ahead)
	if c.since == 0 { // what that makes up for is how the clocks began
		c.since = s.Now
	} else {
		c.drifted += v.Adjusted
	}
	for id := range v.Read.All() {
		if d := c.skew[id]; max(d, -d) > c.plan.Threshold {
			s.Indicate(parley.Msg{Kind: clockBeyond, Origin: id, Value: uint64(d)})
		}
	}
}

// rate is by how much this node's own clock gains on the others, in parts in a million; 0 as
// long as errors of reading may be more than a few hundred of them.
func (c *clockwork) rate(now parley.Tick) float64 {
	if in := now - c.since; c.dated && c.since > 0 && in >= 4000*c.plan.Error {
		return -1e6 * float64(c.drifted) / float64(in)
	}
	return 0
}

// timed runs a clause of the agreement on the date by the logical clock, and sets its timer.
func (c *clockwork) timed(s *parley.Step, clause func()) {
	before, mark := s.Now, s.Mark()
	s.Now, _ = convergence.Now(c.clock, before)
	clause()
	now := s.Now
	s.Now = before
	for i := mark; i < len(s.Effects); i++ {
		if e := &s.Effects[i]; e.Op == parley.OpSend {
			e.Msg.Kind = dateFrame
		}
	}
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver {
			return false
		}
		c.decide(e.Msg.Body)
		return true
	})
	if c.dated {
		s.Indicate(parley.Msg{Kind: clockDated})
	}
	if c.agreeing = !c.one.Over(); c.agreeing {
		s.SetTimer(dateTimer, max(c.one.Deadline()-now, 0))
	} else if !c.dated {
		c.ask(s) // others may have been heard by more
	}
}

// decide takes the median of the dates that were agreed on.
func (c *clockwork) decide(body []byte) {
	vector, err := interactive.DecodeVector(body)
	if err != nil {
		return
	}
	var dates []int64
	for _, entry := range vector {
		if len(entry) == 8 {
			dates = append(dates, int64(binary.BigEndian.Uint64(entry)))
		}
	}
	if len(dates) > 2*c.plan.M {
		slices.Sort(dates)
		c.settle(dates[(len(dates)-1)/2])
	}
}

func (c *clockwork) settle(date int64) { c.date, c.dated, c.once = date, true, true }

// ask asks all others for the date.
func (c *clockwork) ask(s *parley.Step) {
	c.told = parley.Set{}
	s.SendAll(parley.Msg{Kind: askDate})
}

// answer takes a question for the date, or an answer: of m+1 that are alike one is correct.
func (c *clockwork) answer(s *parley.Step, from parley.ID, m parley.Msg) {
	switch _, in := convergence.Now(c.clock, s.Now); {
	case m.Origin != 0 || m.Seq != 0 || len(m.Body) > 0 || m.Kind == askDate && m.Value != 0:
		s.Refuse(from, "fields that are not used")
	case m.Kind == askDate:
		if in && c.dated {
			s.Send(from, parley.Msg{Kind: toldDate, Value: uint64(c.date)})
		}
	case !in: // it has come too late to be of use
	case !c.told.Add(from):
		s.Refuse(from, "a second date")
	default:
		c.dates[from] = int64(m.Value)
		if !c.dated && c.alike(c.dates[from]) > c.plan.M {
			c.settle(c.dates[from])
			s.Indicate(parley.Msg{Kind: clockDated})
		}
	}
}

// alike is how many others have told a date.
func (c *clockwork) alike(date int64) (count int) {
	for id := range c.told.All() {
		if c.dates[id] == date {
			count++
		}
	}
	return count
}

// State visits what the clock and the date depend on.
func (c *clockwork) State(v *parley.Vars) {
	v.Machine("clock", c.clock)
	parley.Num(v, "date", &c.date)
	v.Bool("dated", &c.dated)
	v.Bool("once", &c.once)
	parley.Num(v, "common time ahead", &c.ahead)
	v.Bool("agreeing", &c.agreeing)
	parley.Num(v, "strays", &c.strays)
	v.Machine("one", c.one)
	parley.Num(v, "lacking", &c.lacking)
	v.Set("told", &c.told)
	parley.PerProcess(v, "dates", c.dates, func(_ parley.ID, d *int64) { parley.Num(v, "date", d) })
	parley.PerProcess(v, "skew", c.skew, func(_ parley.ID, d *parley.Tick) { parley.Num(v, "ahead", d) })
	v.Set("read", &c.read)
	v.Time("since", &c.since)
	parley.Num(v, "drifted", &c.drifted)
}

// described is a clock as a protocol, for one who lies: with what it shows, in the agreement
// on the date, and in what it tells of it.
func (c *clockwork) described() parley.Protocol {
	out := convergence.New(c.plan.Config)
	clocks, frames := out.Lies, lockstep.Of(c.rounds, c.when).Lies
	out.New = func(self parley.ID) parley.Machine {
		return newClockwork(c.plan, self, c.when.Delta-c.plan.Ever, c.when.Slack, c.wall)
	}
	out.Lies = func(s *parley.Step, t *parley.Turn) []parley.Sent {
		var told []parley.Sent
		for _, one := range t.Honest {
			turn := *t
			turn.Memo, turn.Out = nil, nil
			switch one.Msg.Kind {
			case dateFrame:
				one.Msg.Kind = lockstep.Frame
				turn.Honest, turn.Seen = []parley.Sent{one}, seenFrames(t)
				for _, lie := range frames(s, &turn) {
					lie.Msg.Kind = dateFrame
					told = append(told, lie)
				}
			case askDate, toldDate:
				switch s.Choose(3) {
				case 1:
					one.Msg.Value++
				case 2:
					continue
				}
				told = append(told, one)
			default:
				turn.Honest = []parley.Sent{one}
				told = append(told, clocks(s, &turn)...)
			}
		}
		return told
	}
	return out
}

// seenFrames are the frames of the agreement on the date that a coalition has seen.
func seenFrames(t *parley.Turn) func(yield func(parley.Got) bool) {
	return func(yield func(parley.Got) bool) {
		for got := range t.Seen {
			if got.Msg.Kind != dateFrame {
				continue
			}
			got.Msg.Kind = lockstep.Frame
			if !yield(got) {
				return
			}
		}
	}
}
