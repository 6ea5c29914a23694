package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/agreement/interactive"
	"parley/clock/convergence"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/faulty"
	"parley/lockstep"
)

// CycleConfig is an agreement that takes place again and again, at times that all nodes know
// beforehand: at every multiple of Every since 1970, by the clock that they keep together.
// All agree on the vector of what each has set. It is for what is sampled and voted on at a
// rate; what comes up when it does is for [Node.Agree] and [Node.Propose].
type CycleConfig struct {
	Name string
	// Every is the time from the beginning of one to that of the next: what its rounds take,
	// and one more at least.
	Every time.Duration
	// Algorithm is EIG, OM or PhaseKing, and M as in a Question.
	Algorithm Algorithm
	M         int
}

// Cycle is one of them at this node.
type Cycle struct {
	n       *Node
	t       stream
	name    string
	none    error // of a cycle that is not configured
	process *host.Process

	mu    sync.Mutex
	moved sync.Cond
	kept  []Vector // the last ones, the oldest first
	shut  bool
}

// keptVectors is how many outcomes of a cycle are kept.
const keptVectors = 64

// The channels of cycles.
const (
	firstCycle = 3
	mostCycles = 13
)

// CheckCycles tells what is wrong with the configuration of cycles: of names, numbers and
// times, or that clocks which may be so far apart leave rounds too short.
func (c Config) CheckCycles() error {
	c = c.filled()
	if len(c.Cycles) > mostCycles {
		return fmt.Errorf("%d cycles: at most %d", len(c.Cycles), mostCycles)
	}
	for i, one := range c.Cycles {
		if slices.ContainsFunc(c.Cycles[:i], func(o CycleConfig) bool { return o.Name == one.Name }) {
			return fmt.Errorf("two cycles are named %q", one.Name)
		}
		if err := c.checkCycle(one); err != nil {
			return fmt.Errorf("cycle %s: %w", one.Name, err)
		}
	}
	return nil
}

// checkCycle tells why the rounds of a cycle do not fit: into its time, or what may be between
// the clocks, a message and two nodes that are late into one of them.
func (c Config) checkCycle(one CycleConfig) error {
	t := one.stream(len(c.Members))
	if err := t.check(len(c.Members)); err != nil {
		return err
	}
	plan, err := c.plan()
	if err == nil {
		err = convergence.New(plan.Config).Bound(plan.N, plan.M)
	}
	if err != nil {
		return fmt.Errorf("clocks: %w", err)
	}
	rounds := t.rounds(len(c.Members)).Last + 1
	switch least := time.Duration(rounds+1) * c.Round; {
	case one.Algorithm == SM:
		return errors.New("what is signed in one cycle would count in all: allowed are eig, om and phaseking")
	case one.Every < least:
		return fmt.Errorf("every %v: its %d rounds, and one to spare, take %v", one.Every, rounds, least)
	case time.Duration(plan.Ever)+c.Round/delayPart+2*c.slack() > c.Round:
		return fmt.Errorf("clocks may be %v apart: with that, a tenth of it for a message and two fifths for late nodes "+
			"a round of %v is too short: clocks must be read better than with an error of %v, or rounds be longer",
			fine(time.Duration(plan.Ever)), c.Round, time.Duration(plan.Eps))
	}
	return nil
}

// stream is that of agreements of all nodes by the algorithm and m of the cycle.
func (c CycleConfig) stream(n int) stream {
	t := stream{algorithm: c.Algorithm, m: c.M, source: everybody}
	if t.m == 0 {
		t.m = t.algorithm.Most(n)
	}
	return t
}

// newCycles begins the cycles.
func (n *Node) newCycles() (err error) {
	if err := n.c.CheckCycles(); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	n.cycles = make(map[string]*Cycle)
	for i, c := range n.c.Cycles {
		if n.cycles[c.Name], err = n.newCycle(c, firstCycle+uint32(i)); err != nil {
			return fmt.Errorf("cluster: cycle %s: %w", c.Name, err)
		}
	}
	return nil
}

func (n *Node) newCycle(c CycleConfig, channel uint32) (*Cycle, error) {
	size, when := len(n.c.Members), n.c.timed()
	one := &Cycle{n: n, t: c.stream(size), name: c.Name}
	one.moved.L = &one.mu
	work := func(parley.ID) parley.Machine {
		return newCyclic(one.t, size, n.self, parley.Tick(c.Every), when, n.clock.at)
	}
	machine := work(n.self)
	if n.c.Lab != nil && n.c.Lab.Traitor.Name != "" {
		described := lockstep.Of(one.t.rounds(size), when)
		described.New = work
		machine = faulty.New(described, 0, map[parley.ID]faulty.Behaviour{n.self: n.c.Lab.Traitor})
	}
	var err error
	one.process, err = n.host.Open(host.Options{
		Channel: channel, Name: "cycle/" + c.Name, Machine: machine, Upper: one, Class: link.Urgent,
	})
	return one, err
}

// timed is the schedule of rounds that have their time, but for when they begin.
func (c Config) timed() lockstep.Schedule {
	return lockstep.Schedule{Delta: parley.Tick(c.Round), Slack: parley.Tick(c.slack()), Early: true}
}

// Cycle returns this node's part of a cycle. One of a name that is not configured fails with
// ErrNotConfigured whatever it is asked.
func (n *Node) Cycle(name string) *Cycle {
	if c := n.cycles[name]; c != nil {
		return c
	}
	return &Cycle{n: n, name: name, none: notConfigured("cycle", name, n.cycles)}
}

// Set sets this node's value for all cycles that have not begun: what was set last counts.
// nil is no value.
func (c *Cycle) Set(value []byte) error {
	switch {
	case c.none != nil:
		return c.none
	case len(value) > MaxValue:
		return fmt.Errorf("cluster: a value of %d bytes: at most %d", len(value), MaxValue)
	case bytes.Equal(value, nothing):
		return ErrReserved
	case value == nil:
		value = nothing
	}
	return c.process.Request(parley.Msg{Kind: parley.Propose, Body: bytes.Clone(value)})
}

// Next returns the vector of the first cycle after a slot that this node has decided, and
// waits for it. A slot is the number of its beginning among the multiples of Every. Slots in
// which this node took no part are left out: its clock was not synchronized, or it was held
// up or cut off. It fails with a *RoundError if what was measured does not fit into rounds.
func (c *Cycle) Next(ctx context.Context, after uint64) (Vector, error) {
	if c.none != nil {
		return Vector{}, c.none
	}
	if err := c.n.fits(c.t.m); err != nil {
		return Vector{}, err
	}
	defer context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.moved.Broadcast()
	})()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for _, v := range c.kept {
			if v.Slot > after {
				v.Values = slices.Clone(v.Values) // the caller's own
				for i, b := range v.Values {
					v.Values[i] = bytes.Clone(b)
				}
				return v, nil
			}
		}
		switch {
		case c.shut:
			return Vector{}, c.n.closedBy()
		case ctx.Err() != nil:
			return Vector{}, ctx.Err()
		}
		c.moved.Wait()
	}
}

// Deliver takes a decision.
func (c *Cycle) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	values, err := interactive.DecodeVector(m.Body)
	if err != nil {
		return
	}
	for i := range values {
		if bytes.Equal(values[i], nothing) {
			values[i] = nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) == keptVectors {
		c.kept = append(c.kept[:0:0], c.kept[1:]...)
	}
	c.kept = append(c.kept, Vector{Name: c.name, Slot: m.Seq, Values: values})
	c.moved.Broadcast()
}

// Indicate is told nothing of use.
func (c *Cycle) Indicate(parley.Path, parley.Msg) {}

func (c *Cycle) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	c.moved.Broadcast()
}

// cyclic is one process: instance k of the rounds begins at the cluster's time k*every, and
// its deadlines are by that clock. Who starts, or comes to have a clock, takes part in the
// instances that begin after that.
type cyclic struct {
	parley.Base
	p     lockstep.Protocol
	when  lockstep.Schedule
	limit int // of a frame, in bytes
	self  parley.ID
	every parley.Tick
	clock func(hardware parley.Tick) (t int64, synchronized bool) // no part of its state

	value []byte
	one   *lockstep.Instance // nil: no clock yet, or none any more
	slot  uint64
}

func newCyclic(t stream, n int, self parley.ID, every parley.Tick, when lockstep.Schedule,
	clock func(parley.Tick) (int64, bool),
) *cyclic {
	p := t.rounds(n)
	inner := p.New
	p.New = func(self parley.ID) lockstep.Rounds { return &attended{Rounds: inner(self), t: t, n: n} }
	return &cyclic{p: p, when: when, limit: t.frameLimit(n), self: self, every: every, clock: clock, value: nothing}
}

// attended are rounds that know whether their process was too late for what it decides to mean
// anything.
type attended struct {
	lockstep.Rounds
	attendance
	t stream
	n int
}

// Request.
func (r *attended) Request(s *parley.Step, m parley.Msg) {
	r.says(m.Body)
	r.Rounds.Request(s, m)
}

// Came.
func (r *attended) Came(_ int, from parley.Set) { r.hears(r.t, r.n, from) }

// State.
func (r *attended) State(v *parley.Vars) {
	r.attendance.State(v)
	r.Rounds.State(v)
}

// Start.
func (m *cyclic) Start(s *parley.Step) { m.wait(s) }

// Request sets the value.
func (m *cyclic) Request(_ *parley.Step, q parley.Msg) { m.value = q.Body }

// Receive. What is due by the clock comes first: the timer may be late.
func (m *cyclic) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Local {
		return
	}
	m.wait(s)
	switch {
	case m.one == nil:
		s.Refuse(from, "a frame, and there is no clock")
		return
	case len(q.Body) > m.limit:
		s.Refuse(from, "frame over the limit of the cycle")
		return
	}
	m.timed(s, func() { m.one.Receive(s, from, q) })
	m.wait(s)
}

// Timeout is the end of a round, the beginning of an instance, or time to look at the clock.
func (m *cyclic) Timeout(s *parley.Step, _ parley.Timer) { m.wait(s) }

// timed runs a clause by the cluster's clock, and gives what is decided the slot.
func (m *cyclic) timed(s *parley.Step, clause func()) {
	before, mark := s.Now, s.Mark()
	t, _ := m.clock(before)
	s.Now = parley.Tick(t)
	clause()
	s.Now = before
	r := m.one.Rounds().(*attended)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver {
			return false
		}
		e.Msg.Seq = m.slot
		r.decides(r.t, m.self, e.Msg.Body)
		if r.Apart() {
			s.Refuse(m.self, cutOff)
		}
		return r.Apart()
	})
}

// looks is how often a process without a clock looks whether there is one.
const looks = parley.Tick(50 * time.Millisecond)

// wait does what is due by the clock, and waits for what comes next. The clock may have been
// adjusted since the timer was set: then it is set again.
func (m *cyclic) wait(s *parley.Step) {
	for {
		t, ok := m.clock(s.Now)
		now := parley.Tick(t)
		switch {
		case !ok:
			m.one = nil // who does not know the time takes no part
			s.SetTimer(0, looks)
			return
		case m.one == nil || m.one.Over():
			m.slot = max(uint64(now/m.every)+1, m.slot+1)
			m.one = m.instance()
		case now < m.one.Deadline():
			s.SetTimer(0, m.one.Deadline()-now)
			return
		default:
			m.timed(s, func() {
				if m.one.Waits() {
					m.one.Request(s, parley.Msg{Kind: parley.Propose, Body: m.value})
				}
				m.one.Expire(s)
			})
		}
	}
}

// instance makes the process of the slot.
func (m *cyclic) instance() *lockstep.Instance {
	when := m.when
	when.Begin = parley.Tick(m.slot) * m.every
	return lockstep.NewInstance(m.p, when, m.self, m.slot)
}

// State.
func (m *cyclic) State(v *parley.Vars) {
	v.Bytes("value", &m.value)
	parley.Num(v, "slot", &m.slot)
	has := m.one != nil
	v.Bool("has", &has)
	switch {
	case !has:
		m.one = nil
		return
	case v.Loading():
		m.one = m.instance()
	}
	v.Machine("one", m.one)
}
