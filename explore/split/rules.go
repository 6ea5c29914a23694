package split

import (
	"fmt"
	"slices"

	"parley"
	"parley/trace"
)

// forcedDecisions is what properties demand in the runs of a root.
type forcedDecisions struct {
	forced [most]Forced // by process; zero where no property forces a decision
	// delivered is what each process delivers in one of the runs: a decision, whose value is replaced by
	// the one in question.
	delivered [most][]parley.ExternalEvent
}

// findForced finds the decisions that the properties force on processes.
func (f *pairSearch) findForced() error {
	proposed := []string{"neither"} // no process proposes the first one
	for _, r := range f.o.Roots {
		for _, q := range r.Requests {
			if v := string(q.Msg.Body); q.Msg.Kind == parley.Propose && !slices.Contains(proposed[1:], v) {
				proposed = append(proposed, v)
				proposed[0] += v
			}
		}
	}
	f.rules = make([]forcedDecisions, len(f.roots))
	for _, s := range f.views {
		r := &f.rules[s.at.root]
		if r.delivered[s.ends[0].of] != nil {
			continue
		}
		for i := range s.ends {
			if e := &s.ends[i]; !f.delivers(r, s, e) {
				return fmt.Errorf("process %d does not decide once in %s", e.of, f.p.Name)
			}
		}
		for i := range s.ends {
			d := f.forcedTo(s.at.root, s.ends[i].of, proposed)
			r.forced[s.ends[i].of] = d
			if v := string(d.Value); d.By != "" && !slices.Contains(f.values, v) {
				f.values = append(f.values, v)
			}
		}
	}
	slices.Sort(f.values)
	slices.Reverse(f.values) // 1 before 0, as in the lecture
	switch {
	case f.err != nil:
		return f.err
	case len(f.values) == 0:
		return fmt.Errorf("in no run of %s a property says what a single process must decide", f.p.Name)
	case len(f.values) == 1:
		return fmt.Errorf("all that a process must decide in some run is %s: runs are needed that begin otherwise",
			parley.Printable([]byte(f.values[0])))
	}
	return nil
}

// delivers records what a process delivers in one run, and returns whether it decides exactly once.
func (f *pairSearch) delivers(r *forcedDecisions, s *roundViews, e *end) bool {
	m, heard := f.w.machines[s.at.root][e.of], f.w.afterCorrectSends(s.at, e.of)
	_, number := f.w.finishRound(m, e.of, heard, e.seen[0].told, s.at.round)
	decisions := 0
	for _, n := range append(slices.Clone(s.at.past), number) {
		for _, ev := range f.endings[n] {
			if ev.At != e.of {
				continue
			}
			r.delivered[e.of] = append(r.delivered[e.of], ev)
			if ev.Msg.Kind == parley.Decide {
				decisions++
			}
		}
	}
	return decisions == 1
}

// decided is a value that a process is assumed to decide.
type decided struct {
	by    parley.ID
	value string
}

// breaks returns the properties that break in a run of a root if these processes have decided as given, and
// no other process has.
func (f *pairSearch) breaks(root int, all ...decided) (names []string) {
	h := f.roots[root].history(f.p.N)
	for _, d := range all {
		for _, e := range f.rules[root].delivered[d.by] {
			if e.Msg.Kind == parley.Decide {
				e.Msg.Body = []byte(d.value)
			}
			add(h, trace.Deliver, e)
		}
	}
	for _, p := range f.p.Properties {
		if p.Mode == parley.Always && p.Check(h) != nil {
			names = append(names, p.Name)
		}
	}
	return names
}

// forcedTo returns the only value that a process may decide in the runs of a root, if exactly one of values
// is allowed. The first of values is one that no process proposes.
func (f *pairSearch) forcedTo(root int, id parley.ID, values []string) (only Forced) {
	allowed := 0
	for i, v := range values {
		if names := f.breaks(root, decided{id, v}); len(names) > 0 {
			only.By = names[0]
		} else {
			only.Value = []byte(v)
			if allowed++; i == 0 {
				return Forced{}
			}
		}
	}
	if allowed != 1 {
		return Forced{}
	}
	return only
}

// pairConstraint asks whether two processes may decide v and w in one run of a root.
type pairConstraint struct {
	root int
	p, q parley.ID
	v, w string
}

// constraint returns a property that breaks then, and not if only one of the two decides.
func (f *pairSearch) constraint(b pairConstraint) string {
	by, known := f.constraints[b]
	if known {
		return by
	}
	one, other := decided{b.p, b.v}, decided{b.q, b.w}
	alone := append(f.breaks(b.root, one), f.breaks(b.root, other)...)
	for _, name := range f.breaks(b.root, one, other) {
		if !slices.Contains(alone, name) {
			by = name
			break
		}
	}
	f.constraints[b] = by
	return by
}
