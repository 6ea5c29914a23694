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

// Plan is what happens to the processes of a run apart from lies: what they are asked and when,
// what links lose, delay and double, which processes crash and restart, which clocks are wrong. It
// may leave some of that to be drawn from a seed. Times are ticks of virtual time.
type Plan struct {
	// Tick is how long a tick lasts where times are read that have a unit; 0: a nanosecond.
	Tick        time.Duration
	Delay       sim.Delay
	FIFO        bool
	Loss, Twice float64
	Graph       []parley.Set // neighbours; nil: all are
	Requests    []sim.Request
	Links       []sim.Link
	Crashes     []sim.Crash
	Pauses      []sim.Pause
	Clocks      []sim.Clock
	Suspicions  []sim.Suspicion
	Detect      parley.Tick // how much later crashes are told of, exactly; 0: not at all
	Heal, Until parley.Tick
	Steps       uint64
	Promised    parley.ModelAssumptions // what the protocol may rely on

	Workload Workload
	Random   Random
}

// Workload is how many broadcasts are drawn, from whom, to whom and in what time.
type Workload struct {
	Broadcasts int         // Few, if a scenario does not say
	From       parley.Set  // empty: anybody
	Named      bool        // each to receivers that are drawn too
	Within     parley.Tick // 0: Soon
}

// Random is how many faults of each kind are drawn, of processes and links that
// are drawn too, at times before Within.
type Random struct {
	Crashes    int // for good, in the middle of what the process does
	Restarts   int // crashes of processes that come back with what was durable
	LostDisks  int // of processes that come back without
	Partitions int // of the network in two
	OneWay     int // of what one process sends, or of what it hears
	Slow       int // processes whose links are slow
	Lossy      int // processes whose links lose a third of the messages
	Pauses     int
	Suspicions int         // false ones
	Drift      int         // parts in a million that clocks run wrong, at most
	Within     parley.Tick // 0: Within, the constant
	Last       parley.Tick // how long what passes lasts, at most; 0: Last, the constant
	// Spared do not crash, stand still or suspect, and their links are neither slow nor
	// one-way. A partition has them on one of its sides.
	Spared parley.Set
}

// The times that a scenario leaves out: before which faults come, how long they last,
// and before which broadcasts come.
const (
	Within parley.Tick = 5000
	Last   parley.Tick = 2000
	Soon   parley.Tick = 2000
)

// Few is how many broadcasts there are if nobody says, in a run that one looks at.
const Few = 3

// Draw returns the plan with nothing left to draw.
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

// options returns the run of a drawn plan.
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

// process draws one that is not spared and not among the others, if there is any.
func (d drawer) process(others parley.Set) (id parley.ID, ok bool) {
	all := slices.Collect(parley.Everyone(d.n).Minus(d.r.Spared).Minus(others).All())
	if len(all) == 0 {
		return 0, false
	}
	return all[d.IntN(len(all))], true
}

func (d drawer) time() parley.Tick { return d.upTo(cmp.Or(d.r.Within, Within)) }

func (d drawer) span() parley.Tick { return d.upTo(cmp.Or(d.r.Last, Last)) }

// upTo draws a time from 1 on.
func (d drawer) upTo(most parley.Tick) parley.Tick { return 1 + parley.Tick(d.Int64N(int64(most))) }

// some draws a set of processes, neither empty nor all.
func (d drawer) some() parley.Set {
	order := d.Perm(d.n)
	var s parley.Set
	for _, id := range order[:1+d.IntN(max(d.n-1, 1))] {
		s.Add(parley.ID(id))
	}
	return s
}

// workload draws broadcasts: the samples one after another or, without any, m1, m2 and
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

// crashes draws crashes, no two of one process.
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

// links draws what links do for a time.
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
	// of draws whose rule it is, of what that one sends or, turned, of what it hears.
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
