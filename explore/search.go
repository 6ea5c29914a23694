package explore

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/explore/internal/budget"
	"parley/faulty"
	"parley/sim"
)

// search is one search.
type search struct {
	budget.Budget
	o     Options
	p     parley.Protocol
	timed bool // messages arrive in time
	still bool // nothing happens but for messages and timers that are due
	asks  bool // at any time; else all requests come first
	// reliable tells that no message is lost, and none comes twice, and no process crashes.
	reliable bool
	// relative tells that it is always time 0: when time passes, all that is to come moves
	// nearer. Rounds are counted from the beginning, and need no such thing to end.
	relative bool
	delay    parley.Tick // within which they do
	// prompt tells that a machine has set a timer on a message that is due at once, where
	// messages arrive in time.
	prompt atomic.Bool
	limits [budgets]uint8
	signer sim.Signer
	roots  []*root

	components table[component]
	messages   table[message]
	queues     table[queue]
	outs       table[outs]
	pasts      table[past]
	threads    table[thread]
	visited    visited
	judge      judge

	depth   atomic.Int64
	waiting atomic.Int64 // states
	states  atomic.Uint64
	moves   atomic.Uint64
	results atomic.Uint64 // outcomes of steps
	ends    atomic.Uint64
	runs    atomic.Uint64
	failure atomic.Pointer[error]
	workers []*worker
}

// root is how runs begin, with its processes seated.
type root struct {
	faulty   parley.Set
	how      map[parley.ID]faulty.Behaviour
	worst    parley.FaultModel
	seats    []seat
	slot     [most]uint8 // where the component of a process is: the first process of its seat
	requests [most][]parley.Msg
}

// seat is one machine's place.
type seat struct {
	ids     []parley.ID
	members parley.Set
	place   [most]uint8 // of a process among ids
	rushing bool
	liars   bool
}

// worker is one thread of a search.
type worker struct {
	x        *search
	machines [][]parley.Machine // by root and seat
	step     parley.Step
	vars     parley.Vars
	calls    memo[call, []outcome]
	queues   memo[pair, uint32] // by queue and message: the queue with it
	pasts    memo[pair, uint32] // by past and events: the past with them
	settled  [1 << 13]question  // by a hash: questions that were answered last
	script   []choice
	asked    int
	key      []byte
	saved    []byte
	coverage coverage
	alike    []alike // by root

	// The move that is being made.
	next     state
	aged     state
	turn     turn
	outcome  *outcome
	explored uint64 // messages of the flight that need not be delivered after it
	ties     int    // the number of the next move of a timer that is due with another one
	again    bool   // it was made before, and is only made to know what comes of it
	arrive   func(s, next *state, number int)
	visit    func(s, next *state, number int) // arriveAt

	// Searches by rounds: how many moves deep within the round that began in origin.
	origin *state
	level  int
	stack  []*state
	steps  []made
	number int
	closed parley.Tick // when a correct process closed a round last
	finish func(s, next *state, number int)

	here  state
	trail []made     // of a run at random
	out   []uint32   // states to be visited, packed
	full  [][]uint32 // blocks of them
	spare [][]uint32 // blocks that have been visited

	count   int    // of moves that the search does not know of yet
	waiting int64  // and of states
	results uint64 // and of outcomes
}

func newSearch(ctx context.Context, o Options) *search {
	x := &search{o: o, p: o.Protocol, timed: o.Protocol.Timing == parley.Synchronous, signer: sim.Ideal(1)}
	x.Context, x.Time, x.Memory = ctx, o.For, o.Memory
	x.relative = o.Model.InTime && !x.timed
	x.timed = x.timed || x.relative
	for k := range x.limits {
		x.limits[k] = uint8(o.Model.limit(k))
	}
	x.asks = !x.timed || x.relative || x.p.OnCall && o.Step == Messages
	m := &o.Model
	x.reliable = m.Crashes+m.Losses+m.Doubles == 0
	x.still = !x.asks && !m.Detect && x.reliable && m.FalseSuspicions == 0
	x.delay = within(x.p)
	for _, r := range o.Roots {
		x.roots = append(x.roots, newRoot(x.p, r))
	}
	x.judge.x, x.visited.alone = x, o.Workers == 1
	for range o.Workers {
		x.workers = append(x.workers, x.worker())
	}
	return x
}

func newRoot(p parley.Protocol, r Root) *root {
	out := &root{how: r.Faulty}
	// order: a set has none, and the worst is looked for
	for id, how := range r.Faulty {
		out.faulty.Add(id)
		out.worst = max(out.worst, how.Model)
	}
	for _, q := range r.Requests {
		out.requests[q.At] = append(out.requests[q.At], q.Msg)
	}
	add := func(s seat) {
		for i, id := range s.ids {
			s.place[id] = uint8(i)
			s.members.Add(id)
			out.slot[id] = uint8(s.ids[0])
		}
		out.seats = append(out.seats, s)
	}
	if len(r.Faulty) > 0 {
		add(seat{ids: slices.Collect(out.faulty.All()), rushing: true, liars: true})
	}
	for id := range parley.ID(p.N) {
		if !out.faulty.Has(id) {
			add(seat{ids: []parley.ID{id}})
		}
	}
	return out
}

// within is the time in which messages arrive: what the protocol relies on, or as in the
// simulator.
func within(p parley.Protocol) parley.Tick { return cmp.Or(p.Relies.Delay, 900) }

// Rush is how long liars wait in a round of a synchronous protocol until they have heard the
// others: longer than messages take, and less long than the round, which is a tenth longer or more.
func Rush(p parley.Protocol) parley.Tick {
	delay := within(p)
	return delay + max(1, delay/18)
}

func (x *search) worker() *worker {
	w := &worker{x: x, calls: newMemo[call, []outcome](call.hash), queues: newMemo[pair, uint32](pair.hash),
		pasts: newMemo[pair, uint32](pair.hash), coverage: newCoverage()}
	w.visit = w.arriveAt
	for _, r := range x.roots {
		var list []parley.Machine
		for i := range r.seats {
			list = append(list, x.fresh(r, &r.seats[i]))
		}
		w.machines = append(w.machines, list)
		w.alike = append(w.alike, newAlike(x.p.N, x.o.Alike.Minus(r.faulty)))
	}
	return w
}

// fresh returns a new machine for a seat.
func (x *search) fresh(r *root, s *seat) parley.Machine {
	if !s.liars {
		return x.p.New(s.ids[0])
	}
	wait := parley.Tick(0)
	if x.timed {
		wait = Rush(x.p)
	}
	return faulty.New(x.p, wait, r.how)
}

func (w *worker) machine(c *component) parley.Machine { return w.machines[c.root][c.seat] }

// fresh puts a new machine into the place of one that crashed.
func (w *worker) fresh(c *component) parley.Machine {
	r := w.x.roots[c.root]
	m := w.x.fresh(r, &r.seats[c.seat])
	w.machines[c.root][c.seat] = m
	return m
}

// beginning is a first state, and what happened before it.
type beginning struct {
	state state
	trail []made
}

// begin makes the first states of a root: the processes start in order, and where there
// are rounds they get their requests.
func (w *worker) begin(number int) []beginning {
	x, r := w.x, w.x.roots[number]
	s := state{root: number}
	none := make([]uint32, x.p.N)
	s.past = x.pasts.number(threadsKey(none), func(at *past) { at.threads = none })
	for i := range r.seats {
		seat := &r.seats[i]
		c := component{root: number, seat: i, machine: parley.Save(x.fresh(r, seat), 0, nil)}
		part := x.component(&c, w)
		s.parts[seat.ids[0]] = part
		s.sum += x.components.at(part).share
	}
	s.wake = never
	list := []beginning{{state: s}}
	each := func(t turn) {
		var after []beginning
		for i := range list {
			after = w.begun(after, &list[i], t)
		}
		list = after
	}
	for p := range parley.ID(x.p.N) {
		each(turn{what: Start, at: p, in: begin | input(p), elem: -1, cost: -1})
	}
	for p := range parley.ID(x.p.N) {
		if !x.asks {
			for range r.requests[p] {
				each(turn{what: Asking, at: p, in: ask | input(p), elem: -1, cost: -1})
			}
		}
	}
	return list
}

// begun appends what comes of a beginning by one more move, in which the process may crash.
func (w *worker) begun(list []beginning, b *beginning, t turn) []beginning {
	x := w.x
	slot := x.slot(&b.state, t.at)
	before := b.state.parts[slot]
	if x.components.at(before).down {
		return append(list, *b)
	}
	add := func(t turn, o *outcome) {
		next := beginning{trail: append(slices.Clip(b.trail), made{t, o, before})}
		b.state.copyTo(&next.state)
		w.apply(&next.state, slot, o)
		x.spend(&next.state, &t)
		list = append(list, next)
	}
	outcomes := w.outcomes(call{before, t.in, 0})
	for k := range outcomes {
		if outcomes[k].panics == "" {
			add(t, &outcomes[k])
			continue
		}
		w.trail = b.trail
		w.falls(&b.state, &t, &outcomes[k])
		w.trail = nil
	}
	if !x.may(&b.state, crashes) || x.roots[b.state.root].faulty.Has(t.at) {
		return list
	}
	t.in |= amid
	cut := w.outcomes(call{before, t.in, 0})
	for k := range cut {
		// One after which nothing is missing but what is in the process might as well
		// crash later.
		later := cut[k].panics != "" || slices.ContainsFunc(outcomes, func(o outcome) bool {
			fallen := x.fallen(x.components.at(o.next))
			return o.panics == "" && x.component(&fallen, w) == cut[k].next && o.outs == cut[k].outs &&
				slices.Equal(o.sends, cut[k].sends)
		})
		if !later {
			add(t, &cut[k])
		}
	}
	return list
}

// frontier is the states of one level that wait to be visited, packed.
type frontier struct {
	blocks [][]uint32
}

// blockWords is about how long a block of packed states is: what a worker takes at a time.
const blockWords = 1 << 15

// run searches.
func (x *search) run() Report {
	done := x.Start(x.told())
	if x.o.Order == RandomOrder {
		x.walks()
		x.End("walks")
	} else if x.all() {
		x.End("depth")
	}
	done()
	return x.report()
}

// all visits state after state, and tells whether some were left.
func (x *search) all() (more bool) {
	w := x.workers[0]
	defer x.heed()
	for number := range x.roots {
		if x.Over() {
			return true
		}
		for i, b := range w.begin(number) {
			w.arriveAt(&state{runs: 1}, &b.state, number<<variantBits|i)
		}
	}
	level := frontier{w.flush(nil)}
	for len(level.blocks) > 0 && !x.Over() && (x.o.Depth == 0 || int(x.depth.Load()) < x.o.Depth) {
		level = x.level(level)
		x.depth.Add(1)
	}
	return len(level.blocks) > 0
}

// level visits all states of a frontier and returns the next one.
func (x *search) level(level frontier) frontier {
	var next frontier
	var mu sync.Mutex
	var taken atomic.Int64
	var all sync.WaitGroup
	for _, w := range x.workers {
		all.Go(func() {
			for !x.Over() {
				k := int(taken.Add(1)) - 1
				if k >= len(level.blocks) {
					break
				}
				for rest := level.blocks[k]; len(rest) > 0 && !x.Over(); {
					rest = w.here.unpack(rest, x.p.N)
					w.expand(&w.here)
				}
				w.spare, level.blocks[k] = append(w.spare, level.blocks[k]), nil
				if x.o.Order == DepthFirst {
					w.deeper()
				}
			}
			mu.Lock()
			next.blocks = w.flush(next.blocks)
			mu.Unlock()
		})
	}
	all.Wait()
	return next
}

// deeper goes on from the states found last, until there are none.
func (w *worker) deeper() {
	for !w.x.Over() && (len(w.out) > 0 || len(w.full) > 0) {
		if len(w.out) == 0 {
			last := len(w.full) - 1
			w.out, w.full = w.full[last], w.full[:last]
		}
		at := len(w.out) - int(w.out[len(w.out)-1])
		w.here.unpack(w.out[at:], w.x.p.N)
		w.out = w.out[:at]
		w.expand(&w.here)
	}
}

// expand makes the moves of one state.
func (w *worker) expand(s *state) {
	x := w.x
	defer x.heed()
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

// moves makes all moves of a state, of the grain of the search.
func (w *worker) moves(s *state, asleep uint64, arrive func(s, next *state, number int)) (due bool) {
	if w.x.o.Step == Rounds {
		w.finish = arrive
		return w.round(s)
	}
	w.arrive = arrive
	return w.successors(s, asleep, s.again)
}

// counted tells whether runs are: if all that come to a state do so before it is visited.
func (x *search) counted() bool { return x.o.Step == Rounds && x.o.Order == BreadthFirst }

func (x *search) addRuns(runs uint64) {
	for old := x.runs.Load(); !x.runs.CompareAndSwap(old, plus(old, runs)); {
		old = x.runs.Load()
	}
}

// arriveAt takes in a state that a move leads to.
func (w *worker) arriveAt(s, next *state, number int) {
	x := w.x
	w.moved()
	sleep := uint64(0)
	if s.id != 0 && x.o.Step == Messages {
		sleep = w.asleep(s, next)
	}
	id, isNew, awake := x.visited.add(w.print(next), s.id, number, sleep)
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

// keep puts a state to be visited into a block.
func (w *worker) keep(s *state) {
	if last := len(w.spare) - 1; w.out == nil && last >= 0 {
		w.out, w.spare = w.spare[last][:0], w.spare[:last]
	} else if w.out == nil {
		w.out = make([]uint32, 0, blockWords+1024)
	}
	w.out = s.pack(w.out, w.x.p.N)
	if len(w.out) >= blockWords {
		w.full, w.out = append(w.full, w.out), nil
	}
}

// flush hands over the blocks of states found.
func (w *worker) flush(blocks [][]uint32) [][]uint32 {
	blocks = append(blocks, w.full...)
	if len(w.out) > 0 {
		blocks = append(blocks, w.out)
	}
	w.full, w.out = nil, nil
	return blocks
}
