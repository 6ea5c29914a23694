package dated

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/clock/convergence"
	"parley/lockstep"
)

// dateTimer belongs to the agreement on the date. The timers of the clock are smaller.
const dateTimer parley.Timer = 16

// nothing is the default of the agreement on the date. It is no date, because it does not have eight bytes.
var nothing = []byte("\x00nothing\x00")

// machine is one process: a synchronized logical clock, and the date at which it showed 0.
type machine struct {
	parley.Base
	plan   *convergence.Plan
	self   parley.ID
	clock  parley.Machine
	rounds lockstep.Protocol // of the agreement on the date
	when   lockstep.Schedule
	wall   func(self parley.ID, now parley.Tick) int64

	date     int64 // of logical time 0, in nanoseconds of Unix time
	dated    bool  // it belongs to the clocks as they run now
	once     bool  // there has been a date
	ahead    int64 // how far the common time was ahead of the hardware clock when last known
	agreeing bool
	strays   int // consecutive resynchronizations in which too few others replied with the same date
	one      *lockstep.Instance
	lacking  int        // consecutive resynchronizations without a date
	asked    bool       // a query was sent for the clocks as they run now
	told     parley.Set // the processes that have replied
	dates    []int64    // their replies, by process

	skew    []parley.Tick // how far others were ahead at the last resynchronization
	read    parley.Set    // the processes for which skew holds
	since   parley.Tick   // the first adjustment with this clock, by the hardware clock; 0: none yet
	drifted parley.Tick   // the sum of all adjustments since then
}

// mostRelayed and mostFaultsRelayed are the most processes and faults for which the agreement on the date uses
// information trees. For more it uses phase king, whose messages stay small.
const (
	mostRelayed       = 13
	mostFaultsRelayed = 2
)

// agreement returns the agreement on the date, in rounds. lies are the values that liars choose from.
func agreement(n, m int, lies ...[]byte) lockstep.Protocol {
	in := problem.Instance{N: n, M: m, Default: nothing, Alphabet: lies}
	return interactive.Rounds(interactive.Config{Instance: in, Over: func(in problem.Instance) lockstep.Protocol {
		if in.N <= mostRelayed && in.M <= mostFaultsRelayed {
			return eig.Observed(in)
		}
		return interactive.FromSource(in, phaseking.Rounds(phaseking.Config{Instance: in}))
	}})
}

func newMachine(c Config, plan *convergence.Plan, self parley.ID) *machine {
	rounds := agreement(plan.N, plan.M)
	round := c.Round + plan.Ever // the largest difference of clocks
	// A process that begins later by the START of others begins with a clock that shows up to a quarter of a
	// period and a round trip.
	begin := plan.Period/4 + plan.RoundTrip + round
	when := lockstep.Schedule{Begin: begin, Delta: round, Slack: c.Slack, Early: true}
	clock := parley.Machine(&given{plan: plan, self: self})
	if !c.Given {
		clock = convergence.New(plan.Config).New(self)
	}
	return &machine{
		plan: plan, self: self, clock: clock, rounds: rounds, when: when, wall: c.Date,
		one: lockstep.NewInstance(rounds, when, self, 0), dates: make([]int64, plan.N), skew: make([]parley.Tick, plan.N),
	}
}

func (d *machine) Start(s *parley.Step) { d.clocks(s, func() { d.clock.Start(s) }) }

// Request passes a request to the clock.
func (d *machine) Request(s *parley.Step, m parley.Msg) {
	d.clocks(s, func() { d.clock.Request(s, m) })
}

func (d *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local:
	case m.Kind == dateFrame && !d.agreeing:
		s.Refuse(from, "a frame for no agreement on the date")
	case m.Kind == dateFrame:
		m.Kind = lockstep.Frame
		d.timed(s, func() { d.one.Receive(s, from, m) })
	case m.Kind == dateQuery || m.Kind == dateReply:
		d.hear(s, from, m)
	default:
		d.clocks(s, func() { d.clock.Receive(s, from, m) })
	}
}

func (d *machine) Timeout(s *parley.Step, t parley.Timer) {
	if t != dateTimer {
		d.clocks(s, func() { d.clock.Timeout(s, t) })
	} else if d.agreeing {
		d.timed(s, func() { d.one.Expire(s) })
	}
}

// clocks runs a clause of the clock, and acts on its deliveries.
func (d *machine) clocks(s *parley.Step, clause func()) {
	mark := s.Mark()
	clause()
	for i := mark; i < len(s.Effects); i++ {
		e := &s.Effects[i]
		if e.Op != parley.OpDeliver {
			continue
		}
		switch e.Msg.Kind {
		case convergence.Enters:
			d.enter(s, d.plan.Began(parley.Tick(e.Msg.Value)))
		case convergence.Reads:
			d.check(s)
		case convergence.Adjusts:
			d.note(s)
		}
	}
}

// enter handles a clock that counts from now on. The clock began with the others (started), or it joined
// running clocks.
func (d *machine) enter(s *parley.Step, started bool) {
	d.dated, d.strays, d.lacking, d.agreeing, d.since, d.drifted = false, 0, 0, started, 0, 0
	d.asked, d.told = false, parley.Set{} // earlier queries were about other clocks
	if !started {
		d.ask(s)
		return
	}
	d.one.Reset(0)
	hardware := s.Now
	d.timed(s, func() {
		now := d.wall(d.self, hardware)
		if d.ahead != 0 {
			now = int64(hardware) + d.ahead
		}
		d.one.Request(s, parley.Msg{Kind: parley.Propose, Body: encode(now - int64(s.Now))})
	})
}

// encode returns a date as a value of the agreement.
func encode(date int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(date)) }

// check runs once a period. A process without a date asks for it, and in the next period gives up its clock:
// if too few others know a date, all processes without one begin again together. A process whose date fewer
// than n-m-1 others share also gives up its clock, because it missed messages of the agreement. Liars alone
// cannot make a process give up its clock like that.
func (d *machine) check(s *parley.Step) {
	switch d.lacking++; {
	case d.agreeing: // rounds may be longer than a period
		d.lacking = 0
	case d.dated:
		d.lacking = 0
		if d.strays++; d.tellers(d.date) >= d.plan.N-d.plan.M-1 {
			d.strays = 0
		}
		if d.strays <= 2 { // the first time no query was sent, and a reply may be lost
			d.ask(s)
			return
		}
		d.clocks(s, func() { d.clock.Request(s, parley.Msg{Kind: convergence.Anew}) })
	case d.lacking == 1:
		d.ask(s)
	default:
		d.clocks(s, func() { d.clock.Request(s, parley.Msg{Kind: convergence.Anew}) })
	}
}

// note records the readings of the others' clocks, and the common time.
func (d *machine) note(s *parley.Step) {
	if d.dated {
		t, _ := now(d.clock, s.Now)
		d.ahead = d.date + int64(t-s.Now)
	}
	v, _ := convergence.Look(d.clock)
	d.read = v.Read
	copy(d.skew, v.Ahead)
	if d.since == 0 { // this adjustment corrects the start of the clocks
		d.since = s.Now
	} else {
		d.drifted += v.Adjusted
	}
	for id := range v.Read.All() {
		if by := d.skew[id]; max(by, -by) > d.plan.Threshold {
			s.Indicate(parley.Msg{Kind: Beyond, Origin: id, Value: uint64(by)})
		}
	}
}

// rate returns View.Rate.
func (d *machine) rate(now parley.Tick) float64 {
	if in := now - d.since; d.dated && d.since > 0 && in >= 4000*d.plan.Error {
		return -1e6 * float64(d.drifted) / float64(in)
	}
	return 0
}

// timed runs a clause of the agreement on the date by the logical clock, and sets its timer.
func (d *machine) timed(s *parley.Step, clause func()) {
	before, mark := s.Now, s.Mark()
	s.Now, _ = now(d.clock, before)
	clause()
	logical := s.Now
	s.Now = before
	s.Take(mark, func(e *parley.Effect) bool {
		switch e.Op {
		case parley.OpSend:
			e.Msg.Kind = dateFrame
		case parley.OpDeliver:
			d.decide(e.Msg.Body)
			return true
		}
		return false
	})
	if d.dated {
		s.Indicate(parley.Msg{Kind: Dated, Value: uint64(d.date)})
	}
	if d.agreeing = !d.one.Over(); d.agreeing {
		s.SetTimer(dateTimer, max(d.one.Deadline()-logical, 0))
	} else if !d.dated {
		d.ask(s) // others may have received more dates
	}
}

// decide takes the median of the dates in the decided vector.
func (d *machine) decide(body []byte) {
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
	if len(dates) > 2*d.plan.M {
		slices.Sort(dates)
		d.settle(dates[(len(dates)-1)/2])
	}
}

func (d *machine) settle(date int64) { d.date, d.dated, d.once = date, true, true }

// ask asks all others for the date.
func (d *machine) ask(s *parley.Step) {
	d.asked, d.told = true, parley.Set{}
	s.SendAll(parley.Msg{Kind: dateQuery})
}

// hear handles a query for the date, or a reply: of m+1 equal replies one is correct.
func (d *machine) hear(s *parley.Step, from parley.ID, m parley.Msg) {
	switch _, in := now(d.clock, s.Now); {
	case m.Origin != 0 || m.Seq != 0 || len(m.Body) > 0 || m.Kind == dateQuery && m.Value != 0:
		s.Refuse(from, "fields that are not used")
	case m.Kind == dateQuery:
		if in && d.dated {
			s.Send(from, parley.Msg{Kind: dateReply, Value: uint64(d.date)})
		}
	case !in || !d.asked: // too late to be of use
	case !d.told.Add(from):
		s.Refuse(from, "a second date")
	default:
		d.dates[from] = int64(m.Value)
		if !d.dated && d.tellers(d.dates[from]) > d.plan.M {
			d.settle(d.dates[from])
			s.Indicate(parley.Msg{Kind: Dated, Value: uint64(d.date)})
		}
	}
}

// tellers counts the other processes that have replied with a date.
func (d *machine) tellers(date int64) (count int) {
	for id := range d.told.All() {
		if d.dates[id] == date {
			count++
		}
	}
	return count
}

func (d *machine) State(v *parley.Vars) {
	v.Machine("clock", d.clock)
	parley.Num(v, "date", &d.date)
	v.Bool("dated", &d.dated)
	v.Bool("once", &d.once)
	parley.Num(v, "common time ahead", &d.ahead)
	v.Bool("agreeing", &d.agreeing)
	parley.Num(v, "strays", &d.strays)
	if d.agreeing {
		v.Machine("one", d.one)
	} else if v.Loading() { // it starts from scratch when it is used again
		d.one.Reset(0)
	}
	parley.Num(v, "lacking", &d.lacking)
	v.Bool("asked", &d.asked)
	v.Set("told", &d.told)
	parley.PerProcess(v, "dates", d.dates, func(_ parley.ID, date *int64) { parley.Num(v, "date", date) })
	parley.PerProcess(v, "skew", d.skew, func(_ parley.ID, by *parley.Tick) { parley.Num(v, "ahead", by) })
	v.Set("read", &d.read)
	v.Time("since", &d.since)
	parley.Num(v, "drifted", &d.drifted)
}
