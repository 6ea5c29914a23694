package sim

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/trace"
)

// Link is a rule for some links during some time. The time at which a message is sent determines whether a
// rule applies. So a message that is in flight when a partition begins still arrives. If several rules match
// a message, only the last one applies. If none matches, Delay, Loss and Twice of Options apply.
type Link struct {
	// From and To are the ends: the rule applies to messages from any process in From to any process in To.
	// The empty set means every process. To cut a network into two parts in one direction only, set both.
	From, To parley.Set
	// Since is the first tick at which the rule applies. Until is the first tick at which the rule no longer
	// applies; 0 means that it applies forever.
	Since, Until parley.Tick
	// Delay bounds the delays, in ticks. The zero value means Options.Delay.
	Delay Delay
	// Loss and Twice are the probabilities, 0 to 1, that a message is lost or arrives twice. With Loss 1 the
	// ends are disconnected, and the lost messages count as cut.
	Loss, Twice float64
}

// matches reports whether the rule applies to a message sent now.
func (l *Link) matches(from, to parley.ID, now parley.Tick) bool {
	return now >= l.Since && (l.Until == 0 || now < l.Until) &&
		(l.From == parley.Set{} || l.From.Has(from)) && (l.To == parley.Set{} || l.To.Has(to))
}

// Weather holds the faults of links, as in the fields of [Options] with the same names. Package
// cluster/harness applies it to real processes.
type Weather struct {
	Delay       Delay
	FIFO        bool
	Loss, Twice float64
	Graph       []parley.Set
	Links       []Link
	Heal        parley.Tick
}

// Weather returns the faults of links of the options.
func (o *Options) Weather() Weather {
	return Weather{o.Delay, o.FIFO, o.Loss, o.Twice, o.Graph, o.Links, o.Heal}
}

// Rule returns the rule for a message sent at the time now.
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

// Edge reports whether the graph has a link between two processes.
func (w *Weather) Edge(from, to parley.ID) bool { return len(w.Graph) == 0 || w.Graph[from].Has(to) }

// Works reports whether a message sent at the time now can arrive.
func (w *Weather) Works(from, to parley.ID, now parley.Tick) bool {
	return w.Edge(from, to) && w.Rule(from, to, now).Loss < 1
}

// checkLinks panics if a rule for links is invalid.
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

// network decides what happens to messages.
type network struct {
	opt     *Options // of the run
	weather Weather
	ruled   bool          // links differ
	n       int           // number of processes
	last    []parley.Tick // by link: the latest arrival, for FIFO

	delays *rand.Rand
	source *rand.PCG
}

// reset prepares another run.
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

// latest returns the latest arrival on a link.
func (w *network) latest(from, to parley.ID) *parley.Tick { return &w.last[int(from)*w.n+int(to)] }

// arrival draws when a message sent now arrives. By the time last all earlier messages on the link have
// arrived.
func (w *network) arrival(now parley.Tick, delay Delay, rushing bool, last parley.Tick) parley.Tick {
	took := delay.Least
	if spread := delay.Most - delay.Least; spread > 0 && !rushing {
		took += parley.Tick(below(w.source, uint64(spread)+1))
	}
	at := after(now, took)
	if w.ruled {
		if heal := w.opt.Heal; heal > 0 { // from then on no slow link delays it longer than others
			at = min(at, after(max(now, heal), w.opt.Delay.Most))
		}
		if w.opt.FIFO {
			at = max(at, last)
		}
	}
	return at
}

// below draws the same number less than n as rand.Rand.Uint64N, but faster, without the interface.
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

// Joined returns the size of the largest part of a set of processes. The processes of a part can reach each other,
// both ways and only through processes of the set, with messages sent from the time now on.
func (o *Options) Joined(up parley.Set, now parley.Tick) int {
	weather, own := o.Weather(), o.Protocol.Graph
	return trace.Joined(up, func(from, to parley.ID) bool {
		return weather.Works(from, to, now) && (len(own) == 0 || own[from].Has(to))
	})
}

// detect schedules the detector's notice to one process that another one has crashed, if there is a detector.
func (w *network) detect(due *schedule, now parley.Tick, at, of parley.ID) {
	if w.opt.Detect > 0 && at != of {
		when := max(after(now, w.opt.Detect), after(*w.latest(of, at), 1))
		due.at(when, event{what: detected, to: at, from: of})
	}
}
