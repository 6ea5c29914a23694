package convergence

import (
	"slices"

	"parley"
)

// How a process gets a clock, when clocks are not together yet or the others are already running, and how it
// loses its clock.

// startLog holds the START messages.
type startLog struct {
	old  bool          // old messages count
	by   parley.Set    // processes that have sent START, including this one
	when []parley.Tick // when they last did, by process
}

func (st *startLog) add(id parley.ID, now parley.Tick) {
	st.by.Add(id)
	st.when[id] = now
}

// in returns when processes sent START within the last time ticks, in order.
func (st *startLog) in(now, time parley.Tick) (times []parley.Tick) {
	for id := range st.by.All() {
		if st.old || now-st.when[id] <= time {
			times = append(times, st.when[id])
		}
	}
	slices.Sort(times)
	return times
}

func (st *startLog) state(v *parley.Vars) {
	v.Set("started", &st.by)
	parley.PerProcess(v, "said", st.when, func(id parley.ID, t *parley.Tick) {
		if st.by.Has(id) {
			v.Time("at", t)
		} else {
			*t = 0
		}
	})
}

// Anew is a Request to a process to give up its clock and to join again, because the clock is known to be
// wrong, for example after a jump of the hardware clock. It uses no field.
const Anew parley.Kind = parley.Local + 0x30

// Request makes the process begin, if it has not begun, or give up its clock.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == Anew && p.phase != outside {
		p.leave(s, "asked to join again")
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

// heard handles a START. If all processes are up when the first one begins, each sends START once. Otherwise a
// process repeats it until it has a clock, but not twice within a round trip.
func (p *process) heard(s *parley.Step, from parley.ID) {
	if p.starts.by.Has(from) && (p.Begin == Cold || s.Now-p.starts.when[from] < p.RoundTrip) {
		s.Refuse(from, "second START")
		return
	}
	p.starts.add(from, s.Now)
	// A silent process has its clock from others, which may just have given theirs up.
	if p.phase == outside || p.Begin == Either && (p.phase == joining || p.phase == silent) {
		p.count(s)
	}
}

// count acts on the START messages. Of m+1 processes that have sent START one is correct, so this one sends it
// as well. Of 2m+1 at least m+1 are correct: within one delay all processes receive their START and send it
// themselves, and within another delay all have it from 2m+1. So the clocks begin at most two delays apart.
//
// If START is repeated, old ones do not count, because their senders may have a clock since. A START that
// makes another process begin must make this one send START a delay later, so for sending START messages count
// for long. For beginning they must be recent: within the time in which processes that have just sent START
// need not repeat it. Otherwise two parties, neither of which finds enough clocks near its own, would begin in
// turn forever, each by the other's messages. A process that gives up its clock only after others have begun
// with its message begins when they did, not now: its clock shows 0 at the time of the last START that it
// uses.
func (p *process) count(s *parley.Step) {
	if len(p.starts.in(s.Now, 2*p.Period)) > p.M && !p.spoke(s.Now) {
		p.say(s)
	}
	need := p.needed()
	if times := p.starts.in(s.Now, p.Period/4+p.RoundTrip); len(times) >= need {
		p.enter(s, -times[need-1])
	}
}

// needed returns how many START messages a process needs to begin. If START is repeated, they must also be a
// majority, which only one of two parties has. If fewer sufficed, as 2m+1 do of 2, 3 or 6 processes, each
// party would begin alone, find at its next resynchronization that the others are too far away, and begin
// again, forever.
func (p *process) needed() int {
	if p.Begin == Either {
		return max(2*p.M+1, p.N/2+1)
	}
	return 2*p.M + 1
}

// spoke reports whether this process has sent START and need not send it again yet.
func (p *process) spoke(now parley.Tick) bool {
	return p.starts.by.Has(p.self) && (p.Begin == Cold || now-p.starts.when[p.self] < p.Period/4)
}

// leave gives up the clock.
func (p *process) leave(s *parley.Step, why string) {
	p.corner(s, Leaves, "leaves, "+why+",")
	p.join(s)
}

// join asks for the time.
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

// joinBy sets the clock to the median of at least 2m+1 others', which lies between those of two correct
// processes. If their clocks are being adjusted, the median may move: the process asks again when they have
// settled.
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
