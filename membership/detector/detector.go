// Package detector guesses which processes have crashed, from their silence.
//
// The problem: processes crash; those that have not must come to know who has.
// Every process sends a heartbeat to all others once a period, and suspects
// whoever has been silent for longer than a timeout.
//
// The bound: a crash is always suspected in the end, by all correct processes and
// with any number of crashes (completeness). That nobody else is suspected
// (accuracy) holds where delays are bounded and the timeout is chosen by the bound:
//
//	timeout >= period + 2 lateness + delay
//
// and no heartbeat is lost. A suspicion then also comes after the last message of
// the link. Otherwise it is a guess. The detector mends its guesses: heartbeats in
// a row clear a suspicion, and the timeout of that process grows. If delays are
// bounded at all, by less than the largest timeout, it is wrong about a process a
// few times only (eventual accuracy).
//
// Why it works: a crashed process sends no heartbeat, and its silence is measured
// until it is as long as any timeout. A process that lives sends one a period, and
// they come no further apart than a period and the delay. And it must be the other
// one that was silent: a process whose own timer comes late was paused itself,
// holds unread heartbeats, and suspects nobody before it has listened for a whole
// timeout again. It takes more to clear a suspicion than a single heartbeat, so
// that a process at the edge of its timeout is not taken back and dropped in turn.
//
// Not promised: that two processes suspect the same ones, or at one time; anything
// of a process that crashes and is back before its timeout is over. A suspicion is
// no exclusion: whoever acts on it must live with its being wrong.
//
// Source: the lecture, which has process failures detected by timeouts; completeness
// and accuracy, and timeouts that grow, as in Chandra and Toueg (1996).
package detector

import (
	"flag"
	"fmt"
	"iter"

	"parley"
)

// Beat is a heartbeat. Value: 1 if it is the last one, for its sender rests; else 0.
const Beat parley.Kind = 1

// What is indicated, beside parley.Suspect (Origin: who).
const (
	// Trust takes a suspicion back. Origin: of whom. A layer above may ignore it.
	Trust parley.Kind = parley.Indication + 0x10 + iota
	// Resting is indicated by a process that has sent all the heartbeats it is to
	// send. Origin: itself. Of a crash after that nobody is told.
	Resting
)

// beat is the timer for the next heartbeat.
const beat parley.Timer = 1

// New returns the detector as the lowest layer of a stack, or alone. It panics on a
// configuration that makes no sense.
func New(c Config) parley.Protocol {
	c = c.WithDefaults()
	if err := c.Check(); err != nil {
		panic("detector: " + err.Error())
	}
	return parley.Protocol{
		Name:       "detector",
		Title:      "failure detection by heartbeats and timeouts",
		Paper:      "lecture, failures are detected by timeouts; Chandra and Toueg (1996)",
		Faults:     parley.CrashFaults,
		Kinds:      []string{"", "BEAT"},
		N:          c.N,
		M:          c.N - 1,
		Relies:     parley.Reliance{Delay: c.Delay},
		Properties: properties,
		Promises:   func(a parley.Assumptions) []parley.Promise { return promises(c, a) },
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1, Bits: 1} },
		Explain:    explain,
		New: func(self parley.ID) parley.Machine {
			return &process{c: c, monitor: NewMonitor(c, self)}
		},
		Flags: func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) { return flags(fs, c) },
	}
}

// process is one process.
type process struct {
	parley.Base
	c       Config
	monitor Monitor
	sent    int  // heartbeats
	ticking bool // the timer is set
}

// Start watches all others. Heartbeats of different processes fall into different
// parts of the period.
func (p *process) Start(s *parley.Step) {
	p.monitor.Watch(s.Now, parley.Everyone(s.N))
	p.beat(s)
	p.sleep(s, p.c.Period*parley.Tick(s.Self+1)/parley.Tick(s.N))
}

// Timeout: once a period look at the others, and let them hear me.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	if t != beat {
		return
	}
	p.ticking = false
	for id := range p.monitor.Check(s.Now).All() {
		s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id})
	}
	p.beat(s)
	p.sleep(s, p.c.Period)
}

// beat sends a heartbeat, if there is one left.
func (p *process) beat(s *parley.Step) {
	if p.rests() {
		return
	}
	m := parley.Msg{Kind: Beat}
	if p.sent++; p.rests() {
		s.Indicate(parley.Msg{Kind: Resting, Origin: s.Self})
		m.Value = 1
	}
	s.SendAll(m)
}

func (p *process) rests() bool { return p.c.Beats > 0 && p.sent >= p.c.Beats }

// sleep sets the timer, unless there is nothing left to say and nobody left to
// suspect.
func (p *process) sleep(s *parley.Step, period parley.Tick) {
	if p.rests() && p.monitor.Watched().Minus(p.monitor.Suspected()) == (parley.Set{}) {
		return
	}
	p.ticking = true
	s.SetTimer(beat, period)
}

// Receive: a heartbeat is a sign of life. Whoever sends its last one is alive and
// is watched no more.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local {
		return
	}
	if m.Kind != Beat || m.Origin != 0 || m.Seq != 0 || m.Value > 1 || len(m.Body) > 0 {
		s.Refuse(from, "no heartbeat")
		return
	}
	trusted := p.monitor.Heard(s.Now, from)
	if m.Value == 1 {
		trusted = trusted || p.monitor.Suspected().Has(from)
		p.monitor.Watch(s.Now, p.monitor.Watched().Minus(parley.SetOf(from)))
	}
	if !trusted {
		return
	}
	s.Indicate(parley.Msg{Kind: Trust, Origin: from})
	if !p.ticking {
		p.sleep(s, p.c.Period)
	}
}

func (p *process) State(v *parley.Vars) {
	v.Machine("monitor", &p.monitor)
	parley.Num(v, "sent", &p.sent)
	v.Bool("ticking", &p.ticking)
}

func explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case m.Kind == Beat && m.Value == 1:
			yield(fmt.Sprintf("%s is alive, and rests", name(e.From)))
		case m.Kind == Beat:
			yield(name(e.From) + " is alive")
		}
	}
}
