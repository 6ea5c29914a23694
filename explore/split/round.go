package split

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/explore"
	"parley/explore/internal/timer"
	"parley/faulty"
	"parley/sim"
)

// worker is one thread of a search with its last round split: the host of the machines, which it steps from
// one end of a round to the next.
type worker struct {
	sim.Signer
	x        *search
	step     parley.Step
	vars     parley.Vars
	machines [][most]parley.Machine   // by root: of correct processes
	liars    []*faulty.Coalition      // by root
	lies     map[uint32]*possibleLies // by the number of the coalition's state
	ends     map[string]uint32        // numbers of endings
	key      []byte
	sendsOf  *roundState // the state whose correct sends are in sends
	sends    []message   // of correct processes in sendsOf

	scripts []choiceEnumerator // by member and receiver
	asking  int                // the script in use; -1: none
	choice  int                // the number of the current choice of the turn
}

func (x *search) newWorker() *worker {
	return &worker{Signer: x.signer, x: x, lies: make(map[uint32]*possibleLies), ends: make(map[string]uint32), asking: -1,
		scripts: make([]choiceEnumerator, x.p.N*x.p.N)}
}

// seat makes the machines of all roots.
func (w *worker) seat() {
	x := w.x
	for _, r := range x.roots {
		var list [most]parley.Machine
		for id := range r.correct(x.p.N) {
			list[id] = x.p.New(id)
		}
		how := make(map[parley.ID]faulty.Behavior)
		for id := range r.faulty.All() {
			how[id] = w.trackChoices(r.Faulty[id])
		}
		w.machines = append(w.machines, list)
		w.liars = append(w.liars, faulty.New(x.p, x.wait, how))
	}
}

// at begins a step of a process.
func (w *worker) at(id parley.ID, members parley.Set, now parley.Tick) *parley.Step {
	s := &w.step
	s.Self, s.N, s.Now, s.Members, s.Host = id, w.x.p.N, now, members, w
	s.Path, s.Epoch, s.Effects = 0, 0, s.Effects[:0]
	return s
}

func load(m parley.Machine, b []byte) { loadIn(new(parley.Vars), m, b) }

// loadIn is load with reused memory.
func loadIn(v *parley.Vars, m parley.Machine, b []byte) {
	if !v.Load(m, 0, b) {
		panic("split: a machine does not load the state that it saved")
	}
}

// start starts a correct process, and returns when its timer first expires.
func (w *worker) start(m parley.Machine, id parley.ID, requests []parley.Msg) parley.Tick {
	s := w.at(id, parley.SetOf(id), 0)
	m.Start(s)
	for _, q := range requests {
		m.Request(s, q)
	}
	sends, end, next := w.effects()
	if len(sends) > 0 || end != 0 {
		w.x.fail("process %d acts before the first round", id)
	}
	return next
}

// deliver delivers to a correct process those of the messages that are for it. The process must not act on
// them before the round ends.
func (w *worker) deliver(m parley.Machine, s *parley.Step, sends []message) {
	for i := range sends {
		if q := &sends[i]; q.isFor(s.Self) {
			s.Path, s.Epoch = q.path, q.epoch
			m.Receive(s, q.from, q.msg)
		}
	}
	if len(s.Effects) > 0 {
		w.x.fail("process %d acts on a message before the round ends", s.Self)
	}
}

// expireTimer expires the timer of a correct process.
func (w *worker) expireTimer(m parley.Machine, s *parley.Step, now parley.Tick) {
	s.Now, s.Path, s.Epoch = now, w.x.alarm.Path, 0
	m.Timeout(s, w.x.alarm.Number)
}

// effects returns the effects of a step of a correct process: what it sends, the number of its deliveries,
// 0 for none, and when its timer expires next.
func (w *worker) effects() (sends []message, end uint32, next parley.Tick) {
	x, s := w.x, &w.step
	next = timer.Never
	w.key = append(w.key[:0], byte(s.Self))
	for i := range s.Effects {
		switch e := &s.Effects[i]; e.Op {
		case parley.OpSend:
			sends = append(sends, message{from: e.From, to: e.To, epoch: e.Epoch, path: e.Path, msg: e.Msg})
		case parley.OpDeliver:
			w.key = binary.AppendUvarint(w.key, uint64(e.To))
			w.key = parley.AppendMsg(w.key, e.Path, e.Msg)
		case parley.OpSetTimer:
			if x.clock == nil {
				x.alarm = timer.Timer{Number: e.Timer, Path: e.Path}
			}
			if e.Timer != x.alarm.Number || e.Path != x.alarm.Path || next != timer.Never {
				x.fail("process %d has more than one timer", s.Self)
			}
			next = s.Now + e.After
		case parley.OpKeep, parley.OpStopTimer:
		default:
			x.fail("process %d asks for more than to send, to deliver and to be woken", s.Self)
		}
	}
	if len(w.key) == 1 {
		return sends, 0, next
	}
	end, known := w.ends[string(w.key)]
	if !known {
		end = x.ending(w.key, s.Self, s.Effects)
		w.ends[string(w.key)] = end
	}
	return sends, end, next
}

// roundEffects returns the effects of a timer that expired at instant k of the clock. The process must set
// the timer again except at the last instant, at which it must send nothing.
func (w *worker) roundEffects(k int) (sends []message, end uint32) {
	x := w.x
	sends, end, next := w.effects()
	switch last := k == len(x.clock)-1; {
	case last && len(sends) > 0:
		x.fail("process %d sends when the last round ends", w.step.Self)
	case last && next != timer.Never, !last && next != x.clock[k+1]:
		x.fail("the rounds of process %d depend on what it hears", w.step.Self)
	}
	return sends, end
}

// mostRounds is the number of rounds after which a protocol is taken to have no last one.
const mostRounds = 1000

// learnClock runs a root with all processes correct, to learn when rounds end, and to check that nothing
// happens within them.
func (w *worker) learnClock(number int) {
	x, n := w.x, parley.ID(w.x.p.N)
	list, wakes := make([]parley.Machine, n), make([]parley.Tick, n)
	for id := range n {
		list[id] = x.p.New(id)
		wakes[id] = w.start(list[id], id, x.roots[number].requests[id])
	}
	var clock []parley.Tick
	for wakes[0] != timer.Never && x.err == nil {
		now := wakes[0]
		switch k := len(clock); {
		case k > mostRounds:
			x.fail("it has more than %d rounds", mostRounds)
		case k > 0 && now-clock[k-1] <= explore.Rush(x.p):
			x.fail("a round of %d ticks is over before liars have heard the others, which takes %d",
				now-clock[k-1], explore.Rush(x.p))
		}
		clock = append(clock, now)
		var sends []message
		for id := range n {
			if wakes[id] != now {
				x.fail("the rounds of process %d are not those of the others", id)
			}
			w.expireTimer(list[id], w.at(id, parley.SetOf(id), now), now)
			said, _, next := w.effects()
			sends, wakes[id] = append(sends, said...), next
		}
		for id := range n {
			w.checkOrder(list[id], id, now, sends)
		}
	}
	switch {
	case len(clock) < 2:
		x.fail("it has no rounds")
	case x.clock != nil && !slices.Equal(clock, x.clock):
		x.fail("its rounds depend on the requests")
	}
	x.clock, x.wait = clock, explore.Rush(x.p)
}

// checkOrder delivers messages in one order and in the reverse order, which must lead to the same state.
func (w *worker) checkOrder(m parley.Machine, id parley.ID, now parley.Tick, sends []message) {
	var states [2]string
	before := parley.Save(m, 0, nil)
	for i := range states {
		load(m, before)
		slices.Reverse(sends)
		w.deliver(m, w.at(id, parley.SetOf(id), now), sends)
		states[i] = string(parley.Save(m, 0, nil))
	}
	if states[0] != states[1] {
		w.x.fail("the order in which messages arrive makes a difference to process %d", id)
	}
}

// begin returns the first state of a root.
func (w *worker) begin(number int) *roundState {
	x, r := w.x, w.x.roots[number]
	s := &roundState{root: number, runs: 1}
	now := x.clock[0]
	for id := range r.correct(x.p.N) {
		m := x.p.New(id)
		w.start(m, id, r.requests[id])
		w.expireTimer(m, w.at(id, parley.SetOf(id), now), now)
		sends, end := w.roundEffects(0)
		s.parts[id] = x.numberProcess(int(id), roundProcess{machine: parley.Save(m, 0, nil), sends: sends})
		s.deliver(end)
	}
	if r.faulty == (parley.Set{}) {
		return s
	}
	c, timers := w.liars[number], []timer.Timer(nil)
	for id := range r.faulty.All() {
		w.stepLiar(r, 0, id, &timers, c.Start)
	}
	for id := range r.faulty.All() {
		for _, q := range r.requests[id] {
			w.stepLiar(r, 0, id, &timers, func(s *parley.Step) { c.Request(s, q) })
		}
	}
	w.wakeLiars(r, c, now, &timers)
	s.liars = x.numberProcess(-1-number, roundProcess{machine: parley.Save(c, 0, nil), timers: timers})
	return s
}

// afterCorrectSends returns the state of a correct process after it has received what the correct ones
// sent.
func (w *worker) afterCorrectSends(s *roundState, id parley.ID) []byte {
	x, sends := w.x, w.correctSends(s)
	m, p := w.machines[s.root][id], &x.processes[s.parts[id]]
	load(m, p.machine)
	w.deliver(m, w.at(id, parley.SetOf(id), x.clock[s.round]), sends)
	return parley.Save(m, 0, make([]byte, 0, 2*len(p.machine)))
}

// correctSends returns what correct processes sent in this round.
func (w *worker) correctSends(s *roundState) []message {
	if w.sendsOf == s {
		return w.sends
	}
	w.sendsOf, w.sends = s, nil
	for id := range w.x.roots[s.root].correct(w.x.p.N) {
		w.sends = append(w.sends, w.x.processes[s.parts[id]].sends...)
	}
	return w.sends
}

// finishRound takes a correct process, after it has received from the other correct ones, through the rest
// of a round.
func (w *worker) finishRound(
	m parley.Machine, id parley.ID, heard []byte, told *lieMessages, round int,
) (sends []message, end uint32) {
	loadIn(&w.vars, m, heard)
	s := w.at(id, parley.SetOf(id), w.x.clock[round]+w.x.wait)
	w.deliver(m, s, told.messages)
	w.expireTimer(m, s, w.x.clock[round+1])
	return w.roundEffects(round + 1)
}

// round calls each with every state that a state leads to.
func (w *worker) round(s *roundState, each func(next *roundState)) {
	x := w.x
	type after struct {
		told      *lieMessages
		part, end uint32
	}
	var ids []parley.ID
	var all [][]after
	t := w.possibleLies(s)
	for id := range x.roots[s.root].correct(x.p.N) {
		m, heard := w.machines[s.root][id], w.afterCorrectSends(s, id)
		var list []after
		for i := range t.to[id] {
			if x.Over() {
				return
			}
			said, end := w.finishRound(m, id, heard, &t.to[id][i], s.round)
			part := x.numberProcess(int(id), roundProcess{machine: parley.Save(m, 0, nil), sends: said})
			list = append(list, after{&t.to[id][i], part, end})
		}
		ids, all = append(ids, id), append(all, list)
	}
	liars := w.nextCoalition(s)
	combine(all, func(picked []after) bool {
		next := &roundState{root: s.root, round: s.round + 1, liars: liars, past: slices.Clip(s.past), runs: s.runs, from: s}
		for i, a := range picked {
			next.parts[ids[i]], next.told[ids[i]] = a.part, a.told
			next.deliver(a.end)
		}
		each(next)
		return !x.Over()
	})
}

// last takes each correct process through the last round separately, and judges all combinations of the
// results.
func (w *worker) last(s *roundState) {
	x := w.x
	type reached struct {
		end  uint32
		runs uint64
		told *lieMessages // one set of lies that leads there
	}
	var ids []parley.ID
	var all [][]reached
	t, runs := w.possibleLies(s), s.runs
	for id := range x.roots[s.root].correct(x.p.N) {
		m, heard := w.machines[s.root][id], w.afterCorrectSends(s, id)
		var list []reached
		for i := range t.to[id] {
			if x.Over() {
				return
			}
			_, end := w.finishRound(m, id, heard, &t.to[id][i], s.round)
			k := slices.IndexFunc(list, func(r reached) bool { return r.end == end })
			if k < 0 {
				list = append(list, reached{end, 0, &t.to[id][i]})
				k = len(list) - 1
			}
			list[k].runs++
		}
		if len(t.to[id]) > 1 {
			x.evaluated.Add(uint64(len(t.to[id])))
		}
		runs = times(runs, uint64(len(t.to[id])))
		ids, all = append(ids, id), append(all, list)
	}
	x.addRuns(runs)
	ends := make([]uint32, len(ids))
	combine(all, func(picked []reached) bool {
		runs := s.runs
		for i, r := range picked {
			ends[i] = r.end
			runs = times(runs, r.runs)
		}
		x.judgeOnce(s, ends, runs, func(told *[most]*lieMessages) {
			for i, r := range picked {
				told[ids[i]] = r.told
			}
		})
		return !x.Over()
	})
}

// combine calls f with every way to pick one element of each list, until f returns false.
func combine[T any](lists [][]T, f func(picked []T) bool) {
	picked := make([]T, len(lists))
	var from func(i int) bool
	from = func(i int) bool {
		if i == len(lists) {
			return f(picked)
		}
		for _, one := range lists[i] {
			if picked[i] = one; !from(i + 1) {
				return false
			}
		}
		return true
	}
	from(0)
}
