package convergence

import (
	"slices"

	"parley"
)

// How a process comes to have a clock, where clocks are not together yet or the
// others are running already, and how it loses it.

// starts are the START that were said.
type starts struct {
	old  bool          // those of long ago count
	by   parley.Set    // who has said START, this process among them
	when []parley.Tick // when they last did, by process
}

func (st *starts) add(id parley.ID, now parley.Tick) {
	st.by.Add(id)
	st.when[id] = now
}

// in tells when processes have said START, in a time up to now, the first first.
func (st *starts) in(now, time parley.Tick) (times []parley.Tick) {
	for id := range st.by.All() {
		if st.old || now-st.when[id] <= time {
			times = append(times, st.when[id])
		}
	}
	slices.Sort(times)
	return times
}

func (st *starts) state(v *parley.Vars) {
	v.Set("started", &st.by)
	parley.PerProcess(v, "said", st.when, func(id parley.ID, t *parley.Tick) {
		if st.by.Has(id) {
			v.Time("at", t)
		} else {
			*t = 0
		}
	})
}

// Anew asks a process to give up its clock and to join again, because the clock is known to be
// wrong, for instance after the hardware clock has jumped. It is of local kind: only a Request.
// No field is used.
const Anew parley.Kind = parley.Local + 0x30

// Request: the process must begin, if it has not, or give up its clock.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == Anew && p.phase != outside {
		p.leave(s, "told to join anew")
	}
	if m.Kind == parley.Propose && p.Begin == Cold && p.phase == outside && !p.starts.by.Has(p.self) {
		p.say(s)
		p.count(s)
	}
}

func (p *process) say(s *parley.Step) {
	p.starts.add(p.self, s.Now)
	s.SendAll(parley.Msg{Kind: Start})
}

// heard: a process has said START. Where all are up when the first one begins, once is
// enough. Else it says so again until it has a clock, but not twice within a round trip.
func (p *process) heard(s *parley.Step, from parley.ID) {
	if p.starts.by.Has(from) && (p.Begin == Cold || s.Now-p.starts.when[from] < p.RoundTrip) {
		s.Refuse(from, "second START")
		return
	}
	p.starts.add(from, s.Now)
	// A silent process has its clock from others, which may have given theirs up just then.
	if p.phase == outside || p.Begin == Either && (p.phase == joining || p.phase == silent) {
		p.count(s)
	}
}

// count: of m+1 processes that have said START one is correct, so this one says it
// as well. Of 2m+1 at least m+1 are correct: all hear these within a delay, and say
// START themselves, and within another delay all have heard 2m+1. So the clocks
// begin at most two delays apart.
//
// Where START is said again and again, that of long ago does not count, for who said it
// may have a clock since. What makes another one begin must make this one speak a delay
// later: that counts for long. What it begins by must be of the last moments, as far as
// those who have just spoken need not speak again: else two parties, of which neither finds
// enough clocks near its own, begin in turn for ever, each by what the other has said. And who
// gives up its clock only when others have begun with that begins when they did, not now: its
// clock shows 0 for when it heard the last START that it takes.
func (p *process) count(s *parley.Step) {
	if len(p.starts.in(s.Now, 2*p.Period)) > p.M && !p.spoke(s.Now) {
		p.say(s)
	}
	need := p.needed()
	if times := p.starts.in(s.Now, p.Period/4+p.RoundTrip); len(times) >= need {
		p.enter(s, -times[need-1])
	}
}

// needed is how many START a process begins by. Where START is said again and again they are a
// majority, too: of two parties only one has so many. If fewer sufficed, as 2m+1 do of 2, 3 or 6
// processes, each party would begin alone, find at its next resynchronization that the others are
// too far from it, and begin again, for ever.
func (p *process) needed() int {
	if p.Begin == Either {
		return max(2*p.M+1, p.N/2+1)
	}
	return 2*p.M + 1
}

// spoke tells whether this process has said START, so that it need not say so now.
func (p *process) spoke(now parley.Tick) bool {
	return p.starts.by.Has(p.self) && (p.Begin == Cold || now-p.starts.when[p.self] < p.Period/4)
}

// leave: the process has no clock that anybody should rely on.
func (p *process) leave(s *parley.Step, why string) {
	p.corner(s, Leaves, "leaves, "+why+",")
	p.join(s)
}

// join: the process asks for the time.
func (p *process) join(s *parley.Step) {
	p.phase, p.checked, p.sure = joining, false, false
	p.clock.settle()
	if p.tries++; p.Resyncs > 0 && p.tries > p.Resyncs {
		return
	}
	p.ask(s, parley.Tick(p.Readings)*p.RoundTrip)
	if p.Begin == Either && !p.spoke(s.Now) {
		p.say(s)
		p.count(s)
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
	p.clock.base += median(p.differences, p.read)
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
