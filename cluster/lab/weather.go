package lab

import (
	"math/bits"
	"math/rand/v2"

	"parley"
)

// Weather is what befalls messages on top of what real links do to them: it is decided
// where a message is sent, and what is late waits where it arrives, so that it arrives even
// if its sender crashes meanwhile. The zero value does nothing.
type Weather struct {
	Seed uint64
	// Delay is how long a message takes at least; zero: as long as it takes.
	Delay Delay
	// FIFO keeps what is delayed in the order in which it was sent, and doubles nothing.
	FIFO bool
	// Loss and Twice are the chances, 0 to 1, that a message is lost or arrives twice.
	Loss, Twice float64
	// Graph has a set a process: whom its messages reach; empty: everyone.
	Graph []parley.Set
	// Links are rules for some links and times. The last one that matches decides.
	Links []Link
	// Heal is the tick from which on nothing befalls messages; 0: never.
	Heal parley.Tick
}

// Delay bounds how long messages take, in ticks.
type Delay struct{ Least, Most parley.Tick }

// Link is a rule for what processes of From send to those of To, from Since until before
// Until. Empty sets stand for everyone, and Until 0 for ever.
type Link struct {
	From, To     parley.Set
	Since, Until parley.Tick
	Delay        Delay
	Loss, Twice  float64
}

// rule returns what holds of a message that is sent at a time.
func (w *Weather) rule(from, to parley.ID, now parley.Tick) Link {
	if w.Heal > 0 && now >= w.Heal {
		return Link{Delay: w.Delay}
	}
	for i := len(w.Links) - 1; i >= 0; i-- {
		l := w.Links[i]
		if now >= l.Since && (l.Until == 0 || now < l.Until) &&
			(l.From == parley.Set{} || l.From.Has(from)) && (l.To == parley.Set{} || l.To.Has(to)) {
			if l.Delay == (Delay{}) {
				l.Delay = w.Delay
			}
			return l
		}
	}
	return Link{Delay: w.Delay, Loss: w.Loss, Twice: w.Twice}
}

// edge tells whether there is a link between two processes.
func (w *Weather) edge(from, to parley.ID) bool { return len(w.Graph) == 0 || w.Graph[from].Has(to) }

// works tells whether a message that is sent at a time may arrive.
func (w *Weather) works(from, to parley.ID, now parley.Tick) bool {
	return w.edge(from, to) && w.rule(from, to, now).Loss < 1
}

// longest is the longest that weather delays a message.
func (w *Weather) longest() parley.Tick {
	most := w.Delay.Most
	for _, l := range w.Links {
		most = max(most, l.Delay.Most)
	}
	return most
}

// sky is the weather at one sender.
type sky struct {
	*Weather
	self   parley.ID
	chance []*rand.Rand  // by receiver: what befalls one link does not depend on others
	last   []parley.Tick // by receiver: when the latest arrives
}

func newSky(w *Weather, self parley.ID, n int) *sky {
	s := &sky{Weather: w, self: self, last: make([]parley.Tick, n)}
	for to := range n {
		s.chance = append(s.chance, rand.New(rand.NewPCG(w.Seed, uint64(self)<<32|uint64(to))))
	}
	return s
}

// befall decides what becomes of a message: when each copy is due, 0 for as soon as it is
// there; none if it is lost, by chance or because its ends are cut off.
func (s *sky) befall(to parley.ID, now parley.Tick) (due []parley.Tick, lost uint64) {
	rule := s.rule(s.self, to, now)
	if !s.works(s.self, to, now) {
		return nil, byCut
	}
	if rule.Loss > 0 && s.chance[to].Float64() < rule.Loss {
		return nil, byChance
	}
	copies := 1
	if rule.Twice > 0 && !s.FIFO && s.chance[to].Float64() < rule.Twice {
		copies = 2
	}
	for range copies {
		due = append(due, s.post(to, rule.Delay, now))
	}
	return due, 0
}

// post draws when one copy is due.
func (s *sky) post(to parley.ID, delay Delay, now parley.Tick) parley.Tick {
	at := parley.Tick(0)
	if delay.Most > 0 {
		at = now + delay.Least + parley.Tick(s.chance[to].Int64N(int64(delay.Most-delay.Least)+1))
		if s.Heal > 0 { // no slow link holds it back for longer than others from then on
			at = min(at, max(now, s.Heal)+s.Delay.Most)
		}
	}
	if s.FIFO && s.last[to] > max(at, now) {
		at = s.last[to]
	}
	s.last[to] = max(s.last[to], at)
	return at
}

// Clock says how wrong the clock of a machine runs: at the true time t it shows
// Offset + t + t*Drift/1,000,000, rounded down.
type Clock struct {
	Offset parley.Tick
	Drift  int64
}

const million = 1_000_000

// shows returns what the clock shows at a true time. Before time 0 it does not drift.
func (c Clock) shows(t parley.Tick) parley.Tick {
	if t > 0 && c.Drift != 0 {
		t, _ = mulDiv(t, million+c.Drift, million)
	}
	return t + c.Offset
}

// when returns the first true time at which the clock shows t or more.
func (c Clock) when(t parley.Tick) parley.Tick {
	if t -= c.Offset; t <= 0 || c.Drift == 0 {
		return t
	}
	q, rest := mulDiv(t, million, million+c.Drift)
	if rest > 0 {
		q++
	}
	return q
}

// mulDiv returns a*b/c, rounded down, and what is left, of numbers that are not negative.
func mulDiv(a parley.Tick, b, c int64) (parley.Tick, uint64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, rest := bits.Div64(hi, lo, uint64(c))
	return parley.Tick(q), rest
}
