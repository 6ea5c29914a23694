package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

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

// Weather is what befalls messages on their links: what the fields of [Options] of the same
// names say. Real processes of package lab have the same weather.
type Weather struct {
	Delay       Delay
	FIFO        bool
	Loss, Twice float64
	Graph       []parley.Set
	Links       []Link
	Heal        parley.Tick
}

// Weather returns what the options say of links.
func (o *Options) Weather() Weather {
	return Weather{o.Delay, o.FIFO, o.Loss, o.Twice, o.Graph, o.Links, o.Heal}
}

// Rule returns what holds of a message that is sent at a time.
func (w *Weather) Rule(from, to parley.ID, now parley.Tick) (rule Link) {
	rule = Link{Delay: w.Delay}
	if w.Heal > 0 && now >= w.Heal {
		return rule
	}
	rule.Loss, rule.Twice = w.Loss, w.Twice
	for i := len(w.Links) - 1; i >= 0; i-- {
		if w.Links[i].matches(from, to, now) {
			rule = w.Links[i]
			break
		}
	}
	if rule.Delay == (Delay{}) {
		rule.Delay = w.Delay
	}
	if w.FIFO {
		rule.Twice = 0
	}
	return rule
}

// Edge tells whether there is a link between two processes at all.
func (w *Weather) Edge(from, to parley.ID) bool { return len(w.Graph) == 0 || w.Graph[from].Has(to) }

// Works tells whether a message that is sent at a time may arrive.
func (w *Weather) Works(from, to parley.ID, now parley.Tick) bool {
	return w.Edge(from, to) && w.Rule(from, to, now).Loss < 1
}

// checkLinks panics if a rule for links is none.
func checkLinks(opt Options) {
	for _, l := range opt.Links {
		if l.Delay == (Delay{}) {
			l.Delay = opt.Delay
		}
		checkChances("of a link", l.Delay, l.Loss, l.Twice)
		if l.Since < 0 || l.Until < 0 || l.Until > 0 && l.Until <= l.Since {
			panic(fmt.Sprintf("sim: a rule for links from time %d until %d", l.Since, l.Until))
		}
	}
}

func checkChances(of string, d Delay, loss, twice float64) {
	if d.Least < 1 || d.Most < d.Least {
		panic(fmt.Sprintf("sim: delays %s are at least one tick, and not from %d to %d", of, d.Least, d.Most))
	}
	if !(loss >= 0 && loss <= 1 && twice >= 0 && twice <= 1) {
		panic(fmt.Sprintf("sim: chances %s are from 0 to 1: loss %v, twice %v", of, loss, twice))
	}
}

// network is what becomes of messages.
type network struct {
	opt     *Options // of the run
	weather Weather
	ruled   bool          // links are not all alike
	n       int           // processes
	last    []parley.Tick // where links keep the order: by link, the latest arrival

	delays *rand.Rand
	source *rand.PCG
}

// reset begins another run.
func (w *network) reset(opt *Options) {
	if w.delays == nil {
		w.source = rand.NewPCG(0, 0)
		w.delays = rand.New(w.source)
	}
	w.source.Seed(opt.Seed, 1)
	checkLinks(*opt)
	w.opt, w.n, w.weather = opt, opt.Protocol.N, opt.Weather()
	w.ruled = opt.FIFO || len(opt.Links) > 0 || len(opt.Graph) > 0 || opt.Heal > 0
	w.last = slices.Grow(w.last[:0], w.n*w.n)[:w.n*w.n]
	clear(w.last)
}

// latest is the latest arrival on a link.
func (w *network) latest(from, to parley.ID) *parley.Tick { return &w.last[int(from)*w.n+int(to)] }

// arrival draws when a message that is sent now arrives. All that was sent before on the link has
// arrived by the time last.
func (w *network) arrival(now parley.Tick, delay Delay, rushing bool, last parley.Tick) parley.Tick {
	took := delay.Least
	if spread := delay.Most - delay.Least; spread > 0 && !rushing {
		took += parley.Tick(below(w.source, uint64(spread)+1))
	}
	at := after(now, took)
	if w.ruled {
		if heal := w.opt.Heal; heal > 0 { // no slow link holds it back for longer than others from then on
			at = min(at, after(max(now, heal), w.opt.Delay.Most))
		}
		if w.opt.FIFO {
			at = max(at, last)
		}
	}
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

// Joined is how many processes of a set, at most, can reach each other by what is sent from a
// time on, both ways and through processes of the set alone.
func (o *Options) Joined(up parley.Set, now parley.Tick) int {
	weather, own := o.Weather(), o.Protocol.Graph
	return trace.Joined(up, func(from, to parley.ID) bool {
		return weather.Works(from, to, now) && (len(own) == 0 || own[from].Has(to))
	})
}

// detect lets the detector tell one process that another one has crashed, when it
// would.
func (w *network) detect(due *schedule, now parley.Tick, at, of parley.ID) {
	if w.opt.Detect > 0 && at != of {
		when := max(after(now, w.opt.Detect), after(*w.latest(of, at), 1))
		due.at(when, event{what: detected, to: at, from: of})
	}
}
