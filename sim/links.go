package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"

	"parley"
	"parley/trace"
)

// Link is a rule for some links during some time. It speaks of a message by the
// time at which it is sent: what is on its way when a partition begins arrives. Of
// several rules that match a message the last one decides, in everything, and where
// none does the options' own Delay, Loss and Twice hold.
type Link struct {
	// From and To are the ends: messages of any process of From to any of To. The
	// empty set stands for everyone. A partition in one direction names both.
	From, To parley.Set
	// Since is the first tick at which the rule holds, and Until the first at which
	// it does so no more; Until 0 is for ever.
	Since, Until parley.Tick
	// Delay bounds the delays, in ticks; the zero value stands for Options.Delay.
	Delay Delay
	// Loss and Twice are the chances, 0 to 1, that a message is lost or comes
	// twice. With Loss 1 the ends are cut off: such messages count as cut.
	Loss, Twice float64
}

// matches tells whether the rule is about a message sent now.
func (l *Link) matches(from, to parley.ID, now parley.Tick) bool {
	return now >= l.Since && (l.Until == 0 || now < l.Until) &&
		(l.From == parley.Set{} || l.From.Has(from)) && (l.To == parley.Set{} || l.To.Has(to))
}

// checkedLinks returns the rules with what was left out filled in.
func checkedLinks(opt Options) []Link {
	rules := make([]Link, len(opt.Links))
	for i, l := range opt.Links {
		if l.Delay == (Delay{}) {
			l.Delay = opt.Delay
		}
		checkChances("of a link", l.Delay, l.Loss, l.Twice)
		if l.Since < 0 || l.Until < 0 || l.Until > 0 && l.Until <= l.Since {
			panic(fmt.Sprintf("sim: a rule for links from time %d until %d", l.Since, l.Until))
		}
		rules[i] = l
	}
	return rules
}

func checkChances(of string, d Delay, loss, twice float64) {
	if d.Least < 1 || d.Most < d.Least {
		panic(fmt.Sprintf("sim: delays %s are at least one tick, and not from %d to %d", of, d.Least, d.Most))
	}
	if !(loss >= 0 && loss <= 1 && twice >= 0 && twice <= 1) {
		panic(fmt.Sprintf("sim: chances %s are from 0 to 1: loss %v, twice %v", of, loss, twice))
	}
}

// rule returns what holds of a message that is sent now.
func (s *Sim) rule(from, to parley.ID) (rule Link) {
	rule = Link{Delay: s.opt.Delay}
	if s.opt.Heal > 0 && s.now >= s.opt.Heal {
		return rule
	}
	rule.Loss, rule.Twice = s.opt.Loss, s.opt.Twice
	for i := len(s.rules) - 1; i >= 0; i-- {
		if s.rules[i].matches(from, to, s.now) {
			rule = s.rules[i]
			break
		}
	}
	if s.opt.FIFO {
		rule.Twice = 0
	}
	return rule
}

// edge tells whether there is a link between two processes at all.
func (s *Sim) edge(from, to parley.ID) bool {
	return len(s.opt.Graph) == 0 || s.opt.Graph[from].Has(to)
}

// link decides when a message arrives at one receiver, how often, and if.
func (s *Sim) link(from, to parley.ID, ref int32) {
	rule := Link{Delay: s.opt.Delay, Loss: s.opt.Loss, Twice: s.opt.Twice}
	if s.ruled {
		if !s.edge(from, to) {
			s.Stats.NoEdge++
			s.lose(from, to, ref)
			return
		}
		if rule = s.rule(from, to); rule.Loss >= 1 {
			s.Stats.Cut++
			s.lose(from, to, ref)
			return
		}
	}
	if rule.Loss > 0 && s.delays.Float64() < rule.Loss {
		s.Stats.Lost++
		s.lose(from, to, ref)
		return
	}
	again := rule.Twice > 0 && s.delays.Float64() < rule.Twice
	last := &s.last[int(from)*len(s.procs)+int(to)]
	before := *last
	*last = max(before, s.post(from, to, ref, rule.Delay, before))
	if again {
		s.Stats.Doubled++
		*last = max(*last, s.post(from, to, ref, rule.Delay, before))
	}
}

// post has one copy of a message arrive after a delay that it draws, and returns when
// that is. All that was sent before on the link has arrived by the time last.
func (s *Sim) post(from, to parley.ID, ref int32, delay Delay, last parley.Tick) parley.Tick {
	took := delay.Least
	if spread := delay.Most - delay.Least; spread > 0 && !s.procs[from].rushing {
		took += parley.Tick(below(s.delaySource, uint64(spread)+1))
	}
	at := after(s.now, took)
	if s.ruled {
		if heal := s.opt.Heal; heal > 0 { // no slow link holds it back for longer than others from then on
			at = min(at, after(max(s.now, heal), s.opt.Delay.Most))
		}
		if s.opt.FIFO {
			at = max(at, last)
		}
	}
	if at-s.now > s.opt.Promised.Delay {
		s.Stats.Late++
	}
	if at < last {
		s.Stats.Overtaken++
	}
	s.wire.slots[ref].refs++
	s.due.at(at, event{what: arrival, to: to, from: from, ref: ref})
	return at
}

// below draws a number less than n, the one that rand.Rand.Uint64N would: without
// the interface that stands in its way.
func below(source *rand.PCG, n uint64) uint64 {
	x := source.Uint64()
	if n&(n-1) == 0 {
		return x & (n - 1)
	}
	hi, lo := bits.Mul64(x, n)
	if lo < n {
		for least := -n % n; lo < least; {
			hi, lo = bits.Mul64(source.Uint64(), n)
		}
	}
	return hi
}

// lose traces that a message does not arrive.
func (s *Sim) lose(from, to parley.ID, ref int32) {
	w := &s.wire.slots[ref]
	s.trace(trace.Event{Op: trace.Lose, At: to, Peer: from, Cause: w.id, Epoch: w.epoch, Path: w.path, Msg: w.msg})
}
