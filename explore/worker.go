package explore

import (
	"fmt"
	"slices"

	"parley"
	"parley/explore/internal/timer"
)

// worker is one thread of a search.
type worker struct {
	mover
	search     *search
	settled    [1 << 13]verdictKey              // by a hash: the verdicts decided last
	symmetries []symmetry                       // by root
	visit      func(s, next *state, number int) // arriveAt

	here  state
	trail []takenTransition // of a random run
	out   []uint32          // packed states that wait to be visited
	full  [][]uint32        // full blocks of them
	spare [][]uint32        // visited blocks, for reuse

	count   int   // transitions not yet added to the counts of the search
	waiting int64 // and states
}

// beginning is an initial state, and the transitions before it.
type beginning struct {
	state state
	trail []takenTransition
}

// begin returns the initial states of a root: the processes start in order and, in protocols with rounds,
// get their requests.
func (w *worker) begin(number int) []beginning {
	x, r := w.search, w.search.roots[number]
	s := state{root: number}
	none := make([]uint32, x.p.N)
	s.history = x.histories.number(threadsKey(none), func(at *history) { at.threads = none })
	for i := range r.seats {
		seat := &r.seats[i]
		c := processState{root: number, seat: i, machine: parley.Save(x.fresh(r, seat), 0, nil)}
		part := w.processStateID(&c)
		s.parts[seat.ids[0]] = part
		s.sum += x.processStates.at(part).share
	}
	s.wake = timer.Never
	list := []beginning{{state: s}}
	each := func(t transition) {
		var after []beginning
		for i := range list {
			after = w.extendBeginning(after, &list[i], t)
		}
		list = after
	}
	for p := range parley.ID(x.p.N) {
		each(transition{what: OnStart, at: p, in: begin | input(p), elem: -1, cost: -1})
	}
	for p := range parley.ID(x.p.N) {
		if !x.requestsAnytime {
			for range r.requests[p] {
				each(transition{what: OnRequest, at: p, in: ask | input(p), elem: -1, cost: -1})
			}
		}
	}
	return list
}

// extendBeginning appends the states after one more transition of b, in which the process may crash.
func (w *worker) extendBeginning(list []beginning, b *beginning, t transition) []beginning {
	x := w.search
	slot := x.slot(&b.state, t.at)
	before := b.state.parts[slot]
	if x.processStates.at(before).down {
		return append(list, *b)
	}
	add := func(t transition, o *outcome) {
		next := beginning{trail: append(slices.Clip(b.trail), takenTransition{t, o, before})}
		b.state.copyTo(&next.state)
		w.apply(&next.state, slot, o)
		x.spend(&next.state, &t)
		list = append(list, next)
	}
	outcomes := w.outcomes(clauseInput{before, t.in, 0})
	for k := range outcomes {
		if outcomes[k].panics == "" {
			add(t, &outcomes[k])
			continue
		}
		w.trail = b.trail
		w.recordPanic(&b.state, t, &outcomes[k])
		w.trail = nil
	}
	if !x.mayCrash(&b.state, t.at) {
		return list
	}
	t.in |= amid
	cut := w.outcomes(clauseInput{before, t.in, 0})
	for k := range cut {
		// A crash is redundant if it loses only what is in the process: the process might as well crash
		// later.
		later := cut[k].panics != "" || slices.ContainsFunc(outcomes, func(o outcome) bool {
			fallen := x.afterCrash(x.processStates.at(o.next))
			return o.panics == "" && w.processStateID(&fallen) == cut[k].next && o.observations == cut[k].observations &&
				slices.Equal(o.sends, cut[k].sends)
		})
		if !later {
			add(t, &cut[k])
		}
	}
	return list
}

// moves takes all transitions of a state, of the step size of the search.
func (w *worker) moves(s *state, asleep uint64, arrive func(s, next *state, number int)) (due bool) {
	if w.search.o.Step == Rounds {
		w.finish = arrive
		return w.round(s)
	}
	w.arrive = arrive
	return w.successors(s, asleep, s.again)
}

// expand takes the transitions of one state.
func (w *worker) expand(s *state) {
	x := w.search
	defer x.recoverTooLarge()
	w.waiting--
	if x.counted() {
		s.runs = x.visited.reached(s.id)
	}
	if !w.moves(s, x.visited.expand(s.id), w.visit) {
		x.ends.Add(1)
		if x.counted() {
			x.addRuns(s.runs)
		}
		w.check(s, s.id, true)
	}
}

// arriveAt records a state that a transition leads to.
func (w *worker) arriveAt(s, next *state, number int) {
	x := w.search
	w.moved()
	sleep := uint64(0)
	if s.id != 0 && x.o.Step == Messages {
		sleep = w.asleep(s, next)
	}
	id, isNew, awake := x.visited.add(w.symmetries[next.root].print(next), s.id, number, sleep)
	if x.counted() {
		x.visited.reach(id, s.runs)
	}
	next.id, next.again = id, awake
	switch {
	case isNew:
		if x.states.Add(1) == x.o.States {
			x.End("states")
		}
		w.check(next, id, false)
	case awake == 0:
		return
	}
	w.waiting++
	w.keep(next)
}

// blockWords is the approximate length of a block of packed states, which a worker takes at a time.
const blockWords = 1 << 15

// keep adds a state to be visited to the current block.
func (w *worker) keep(s *state) {
	if last := len(w.spare) - 1; w.out == nil && last >= 0 {
		w.out, w.spare = w.spare[last][:0], w.spare[:last]
	} else if w.out == nil {
		w.out = make([]uint32, 0, blockWords+1024)
	}
	w.out = s.pack(w.out, w.search.p.N)
	if len(w.out) >= blockWords {
		w.full, w.out = append(w.full, w.out), nil
	}
}

// flush appends the blocks of states found to blocks.
func (w *worker) flush(blocks [][]uint32) [][]uint32 {
	blocks = append(blocks, w.full...)
	if len(w.out) > 0 {
		blocks = append(blocks, w.out)
	}
	w.full, w.out = nil, nil
	return blocks
}

// expandNewest expands the states found last until none is left.
func (w *worker) expandNewest() {
	for !w.search.Over() && (len(w.out) > 0 || len(w.full) > 0) {
		if len(w.out) == 0 {
			last := len(w.full) - 1
			w.out, w.full = w.full[last], w.full[:last]
		}
		at := len(w.out) - int(w.out[len(w.out)-1])
		w.here.unpack(w.out[at:], w.search.p.N)
		w.out = w.out[:at]
		w.expand(&w.here)
	}
}

// check keeps a finding if a state breaks a property or reaches the goal.
func (w *worker) check(s *state, at id, over bool) {
	x := w.search
	q := w.x.verdictKey(s, over)
	if x.o.Goal != nil && x.o.Looks {
		if x.o.Goal(w.view(s, &q)) {
			x.checker.keep([]found{{root: s.root, id: at, trail: slices.Clone(w.trail), key: q}})
		}
		return
	}
	last := &w.settled[int(q.history*31+uint32(q.down))%len(w.settled)]
	if *last == q {
		return
	}
	*last = q
	j := &x.checker
	shard := &j.shards[q.history%uint32(len(j.shards))]
	shard.Lock()
	defer shard.Unlock()
	if shard.known == nil {
		shard.known = make(map[verdictKey]bool)
	}
	if _, known := shard.known[q]; known {
		return
	}
	shard.known[q] = true
	var list []found
	switch {
	case x.o.Goal == nil:
		list = x.checker.broken(&q, x.checker.historyOf(&q))
	case x.o.Goal(w.view(s, &q)):
		list = []found{{}}
	}
	for i := range list {
		list[i].root, list[i].id, list[i].trail, list[i].key = s.root, at, slices.Clone(w.trail), q
	}
	if len(list) > 0 {
		j.keep(list)
	}
}

// view returns a state as a goal sees it.
func (w *worker) view(s *state, q *verdictKey) *View {
	x := w.search
	v := &View{History: x.checker.historyOf(q), Faulty: x.roots[q.root].faulty}
	for p := range parley.ID(x.p.N) {
		if q.down>>p&1 == 1 {
			v.Down.Add(p)
		}
	}
	if x.o.Looks {
		v.Vars = func(p parley.ID) []parley.Variable {
			part := x.processStates.at(s.parts[x.slot(s, p)])
			if part.down || !parley.Load(w.machine(part), 0, part.machine) {
				return nil
			}
			return parley.Show(w.machine(part), 0)
		}
	}
	return v
}

// recordPanic keeps the finding that a machine panics in a transition. A machine that should crash within
// this transition also panics without the crash.
func (w *worker) recordPanic(s *state, t transition, o *outcome) {
	if w.replaying || t.in&amid != 0 {
		return
	}
	q := w.x.verdictKey(s, false)
	if t.cost >= 0 {
		q.had |= 1 << t.cost
	}
	last := []takenTransition{{t, o, s.parts[w.search.slot(s, t.at)]}}
	if w.origin != nil {
		s, last = w.origin, append(slices.Clone(w.steps[:w.level]), last...)
	}
	h := parley.History{Naming: w.search.o.Naming}
	w.search.checker.keep([]found{{
		root: s.root, id: s.id, trail: slices.Clone(w.trail), last: last, property: NoPanic, promised: true,
		why: fmt.Sprintf("%s panics on a %s: %s", h.Name(t.at), t.what, o.panics), key: q,
	}})
}

// moved counts a transition.
func (w *worker) moved() {
	if w.count++; w.count == 1<<10 {
		w.flushCounts()
	}
}

// flushCounts adds the counts of a worker to those of the search.
func (w *worker) flushCounts() {
	w.search.moves.Add(uint64(w.count))
	w.search.waiting.Add(w.waiting)
	w.flushResults()
	w.count, w.waiting = 0, 0
}
