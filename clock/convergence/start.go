package convergence

import "parley"

// How a process comes to have a clock, where clocks are not together yet or the
// others are running already, and how it loses it.

// Request: the process is to begin, if it has not.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.Begin == Cold && p.phase == outside && !p.started.Has(p.self) {
		p.say(s)
		p.count(s)
	}
}

func (p *process) say(s *parley.Step) {
	p.started.Add(p.self)
	s.SendAll(parley.Msg{Kind: Start})
}

// count: of m+1 processes that have said START one is correct, so this one says it
// as well. Of 2m+1 at least m+1 are correct: all hear these within a delay, and say
// START themselves, and within another delay all have heard 2m+1. So the clocks
// begin at most two delays apart.
func (p *process) count(s *parley.Step) {
	if p.started.Len() > p.M && !p.started.Has(p.self) {
		p.say(s)
	}
	if p.started.Len() > 2*p.M {
		p.enter(s, -s.Now)
	}
}

// leave: the process has no clock that anybody should rely on.
func (p *process) leave(s *parley.Step, why string) {
	p.corner(s, Leaves, "leaves, "+why+",")
	p.join(s)
}

// join: the process asks for the time.
func (p *process) join(s *parley.Step) {
	p.phase = joining
	p.clock.settle()
	if p.tries++; p.Resyncs == 0 || p.tries <= p.Resyncs {
		p.ask(s, p.RoundTrip)
	}
}

// joinBy: it sets its clock to the median of at least 2m+1 others', which is
// between those of two correct ones. If they are being adjusted, they may not stay
// there: it asks again when they have settled.
func (p *process) joinBy(s *parley.Step) {
	if p.read.Len() <= 2*p.M {
		s.SetTimer(again, p.Period/2)
		return
	}
	p.clock.base += Median(p.differences, p.read)
	now := p.clock.at(s.Now)
	periods, since := floorDiv(now, p.Period)
	calm := p.settled()
	switch {
	case since < calm:
		s.SetTimer(again, calm-since)
	case since > p.Period-2*p.Threshold:
		s.SetTimer(again, p.Period-since+calm)
	default:
		p.phase, p.next = silent, (periods+1)*p.Period
		p.sleep(s)
	}
}
