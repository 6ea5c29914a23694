package ballot

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// Config configures one plain consensus.
type Config struct {
	N, M int // processes, and crashes to tolerate
	// Wait and Stagger say when a process starts another ballot: the process of rank r first waits Wait + r*Stagger
	// ticks, then twice as long, and so on. The defaults are 5000 and 2000 ticks. A ballot without rivals takes five
	// message delays.
	Wait, Stagger parley.Tick
}

// New returns the protocol. Each process gets its initial value by a Request
// of kind Propose, at most problem.MaxValue bytes, and delivers a Decide.
func New(c Config) parley.Protocol {
	if err := c.check(); err != nil {
		panic("ballot: " + err.Error())
	}
	c.Wait, c.Stagger = cmp.Or(c.Wait, 5000), cmp.Or(c.Stagger, 2000)
	return parley.Protocol{
		Name:       "ballot",
		Title:      "uniform consensus by ballots and majorities",
		Paper:      "Lamport 1998, the synod",
		Timing:     parley.Asynchronous,
		Faults:     parley.CrashFaults,
		Kinds:      []string{"", "PREPARE", "PROMISE", "REFUSE", "ACCEPT", "ACCEPTED", "DECIDE"},
		N:          c.N,
		M:          c.M,
		Proposers:  parley.Everyone(c.N),
		New:        func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Properties: Properties(),
		Promises:   promises,
		Bound:      Bound,
		Cost:       Cost,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain: func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{explain(c.N, m, name)})
		},
		Flags: parley.Flags(c, flags, New),
	}
}

func (c Config) check() error {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 1)
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d crashes of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case c.Wait < 0 || c.Wait > maxWait:
		return parley.FlagErrorf("wait", "%d ticks: allowed are 1 to %d", c.Wait, maxWait)
	case c.Stagger < 0 || c.Stagger > maxWait:
		return parley.FlagErrorf("stagger", "%d ticks: allowed are 1 to %d", c.Stagger, maxWait)
	}
	return nil
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`crashes` to tolerate (default: as many as the theorem allows)")
	fs.Int64Var((*int64)(&c.Wait), "wait", int64(c.Wait), "how long the first process waits before it "+
		"starts another ballot, in `ticks`")
	fs.Int64Var((*int64)(&c.Stagger), "stagger", int64(c.Stagger), "how much longer each process waits "+
		"than the previous process, in `ticks`")
	return func(c *Config, _ parley.Naming) error {
		if c.M < 0 {
			c.M = max(0, (c.N-1)/2)
		}
		switch { // 0 would mean the default
		case c.Wait == 0:
			return parley.FlagErrorf("wait", "0 ticks: allowed are 1 to %d", maxWait)
		case c.Stagger == 0:
			return parley.FlagErrorf("stagger", "0 ticks: allowed are 1 to %d", maxWait)
		}
		return c.check()
	}
}

// retryTimer is the timer for the next ballot, maxWait the longest time it is set for.
const (
	retryTimer parley.Timer = 1
	maxWait    parley.Tick  = 1 << 40
)

type process struct {
	c         Config
	self      parley.ID
	synod     *Instance
	given     bool // Durable: a value was proposed here
	value     []byte
	suspected parley.Set
	wait      parley.Tick // until the next ballot; 0 before a value was proposed
}

func newProcess(c Config, self parley.ID) *process {
	p := &process{c: c, self: self}
	p.synod = NewInstance(self, parley.Everyone(c.N), p)
	return p
}

// Start: a process that restarts knows its proposal, what it promised and what
// it accepted. It delivers the decision again, because it cannot know whether it did before.
func (p *process) Start(s *parley.Step) {
	for _, r := range s.Log {
		if !p.synod.Replay(r.Body) && len(r.Body) > 0 && parley.Kind(r.Body[0]) == parley.Propose {
			p.given, p.value = true, r.Body[1:]
		}
	}
	if v, decided := p.synod.Decision(); decided {
		p.deliver(s, v)
	} else if s.Restart {
		p.begin(s)
	}
}

// Request: a value is proposed here, at most once.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Propose || p.given || len(m.Body) > problem.MaxValue {
		return
	}
	p.given, p.value = true, m.Body
	s.Append(append([]byte{byte(parley.Propose)}, m.Body...))
	p.begin(s)
}

// begin: the process of the lowest rank that is not suspected starts a ballot at
// once; the process of rank r after T + r*S if nothing has been decided by then. A process that
// restarts without a value starts ballots too: others may have decided.
func (p *process) begin(s *parley.Step) {
	if _, decided := p.synod.Decision(); decided {
		return
	}
	p.wait = p.c.Wait + parley.Tick(p.self)*p.c.Stagger
	if p.given && p.isLowest() {
		p.synod.Propose(s)
	}
	p.awaitDecision(s)
}

func (p *process) awaitDecision(s *parley.Step) {
	if _, decided := p.synod.Decision(); !decided {
		s.SetTimer(retryTimer, p.wait)
		p.wait = min(2*p.wait, maxWait)
	}
}

// isLowest reports whether all processes of a lower rank are suspected.
func (p *process) isLowest() bool {
	return parley.Everyone(int(p.self)).Minus(p.suspected) == parley.Set{}
}

// Timeout: try again, and double the wait.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	if _, decided := p.synod.Decision(); t == retryTimer && !decided {
		p.synod.Propose(s)
		p.awaitDecision(s)
	}
}

// Receive: a suspicion may make this process the lowest unsuspected, and a message shows that
// its sender is up.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == parley.Suspect:
		before := p.isLowest()
		p.suspected.Add(m.Origin)
		if !before && p.isLowest() && p.given {
			p.synod.Propose(s)
		}
	case m.Kind < parley.Local:
		p.suspected.Remove(from)
		p.synod.Receive(s, from, m)
	}
}

// Report: plain consensus needs no report.
func (p *process) Report() []byte { return nil }

// Choose: the process's own proposal.
func (p *process) Choose([]Report) []byte { return p.value }

// Enough: any majority is enough if the process has a value to choose.
func (p *process) Enough([]Report) bool { return p.given }

// Decided: the log needs only the decision from now on.
func (p *process) Decided(s *parley.Step, _ parley.ID, v []byte) {
	s.StopTimer(retryTimer)
	p.deliver(s, v)
	s.Compact()
}

func (p *process) deliver(s *parley.Step, v []byte) {
	s.Deliver(p.self, parley.Msg{Kind: parley.Decide, Body: v})
}

func (p *process) State(v *parley.Vars) {
	v.Durable(func() {
		v.Bool("given", &p.given)
		v.Bytes("proposal", &p.value)
	})
	v.Set("suspected", &p.suspected)
	parley.Num(v, "wait", &p.wait)
	v.Machine("ballot", p.synod)
}

// Bound returns why n processes cannot tolerate m crashes, or nil if they can: any two majorities
// share a process, and a majority must remain.
func Bound(n, m int) error {
	if n >= 2*m+1 {
		return nil
	}
	return fmt.Errorf("if %d of %d processes crash, no majority is left: n >= 2m+1 is necessary", m, n)
}

// Cost counts a run without faults, which has one ballot: PREPARE, PROMISE, ACCEPT, ACCEPTED and DECIDE, each to or
// from n-1 others.
func Cost(n, _ int) parley.Cost {
	const phases = 5
	return parley.Cost{Rounds: phases, PerRound: slices.Repeat([]parley.Traffic{{Messages: uint64(n - 1)}}, phases)}
}

func explain(n int, m parley.Msg, name func(parley.ID) string) string {
	number := func(b uint64) string {
		if b < uint64(n) {
			return "no ballot"
		}
		return fmt.Sprintf("ballot %d of %s", b/uint64(n), name(parley.ID(b%uint64(n))))
	}
	switch m.Kind {
	case Prepare:
		return number(m.Seq) + "?"
	case Promise:
		value, _, ok := readPromise(m.Body)
		switch {
		case !ok:
			return "a promise that cannot be read"
		case m.Value == 0:
			return number(m.Seq) + ": promised, nothing accepted"
		}
		return number(m.Seq) + ": promised, accepted " + parley.Printable(value) + " in " + number(m.Value)
	case Refuse:
		return "too late: promised " + number(m.Seq)
	case Accept:
		return number(m.Seq) + ": accept " + parley.Printable(m.Body)
	case Accepted:
		return number(m.Seq) + ": accepted"
	case Decision:
		return "decided " + parley.Printable(m.Body)
	}
	return "a message of no kind"
}
