package explore

import (
	"fmt"
	"maps"
	"math"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	"parley"
)

// coverage counts what machines were given.
type coverage struct {
	kinds   map[parley.Kind]uint64 // messages received
	clauses [8]uint64              // by input
}

func newCoverage() coverage {
	return coverage{kinds: make(map[parley.Kind]uint64)}
}

// Clause is a part of the machines, and how often it ran, each time on another state or
// input.
type Clause struct {
	Name string
	Runs uint64
}

// moved counts a move.
func (w *worker) moved() {
	if w.count++; w.count == 1<<10 {
		w.tell()
	}
}

// tell adds what a worker has counted to the counts of the search.
func (w *worker) tell() {
	w.x.moves.Add(uint64(w.count))
	w.x.waiting.Add(w.waiting)
	w.x.results.Add(w.results)
	w.count, w.waiting, w.results = 0, 0, 0
}

func (x *search) progress() Progress {
	p := Progress{States: x.states.Load(), Moves: x.moves.Load(), Depth: int(x.depth.Load()), Took: time.Since(x.began)}
	p.Frontier, p.Bytes = uint64(max(0, x.waiting.Load())), x.visited.bytes.Load()
	p.Outcomes = x.results.Load()
	return p
}

// watch calls Options.Progress after half a second and then once a second, and looks after
// the memory, until the function that it returns is called.
func (x *search) watch() func() {
	if x.o.Progress == nil && x.o.Memory == 0 {
		return func() {}
	}
	tick, done := time.NewTicker(time.Second/8), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for k := 1; ; k++ {
			select {
			case <-tick.C:
				if x.o.Memory > 0 && taken() > x.o.Memory {
					x.end("memory")
				}
				if k%8 == 4 && x.o.Progress != nil {
					x.o.Progress(x.progress())
				}
			case <-done:
				return
			}
		}
	})
	return func() { tick.Stop(); close(done); all.Wait() }
}

// taken is how many bytes the program has taken from the system.
func taken() uint64 {
	list := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(list)
	return list[0].Value.Uint64() - list[1].Value.Uint64()
}

func (x *search) report() Report {
	for _, w := range x.workers {
		w.tell()
	}
	r := Report{Progress: x.progress(), Ends: x.ends.Load(), Runs: x.runs.Load()}
	r.Clauses = x.clauses()
	r.Overlooked = math.Pow(float64(r.States), 2) / math.Pow(2, 65)
	again := x.worker()
	again.again = true
	for i := range x.judge.findings {
		f := &x.judge.findings[i]
		g := Finding{Property: f.property, Why: f.why, Promised: f.promised, Run: again.runTo(f), Over: f.question.over}
		if f.question.past != 0 {
			g.Assumptions = x.assumptions(&f.question, x.seenBy(&f.question))
		}
		r.Findings = append(r.Findings, g)
	}
	// order: they are sorted
	r.Seen, r.Judged = slices.Sorted(maps.Keys(x.judge.seen)), x.judge.judged
	switch limit := x.limit.Load(); {
	case x.ctx.Err() != nil:
		r.Outcome, r.Limit = Interrupted, interrupt
	case limit != nil:
		r.Outcome, r.Limit = BudgetHit, *limit
	}
	if len(r.Findings) > 0 {
		r.Outcome = Found
	}
	return r
}

// clauses returns what the machines were given, and the kinds of messages that they
// never were.
func (x *search) clauses() []Clause {
	sum := newCoverage()
	for _, w := range x.workers {
		for i, n := range w.coverage.clauses {
			sum.clauses[i] += n
		}
		// order: they are added up
		for kind, n := range w.coverage.kinds {
			sum.kinds[kind] += n
		}
	}
	out := []Clause{{"start", sum.clauses[begin>>28]}, {"request", sum.clauses[ask>>28]}}
	for kind := 1; kind < max(len(x.p.Kinds), 2); kind++ {
		if kind < len(x.p.Kinds) && x.p.Kinds[kind] == "" { // no message has this kind
			continue
		}
		name := "receive"
		if kind < len(x.p.Kinds) {
			name += " " + x.p.Kinds[kind]
		}
		out = append(out, Clause{name, sum.kinds[parley.Kind(kind)]})
		delete(sum.kinds, parley.Kind(kind))
	}
	for _, kind := range slices.Sorted(maps.Keys(sum.kinds)) {
		out = append(out, Clause{fmt.Sprintf("receive kind %d", kind), sum.kinds[kind]})
	}
	return append(out, Clause{"timeout", sum.clauses[expire>>28]}, Clause{"told of a suspicion", sum.clauses[suspect>>28]},
		Clause{"restart", sum.clauses[restart>>28]})
}
