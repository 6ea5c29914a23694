// Package detector implements a failure detector. If a process is silent, the detector suspects it: it guesses that
// the process has crashed.
//
// The problem: processes crash, and the others must learn which processes have crashed. Once in a period, every
// process sends a heartbeat to all others. A process suspects another process that has been silent for longer than a
// timeout.
//
// The bound: every correct process eventually suspects every crashed process, even if any number of processes crash
// (completeness). If delays are bounded, no heartbeat is lost, and the timeout is long enough, no other process is
// suspected (accuracy). The condition for the timeout is:
//
//	timeout >= period + 2 lateness + delay
//
// Under these conditions, a process suspects another process only after the last message of that process has arrived.
// Without these conditions a suspicion may be wrong. The detector corrects a wrong suspicion: consecutive heartbeats
// clear the suspicion, and the timeout for that process grows. If delays are bounded by less than the largest
// timeout, the detector is wrong about a process only a few times (eventual accuracy).
//
// Why it works: a crashed process sends no heartbeat, so its silence exceeds any timeout. A live process sends one
// heartbeat in each period, so the time between two arrivals is at most a period plus the delay.
//
// A process must not suspect others because it was itself paused. If its own timer fires late, it was paused, and may
// have unread heartbeats. So it suspects no process until it has listened for another whole timeout. A single
// heartbeat does not clear a suspicion. Otherwise, if the heartbeats of a process arrive just before the timeout or
// just after it, the process would be suspected and cleared again and again.
//
// A host may detect that a link is broken. It reports this to the detector at once ([Broke]), without waiting for the
// timeout. Heartbeats report broken links to the other processes. If more than half of all processes report that
// their link with a process is broken, the process is suspected at once. A single broken link, or a link that is
// mended within the grace period, causes no suspicion. In the pseudocode, b[p] is the set of processes to which p
// reports a broken link:
//
//	upon broken(q) for Grace, or mended(q):  send BEAT(broken) to all
//	upon BEAT(b) from p:                     b[p] := b
//	upon q in b[p] for more than n/2 p that are not suspected:  suspect q
//
// Two processes need not suspect the same processes, or suspect them at the same time. If a process crashes and
// restarts before its timeout expires, the others may not detect the crash. A suspicion does not exclude a process. A
// layer that acts on suspicions must tolerate wrong suspicions.
//
// Source: the detection of process failures by timeouts is from the lecture (docs/explanation/sources.md).
// Completeness and accuracy, and timeouts that grow, are from Chandra and Toueg (1996).
//
// # Decisions
//
// A process is suspected when a majority has lost its connections to the process, before any timeout. Motive: after a
// process was killed, the others wait some milliseconds instead of a second. Machines make this decision, so
// simulations and explorations cover it. Cost: a node that loses its connections to a majority for longer than 4 ms
// is excluded although it is alive, and must rejoin. If a link breaks while it carries messages, the view changes
// even if all members stay.
package detector

import (
	"fmt"
	"iter"

	"parley"
)

// Beat is a heartbeat. Value: 1 if it is the last heartbeat before its sender rests, otherwise 0. Body: the processes
// to which the sender's links are broken (see [Monitor.Word]), or empty if there are none.
const Beat parley.Kind = 1

// The indications, in addition to parley.Suspect (Origin: the suspected process).
const (
	// Trust revokes a suspicion. Origin: the process. A layer above may ignore it.
	Trust parley.Kind = parley.Indication + 0x10 + iota
	// Resting reports that the process has sent all its heartbeats. Origin: the process itself. A later crash
	// is not indicated.
	Resting
)

// Requests to a detector: the host reports the state of the process's own links. They are local kinds.
const (
	// Broke reports that the link with Origin is broken, and Mended that it works again.
	Broke parley.Kind = parley.Local + 0x28 + iota
	Mended
)

// The timers: for the next heartbeat, and for links that have been broken for Grace.
const (
	beat parley.Timer = 1 + iota
	grace
)

// New returns the detector as the lowest layer of a stack, or alone. It panics if c does not pass Check.
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
		Relies:     parley.ModelAssumptions{Delay: c.Delay},
		Properties: properties,
		Promises:   func(a parley.RunConditions) []parley.Promise { return promises(c, a) },
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1, Bits: 1} },
		Explain:    explain,
		New: func(self parley.ID) parley.Machine {
			return &process{c: c, monitor: NewMonitor(c, self)}
		},
		Flags: parley.Flags(c, flags, New),
	}
}

type process struct {
	parley.Base
	c       Config
	monitor Monitor
	sent    int  // heartbeats
	ticking bool // the heartbeat timer is set
}

// Start watches all others. Processes send their heartbeats at different times within the period.
func (p *process) Start(s *parley.Step) {
	p.monitor.Watch(s.Now, parley.Everyone(s.N))
	p.beat(s)
	p.sleep(s, p.c.Period*parley.Tick(s.Self+1)/parley.Tick(s.N))
}

// Request handles a broken or mended link.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch m.Kind {
	case Broke:
		p.monitor.Broke(s.Now, m.Origin)
		s.SetTimer(grace, p.c.Grace)
	case Mended:
		p.monitor.Mended(m.Origin)
		p.links(s)
	}
}

// Timeout checks the others once a period, and sends a heartbeat.
func (p *process) Timeout(s *parley.Step, t parley.Timer) {
	switch t {
	case beat:
		p.ticking = false
		p.suspect(s, p.monitor.Check(s.Now))
		p.monitor.Links(s.Now)
		p.suspect(s, p.monitor.Cut())
		p.beat(s)
		p.sleep(s, p.c.Period)
	case grace:
		p.links(s)
	}
}

// links reports to the others at once which links are broken, if that has changed.
func (p *process) links(s *parley.Step) {
	if p.monitor.Links(s.Now) {
		p.beat(s)
		p.suspect(s, p.monitor.Cut())
	}
}

func (p *process) suspect(s *parley.Step, who parley.Set) {
	for id := range who.All() {
		s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id})
	}
}

// beat sends a heartbeat, unless the process rests.
func (p *process) beat(s *parley.Step) {
	if p.rests() {
		return
	}
	m := parley.Msg{Kind: Beat, Body: p.monitor.Word()}
	if p.sent++; p.rests() {
		s.Indicate(parley.Msg{Kind: Resting, Origin: s.Self})
		m.Value = 1
	}
	s.SendAll(m)
}

func (p *process) rests() bool { return p.c.Beats > 0 && p.sent >= p.c.Beats }

// sleep sets the timer, unless there is no heartbeat left to send and no process left to suspect.
func (p *process) sleep(s *parley.Step, period parley.Tick) {
	if p.rests() && p.monitor.Watched().Minus(p.monitor.Suspected()) == (parley.Set{}) {
		return
	}
	p.ticking = true
	s.SetTimer(beat, period)
}

// Receive: a heartbeat is a sign of life. A process that sends its last one is alive and no longer watched.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local {
		return
	}
	if m.Kind != Beat || m.Origin != 0 || m.Seq != 0 || m.Value > 1 || !p.monitor.Said(from, m.Body) {
		s.Refuse(from, "no heartbeat")
		return
	}
	defer func() { p.suspect(s, p.monitor.Cut()) }()
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

// explainWord describes which links of a sender are broken.
func explainWord(word []byte, name func(parley.ID) string) (text string) {
	for i, b := range word {
		for id := parley.ID(8 * i); b > 0; id, b = id+1, b>>1 {
			if b&1 == 1 {
				text += ", without its link with " + name(id)
			}
		}
	}
	return text
}

func explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch {
		case m.Kind == Beat && m.Value == 1:
			yield(fmt.Sprintf("%s is alive: its last sign of life", name(e.From)))
		case m.Kind == Beat:
			yield(name(e.From) + " is alive" + explainWord(m.Body, name))
		}
	}
}
