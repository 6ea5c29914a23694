package tetra

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
)

// Config must be identical at all processes.
type Config struct {
	N, M   int // processes, and faults to tolerate
	Source parley.ID
	// Wait is the length of view 0, in ticks; each view is twice as long as the one before. The default is 6000. View
	// 0 needs three message delays, and a later view needs nine.
	Wait parley.Tick
}

// New returns the protocol. The source gets its value by a Request of kind Propose, at most problem.MaxValue bytes.
// Each process delivers a Decide, whose Body is empty if the decision is nothing.
func New(c Config) parley.Protocol {
	c.Wait = cmp.Or(c.Wait, 6000)
	if err := c.check(); err != nil {
		panic("tetra: " + err.Error())
	}
	return parley.Protocol{
		Name:       "tetra",
		Title:      "Byzantine agreement that is safe whatever the timing, by views of four votes",
		Paper:      "Yu, Losa and Wang 2024; Bracha 1987; beyond the source documents",
		Timing:     parley.Asynchronous,
		Faults:     parley.OralByzantineFaults,
		Kinds:      []string{"", "PROPOSE", "ECHO", "READY", "WISH", "ENTER", "WITNESS", "VOUCH", "VOTE", "DECIDED"},
		N:          c.N,
		M:          c.M,
		Proposers:  parley.SetOf(c.Source),
		New:        func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Properties: problem.ByzantineOrNothing(c.Source),
		Promises:   promises,
		Bound:      problem.OralBound,
		Cost:       problem.EchoCost,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain: func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{explain(c.N, m, name)})
		},
		Lies: lies(c.N),
		Span: 500 * c.Wait, // faulty processes may set timers without end
		// No Rename: processes lead views in the order of their IDs.
		Flags: parley.Flags(c, flags, New),
	}
}

func (c Config) check() error {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 1)
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case int(c.Source) >= c.N:
		return parley.FlagErrorf("source", "process %d: allowed are 0 to n-1 = %d", c.Source, c.N-1)
	case c.Wait < 1 || c.Wait > maxWait:
		return parley.FlagErrorf("wait", "%d ticks: allowed are 1 to %d", c.Wait, maxWait)
	}
	return nil
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	source := fs.String("source", "", "`process` whose value is agreed on (default: the first)")
	fs.Int64Var((*int64)(&c.Wait), "wait", int64(c.Wait), "how long processes wait in view 0 before they ask for "+
		"the next view, in `ticks`; each view takes twice as long as the previous view")
	return func(c *Config, naming parley.Naming) error {
		if c.M < 0 {
			c.M = max(0, problem.MostOral(c.N))
		}
		if *source != "" {
			id, err := naming(*source)
			if err != nil {
				return &parley.FlagError{Flag: "source", Err: err}
			}
			c.Source = id
		}
		return c.check()
	}
}

// viewTimer is the timer of the current view, maxWait the longest Wait, and doublings the number of views after which
// views no longer get longer.
const (
	viewTimer parley.Timer = 1
	maxWait   parley.Tick  = 1 << 40
	doublings              = 20
)

// process is an agreement of its own: values stand for themselves, and view 0 begins when the process starts.
type process struct {
	c    Config
	slot *Instance
}

func newProcess(c Config, self parley.ID) *process {
	p := &process{c: c}
	p.slot = NewInstance(self, c.Source, c.N, c.M, problem.MaxValue, p)
	return p
}

// Start: every process may be the first to know that the source is silent. So each starts its timer.
func (p *process) Start(s *parley.Step) {
	for _, r := range s.Log {
		p.slot.Replay(r.Body)
	}
	if s.Restart {
		p.slot.Restart(s)
	}
	if _, decided := p.slot.Decision(); !decided {
		p.Entered(s, p.slot.View())
	}
}

// Request: the source's value, at most once.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && len(m.Body) <= problem.MaxValue {
		p.slot.Propose(s, m.Body)
	}
}

// Receive passes on what links bring.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind < parley.Local {
		p.slot.Receive(s, from, m)
	}
}

// Timeout: the view takes too long.
func (p *process) Timeout(s *parley.Step, _ parley.Timer) {
	view := p.slot.View()
	p.slot.Timeout(s)
	if _, decided := p.slot.Decision(); !decided && p.slot.View() == view {
		p.Entered(s, view)
	}
}

// Holds: a value stands for itself.
func (p *process) Holds([]byte) bool { return true }

// Entered sets the timer of a view.
func (p *process) Entered(s *parley.Step, view uint64) {
	s.SetTimer(viewTimer, p.c.Wait<<min(view, doublings))
}

// Decided delivers the decision.
func (p *process) Decided(s *parley.Step, value []byte) {
	s.StopTimer(viewTimer)
	s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: value})
}

// State visits every variable.
func (p *process) State(v *parley.Vars) { v.Machine("agreement", p.slot) }

// explain writes a message for people.
func explain(n int, m parley.Msg, name func(parley.ID) string) string {
	value := shown(m.Body, "nothing")
	switch m.Kind {
	case Proposal, Echo, Ready, Vouch, Decided:
		if m.Kind == Proposal && m.Seq > 0 {
			return fmt.Sprintf("view %d: propose %s", m.Seq, value)
		}
		return map[parley.Kind]string{
			Proposal: "propose ", Echo: "echo ", Ready: "ready for ", Vouch: "vouch for ", Decided: "decided ",
		}[m.Kind] + value
	case Vote:
		return fmt.Sprintf("view %d, vote %d: %s", m.Seq, m.Value, value)
	case Witness:
		return fmt.Sprintf("claim of %s: ready for %s", name(m.Origin), shown(m.Body, "no value"))
	case Wish:
		text := ""
		if m.Seq > 0 {
			text = fmt.Sprintf("begin view %d? ", m.Seq)
		}
		if m.Value == 1 {
			text += "repeat what you sent"
		}
		return strings.TrimSpace(text)
	case Enter:
		claim, cast, ok := readReport(m.Body, max(m.Seq, 1), n, problem.MaxValue)
		if !ok {
			return "a report that cannot be read"
		}
		text := fmt.Sprintf("in view %d: ready for %s", m.Seq, shown(claim, "no value"))
		for k := range cast {
			if x := latest(cast[k]); x.view > 0 {
				text += fmt.Sprintf("; vote %d of view %d for %s", k+1, x.view, shown(x.value, "nothing"))
			}
		}
		return text
	}
	return "a message of no kind"
}

// shown writes a value. An empty value is none.
func shown(value []byte, none string) string {
	if len(value) == 0 {
		return none
	}
	return parley.Printable(value)
}
