package run

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
	"parley/broadcast/problem"
	"parley/sim"
)

// Plan holds the events of a run except lies: the requests and their times, the faults of links, the crashes
// and restarts of processes, and the wrong clocks. Workload and Random may leave some of the events to be
// drawn from a seed. Times are ticks of virtual time.
type Plan struct {
	// Tick is the length of a tick, for times that have a unit. 0 means a nanosecond.
	Tick        time.Duration
	Delay       sim.Delay
	FIFO        bool
	Loss, Twice float64
	Graph       []parley.Set // neighbors; nil: all processes
	Requests    []sim.Request
	Links       []sim.Link
	Crashes     []sim.Crash
	Pauses      []sim.Pause
	Clocks      []sim.Clock
	Suspicions  []sim.Suspicion
	Detect      parley.Tick // exact delay until crashes are suspected; 0: never
	Heal, Until parley.Tick
	Steps       uint64
	Promised    parley.ModelAssumptions // assumptions that the protocol may rely on

	Workload Workload
	Random   Random
}

// Workload says how many broadcasts are drawn, which senders and receivers they have, and until when they are
// requested.
type Workload struct {
	Broadcasts int         // the constant Few if a scenario omits it
	From       parley.Set  // empty: all processes
	Named      bool        // each broadcast goes to a random set of processes, which includes its sender
	Within     parley.Tick // 0: the constant Soon
}

// Random is the number of drawn faults of each kind. The processes, the links, and the times before Within are also
// drawn.
type Random struct {
	Crashes    int // in the middle of a step; the process does not restart
	Restarts   int // crashes of processes that restart with their durable state
	LostDisks  int // crashes of processes that restart without it
	Partitions int // cuts of the network into two parts
	OneWay     int // one process is cut off, but only in sending or only in receiving
	Slow       int // processes whose links are slow
	Lossy      int // processes whose links lose a third of the messages
	Pauses     int
	Suspicions int         // false suspicions
	Drift      int         // greatest clock drift, in parts per million
	Within     parley.Tick // 0: the constant Within
	Last       parley.Tick // longest duration of a temporary fault; 0: the constant Last
	// Spared processes do not crash, pause or suspect, and their links are neither slow nor one-way. A
	// partition puts them on one of its sides.
	Spared parley.Set
}

// The default times of a plan.
const (
	Within parley.Tick = 5000 // drawn faults begin at this tick at the latest
	Last   parley.Tick = 2000 // the longest duration of a drawn temporary fault
	Soon   parley.Tick = 2000 // drawn broadcasts are requested at this tick at the latest
)

// Few is the default number of broadcasts in a single run. It is small because a person reads the report of
// the run.
const Few = 3

// Draw returns the plan with all open events drawn from the seed.
func (p Plan) Draw(proto parley.Protocol, seed uint64) Plan {
	d := drawer{rand.New(rand.NewPCG(seed, 0x5ce4a710)), proto.N, p.Random}
	p.Requests = append(slices.Clone(p.Requests), d.workload(p.Workload, len(p.Requests), proto.Samples)...)
	p.Workload = Workload{}
	p.Crashes, p.Links, p.Pauses = slices.Clone(p.Crashes), slices.Clone(p.Links), slices.Clone(p.Pauses)
	p.Suspicions, p.Clocks = slices.Clone(p.Suspicions), slices.Clone(p.Clocks)
	d.crashes(&p)
	d.links(&p)
	for range d.r.Pauses {
		if id, ok := d.process(parley.Set{}); ok {
			p.Pauses = append(p.Pauses, sim.Pause{At: id, From: d.time(), For: d.span()})
		}
	}
	for range d.r.Suspicions {
		at, ok := d.process(parley.Set{})
		of, other := d.process(parley.SetOf(at))
		if ok && other {
			p.Suspicions = append(p.Suspicions, sim.Suspicion{At: at, Of: of, When: d.time()})
		}
	}
	if d.r.Drift > 0 {
		for id := range parley.ID(proto.N) {
			drift := int64(d.IntN(2*d.r.Drift+1) - d.r.Drift)
			p.Clocks = append(p.Clocks, sim.Clock{At: id, Drift: drift})
		}
	}
	p.Random = Random{}
	if p.Until == 0 && proto.Span > 0 {
		p.Until = p.last() + proto.Span
	}
	return p
}

// last returns the time of the last event of a drawn plan.
func (p Plan) last() parley.Tick {
	t := p.Heal
	for _, q := range p.Requests {
		t = max(t, q.When)
	}
	for _, l := range p.Links {
		t = max(t, l.Since, l.Until)
	}
	for _, c := range p.Crashes {
		t = max(t, c.When+c.Back)
	}
	for _, v := range p.Pauses {
		t = max(t, v.From+v.For)
	}
	for _, v := range p.Suspicions {
		t = max(t, v.When)
	}
	return t
}

// options returns the simulator's options for a drawn plan.
func (p Plan) options(proto parley.Protocol, seed uint64) sim.Options {
	graph := p.Graph
	for graph != nil && len(graph) < proto.N {
		graph = append(slices.Clip(graph), parley.Set{})
	}
	return sim.Options{
		Protocol: proto, Seed: seed, Delay: p.Delay, FIFO: p.FIFO, Loss: p.Loss, Twice: p.Twice, Graph: graph,
		Requests: p.Requests, Links: p.Links, Crashes: p.Crashes, Pauses: p.Pauses, Clocks: p.Clocks,
		Suspicions: p.Suspicions, Detect: p.Detect, Heal: p.Heal, Until: p.Until, Steps: p.Steps,
		Promised: p.Promised,
	}
}

// drawer draws what a plan leaves open.
type drawer struct {
	*rand.Rand
	n int
	r Random
}

// process draws a process that is neither spared nor in others, if there is one.
func (d drawer) process(others parley.Set) (id parley.ID, ok bool) {
	all := slices.Collect(parley.Everyone(d.n).Minus(d.r.Spared).Minus(others).All())
	if len(all) == 0 {
		return 0, false
	}
	return all[d.IntN(len(all))], true
}

func (d drawer) time() parley.Tick { return d.upTo(cmp.Or(d.r.Within, Within)) }

func (d drawer) span() parley.Tick { return d.upTo(cmp.Or(d.r.Last, Last)) }

// upTo draws a time from 1 to most.
func (d drawer) upTo(most parley.Tick) parley.Tick { return 1 + parley.Tick(d.Int64N(int64(most))) }

// some draws a set of processes, which is not empty, and not everyone if n > 1.
func (d drawer) some() parley.Set {
	order := d.Perm(d.n)
	var s parley.Set
	for _, id := range order[:1+d.IntN(max(d.n-1, 1))] {
		s.Add(parley.ID(id))
	}
	return s
}

// workload draws broadcasts. Their payloads are the samples one after another or, without samples, m1, m2 and
// so on in the order of their times.
func (d drawer) workload(w Workload, asked int, samples []string) []sim.Request {
	from := slices.Collect(w.From.All())
	if len(from) == 0 {
		from = slices.Collect(parley.Everyone(d.n).All())
	}
	out := make([]sim.Request, w.Broadcasts)
	for i := range out {
		out[i].At = from[d.IntN(len(from))]
		out[i].When = d.upTo(cmp.Or(w.Within, Soon))
	}
	slices.SortStableFunc(out, func(a, b sim.Request) int { return cmp.Compare(a.When, b.When) })
	for i := range out {
		body := []byte(fmt.Sprintf("m%d", asked+i+1))
		if len(samples) > 0 {
			body = []byte(samples[i%len(samples)])
		}
		out[i].Msg = parley.Msg{Kind: parley.Carried, Body: body}
		if w.Named {
			to := d.some()
			to.Add(out[i].At)
			out[i].Msg = problem.RequestTo(to, body)
		}
	}
	return out
}

// crashes draws crashes of different processes.
func (d drawer) crashes(p *Plan) {
	order := d.Perm(d.n)
	next := func() (parley.ID, bool) {
		for len(order) > 0 {
			id := parley.ID(order[0])
			order = order[1:]
			if !d.r.Spared.Has(id) {
				return id, true
			}
		}
		return 0, false
	}
	for i := range d.r.Crashes + d.r.Restarts + d.r.LostDisks {
		id, ok := next()
		if !ok {
			return
		}
		c := sim.Crash{At: id, When: d.time(), Effects: d.IntN(d.n + 1)}
		if i >= d.r.Crashes {
			c.Back, c.LostDisk = d.span(), i >= d.r.Crashes+d.r.Restarts
		}
		p.Crashes = append(p.Crashes, c)
	}
}

// links draws temporary faults of links.
func (d drawer) links(p *Plan) {
	window := func(l sim.Link) sim.Link {
		l.Since = d.time()
		l.Until = l.Since + d.span()
		return l
	}
	for range d.r.Partitions {
		side := d.some()
		other := parley.Everyone(d.n).Minus(side)
		l := window(sim.Link{From: side, To: other, Loss: 1})
		p.Links = append(p.Links, l)
		l.From, l.To = other, side
		p.Links = append(p.Links, l)
	}
	// of draws the process to which a rule applies: to the messages that it sends or, if turned is set, also
	// to those that it receives.
	of := func(rule sim.Link, turned bool) {
		id, ok := d.process(parley.Set{})
		if !ok {
			return
		}
		if rule.From = parley.SetOf(id); turned && d.IntN(2) == 0 {
			rule.From, rule.To = rule.To, rule.From
		}
		p.Links = append(p.Links, window(rule))
	}
	for range d.r.OneWay {
		of(sim.Link{Loss: 1}, true)
	}
	for range d.r.Slow {
		most := max(p.Delay.Most, 900)
		of(sim.Link{Delay: sim.Delay{Least: most, Most: 10 * most}}, false)
	}
	for range d.r.Lossy {
		of(sim.Link{Loss: 1.0 / 3}, false)
	}
}
