package split

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"parley"
	"parley/explore"
	"parley/faulty"
)

// chain is an argument: its runs, and the process to which each run looks like the next.
type chain struct {
	runs []chainRun
	same []parley.ID
	cost int
}

// chainRun is a run: the views before its last round, and the messages of liars in that round, which are
// honest for processes without an entry.
type chainRun struct {
	views *roundViews
	told  map[parley.ID]*lieMessages
	binds string
}

// chainStep is how a view is reached: from another view, in a run that has both.
type chainStep struct {
	known bool
	layer int
	cost  int
	from  uint32 // 0: a value is forced in the run itself
	run   chainRun
}

// shortest returns the shortest and, among these, cheapest chain between runs in which different values are
// forced, nil if there is none.
func (f *pairSearch) shortest() (best *chain) {
	for i, v := range f.values {
		for _, w := range f.values[i+1:] {
			if c := f.between(v, w); best == nil || c != nil && c.before(best) {
				best = c
			}
		}
	}
	return best
}

// before returns whether c is shorter, or as short and cheaper than d.
func (c *chain) before(d *chain) bool {
	return cmp.Or(cmp.Compare(len(c.runs), len(d.runs)), cmp.Compare(c.cost, d.cost)) < 0
}

// forcing returns the cheapest runs in which v is forced, by the view of the process that must decide it. A
// process costs rank times its number.
func (f *pairSearch) forcing(v string, rank int) []chainStep {
	list := make([]chainStep, len(f.of)+1)
	for _, s := range f.views {
		for i := range s.ends {
			e := &s.ends[i]
			if d := f.rules[s.at.root].forced[e.of]; d.By == "" || string(d.Value) != v {
				continue
			}
			for k := range e.seen {
				at, cost := &list[e.seen[k].view], s.cost+e.seen[k].cost+rank*int(e.of)
				if !at.known || cost < at.cost {
					told := map[parley.ID]*lieMessages{e.of: e.seen[k].told}
					*at = chainStep{known: true, cost: cost, run: chainRun{views: s, told: told}}
				}
			}
		}
	}
	return list
}

// between returns the shortest chain from a run in which v is forced to one in which w is. Each layer adds
// the views that others have in the runs of the views reached so far.
func (f *pairSearch) between(v, w string) *chain {
	reached, goal := f.forcing(v, 1), f.forcing(w, 0)
	for layer := 0; ; layer++ {
		if c := f.joined(reached, goal, layer); c != nil {
			return c
		}
		more := false
		for _, s := range f.views {
			if f.Over() {
				return nil
			}
			for i := range s.ends {
				more = f.spread(s, i, reached, layer, v, w) || more
			}
		}
		if !more {
			return nil
		}
	}
}

// spread reaches, from the views of process i of a run that were reached in this layer, all views that
// another process may have in the same run: in the last round the lies to one process do not affect another
// one.
func (f *pairSearch) spread(s *roundViews, i int, reached []chainStep, layer int, v, w string) (more bool) {
	e, best := &s.ends[i], -1
	cost := func(k int) int { return reached[e.seen[k].view].cost + s.cost + e.seen[k].cost }
	for k := range e.seen {
		if at := &reached[e.seen[k].view]; at.known && at.layer == layer && (best < 0 || cost(k) < cost(best)) {
			best = k
		}
	}
	if best < 0 {
		return false
	}
	for j := range s.ends {
		other := &s.ends[j]
		if j == i {
			continue
		}
		binds := f.constraint(pairConstraint{s.at.root, e.of, other.of, v, w})
		if binds == "" {
			continue
		}
		for k := range other.seen {
			at, cost := &reached[other.seen[k].view], cost(best)+other.seen[k].cost
			if at.known && (at.layer <= layer || at.cost <= cost) {
				continue
			}
			told := map[parley.ID]*lieMessages{e.of: e.seen[best].told, other.of: other.seen[k].told}
			*at = chainStep{true, layer + 1, cost, e.seen[best].view, chainRun{s, told, binds}}
			more = true
		}
	}
	return more
}

// joined returns the cheapest chain that ends in a layer.
func (f *pairSearch) joined(reached, goal []chainStep, layer int) *chain {
	end := uint32(0)
	cost := func(view uint32) int { return reached[view].cost + goal[view].cost }
	for view := range uint32(len(reached)) {
		at := &reached[view]
		if at.known && at.layer == layer && goal[view].known && (end == 0 || cost(view) < cost(end)) {
			end = view
		}
	}
	if end == 0 {
		return nil
	}
	c := &chain{runs: []chainRun{goal[end].run}, cost: cost(end)}
	for view := end; view != 0; view = reached[view].from {
		c.runs = append(c.runs, reached[view].run)
		c.same = append(c.same, f.of[view-1])
	}
	slices.Reverse(c.runs)
	slices.Reverse(c.same)
	return c
}

// pairs makes the runs of a chain, and returns them in pairs.
func (f *pairSearch) pairs(ctx context.Context, c *chain) (out []Pair) {
	before := f.makeCase(ctx, &c.runs[0])
	for i := range c.same {
		next := f.makeCase(ctx, &c.runs[i+1])
		out = append(out, Pair{c.same[i], before, next})
		before = next
	}
	return out
}

// makeCase makes one run.
func (f *pairSearch) makeCase(ctx context.Context, run *chainRun) *Case {
	s := run.views
	at := breach{at: s.at}
	for _, e := range s.ends {
		if at.told[e.of] = run.told[e.of]; at.told[e.of] == nil {
			at.told[e.of] = e.seen[0].told
		}
	}
	c := &Case{
		Liars: f.replayRoot(&at), Faulty: f.roots[s.at.root].faulty, Binds: run.binds,
		Forced: make(map[parley.ID]Forced),
	}
	f.listLies(c, s.at, &at.told)
	r, err := explore.Search(context.WithoutCancel(ctx), explore.Options{
		Protocol: f.p, Roots: []explore.Root{c.Liars}, Step: explore.Rounds, Workers: 1,
		Goal: func(v *explore.View) bool { c.History = v.History; return v.History.Over },
	})
	if err != nil || len(r.Findings) != 1 {
		panic(fmt.Sprintf("split: a run is there where the last round is split, and not where it is whole: %v", err))
	}
	c.Run = r.Findings[0].Run
	c.Run.Root = s.at.root
	for _, e := range s.ends {
		if d := f.rules[s.at.root].forced[e.of]; d.By != "" {
			c.Forced[e.of] = d
		}
	}
	return c
}

// listLies appends the lies of a run, round by round.
func (f *pairSearch) listLies(c *Case, s *roundState, told *[most]*lieMessages) {
	if s.from != nil {
		f.listLies(c, s.from, &s.told)
	}
	truth := f.honestMessages(s)
	for by := range c.Faulty.All() {
		for to := range f.roots[s.root].correct(f.p.N) {
			said, honest := told[to].from(by), (&lieMessages{messages: addressed(truth, to)}).from(by)
			if !slices.EqualFunc(said, honest, func(a, b parley.Outgoing) bool {
				return bytes.Equal(parley.AppendMsg(nil, a.Path, a.Msg), parley.AppendMsg(nil, b.Path, b.Msg))
			}) {
				c.Lies = append(c.Lies, Lie{s.round, by, to, said, honest})
			}
		}
	}
}

// honestMessages returns what liars would send in a round if they were honest.
func (f *pairSearch) honestMessages(s *roundState) []message {
	if s.liars == 0 {
		return nil
	}
	r, how := f.roots[s.root], make(map[parley.ID]faulty.Behavior)
	for id := range r.faulty.All() {
		how[id] = faulty.Behavior{Twin: r.Faulty[id].Twin} // each of its two copies is honest
	}
	c, p := faulty.New(f.p, f.wait, how), &f.processes[s.liars]
	load(c, p.machine)
	timers := slices.Clone(p.timers)
	return f.w.wakeLiars(r, c, f.clock[s.round]+f.wait, &timers)
}

// from returns the messages of one liar.
func (s *lieMessages) from(by parley.ID) (list []parley.Outgoing) {
	for i := range s.messages {
		if q := &s.messages[i]; q.from == by {
			list = append(list, parley.Outgoing{Path: q.path, Epoch: q.epoch, Msg: q.msg})
		}
	}
	return list
}
