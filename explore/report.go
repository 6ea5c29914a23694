package explore

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"parley"
	"parley/explore/internal/budget"
)

// coverage counts the inputs of machines.
type coverage struct {
	kinds   map[parley.Kind]uint64 // messages received
	clauses [8]uint64              // by input
}

func newCoverage() coverage {
	return coverage{kinds: make(map[parley.Kind]uint64)}
}

// Clause is one handler of the machines, such as Receive of one kind of message.
type Clause struct {
	Name string
	// Runs is how often the clause ran. Each worker runs it once for each process state, input, and sequence
	// of answers to Choose, and reuses the result.
	Runs uint64
}

func (x *search) progress() Progress {
	p := Progress{States: x.states.Load(), Moves: x.moves.Load(), Depth: int(x.depth.Load()), Took: x.Took()}
	p.Frontier, p.Bytes = uint64(max(0, x.waiting.Load())), x.visited.bytes.Load()
	p.Outcomes = x.results.Load()
	return p
}

// progressFunc returns the function to be called about once a second, or nil.
func (x *search) progressFunc() func() {
	if x.o.Progress == nil {
		return nil
	}
	return func() { x.o.Progress(x.progress()) }
}

func (x *search) report() Report {
	for _, w := range x.workers {
		w.flushCounts()
	}
	r := Report{Progress: x.progress(), Ends: x.ends.Load(), Runs: x.runs.Load()}
	r.Clauses = x.clauses()
	r.Overlooked = math.Pow(float64(r.States), 2) / math.Pow(2, 65)
	again := x.worker()
	again.replaying = true
	for i := range x.checker.findings {
		f := &x.checker.findings[i]
		g := Finding{Property: f.property, Why: f.why, Promised: f.promised, Run: again.runTo(f), Over: f.key.over}
		if f.key.history != 0 {
			g.RunConditions = x.checker.runConditions(&f.key, x.checker.historyOf(&f.key))
		}
		r.Findings = append(r.Findings, g)
	}
	// order: they are sorted
	r.Seen, r.Judged = slices.Sorted(maps.Keys(x.checker.seen)), x.checker.tally.Judged()
	switch limit := x.Limit(); {
	case x.Interrupted():
		r.Outcome, r.Limit = Interrupted, budget.Interrupt
	case limit != "":
		r.Outcome, r.Limit = BudgetHit, limit
	}
	if len(r.Findings) > 0 {
		r.Outcome = Found
	}
	return r
}

// clauses returns how often each clause ran, including the kinds of messages never received.
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
	return append(out, Clause{"timeout", sum.clauses[expire>>28]}, Clause{"suspicion", sum.clauses[suspect>>28]},
		Clause{"restart", sum.clauses[restart>>28]})
}
