package dated

import (
	"fmt"

	"parley"
	"parley/clock/convergence"
)

// given is a clock that needs no synchronization: all of them show the true time from the start, and none
// drifts. It delivers the corners of the clocks of package convergence, but sends nothing. So what a search
// finds concerns the date alone.
//
// A process that restarts, or gives up its clock, counts again in the middle of the next period, as after a
// resynchronization. It never begins again together with others: that takes START messages and time, and the
// states of a search have neither.
type given struct {
	parley.Base
	plan *convergence.Plan
	self parley.ID
	in   bool
}

// givenTimer is the only timer of given.
const givenTimer parley.Timer = 1

// now returns what a clock shows at a hardware time, and whether it counts.
func now(clock parley.Machine, hardware parley.Tick) (logical parley.Tick, in bool) {
	if g, ok := clock.(*given); ok {
		return hardware, g.in
	}
	return convergence.Now(clock, hardware)
}

func (g *given) Start(s *parley.Step) {
	if s.Restart {
		g.wait(s, g.plan.Period/2)
		return
	}
	g.enter(s)
}

// Request gives up the clock.
func (g *given) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == convergence.Anew && g.in {
		g.corner(s, convergence.Leaves, "leaves")
		g.in = false
		g.wait(s, g.plan.Period/2)
	}
}

func (g *given) Timeout(s *parley.Step, _ parley.Timer) {
	if !g.in {
		g.enter(s)
		return
	}
	g.wait(s, 0)
	g.corner(s, convergence.Reads, "reads")
}

func (g *given) enter(s *parley.Step) {
	g.in = true
	g.corner(s, convergence.Enters, "is in")
	g.wait(s, 0)
}

// wait sets the timer to a time into the next period; 0 is the time of a resynchronization.
func (g *given) wait(s *parley.Step, into parley.Tick) {
	if next := s.Now/g.plan.Period + 1; g.plan.Resyncs == 0 || next <= parley.Tick(g.plan.Resyncs) {
		s.SetTimer(givenTimer, next*g.plan.Period+into-s.Now)
	}
}

func (g *given) corner(s *parley.Step, kind parley.Kind, words string) {
	s.Deliver(g.self, parley.Msg{
		Kind: kind, Origin: g.self, Seq: uint64(s.Now), Value: uint64(s.Now),
		Body: fmt.Appendf(nil, "%s at %d", words, s.Now),
	})
}

func (g *given) State(v *parley.Vars) { v.Bool("in", &g.in) }
