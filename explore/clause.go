package explore

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"

	"parley"
	"parley/explore/internal/budget"
	"parley/explore/internal/timer"
	"parley/sim"
	"parley/trace"
)

// input is what can happen to a process state: its kind in the highest bits, and its subject below.
type input uint32

const (
	deliver input = iota << 28 // a message, by its number
	begin                      // the start of process ref
	ask                        // the next request, of process ref
	expire                     // timer number ref of the process state
	suspect                    // process ref, with its incarnation: see withNotice
	crash                      // between two steps
	restart                    // ref 1: without its disk
	pass                       // time passes
	amid    input = 1 << 31    // with any of the others: the process crashes within this step
	kinds   input = 7 << 28
)

func (in input) kind() input { return in & kinds }

func (in input) ref() uint32 { return uint32(in) & (1<<28 - 1) }

// outcome is the result of an input, with one sequence of answers to the Chooses.
type outcome struct {
	next         uint32
	sends        []uint32 // messages, one for each receiver
	observations uint32
	choices      []uint32 // what was chosen
	effects      int      // how many were carried out before a crash
	panics       string   // what the machine panics with; then there is no result
}

// quiet returns whether nothing of the outcome is visible elsewhere.
func (o *outcome) quiet() bool { return len(o.sends) == 0 && o.observations == 0 }

// clauseInput is a process state, an input and, in synchronous protocols, a time.
type clauseInput struct {
	part uint32
	in   input
	now  parley.Tick
}

// runner runs the clauses of machines: it is their host. It computes each outcome once.
type runner struct {
	sim.Signer
	x         *space
	budget    *budget.Budget
	machines  [][]parley.Machine // by root and seat
	step      parley.Step
	vars      parley.Vars
	calls     memo[clauseInput, []outcome]
	script    []choice
	asked     int
	key       []byte
	saved     []byte
	coverage  coverage
	replaying bool // a computed outcome is computed again, to get its effects
	results   uint64
	counted   *atomic.Uint64 // results that were added to the count of the search
}

// outcomes returns the outcomes of an input. Each worker computes them once.
func (w *runner) outcomes(c clauseInput) []outcome {
	return w.calls.of(c, func() []outcome { return w.compute(c) })
}

func (w *runner) compute(c clauseInput) []outcome {
	switch part := w.x.processStates.at(c.part); c.in.kind() {
	case crash:
		next := w.x.afterCrash(part)
		return []outcome{{next: w.processStateID(&next), effects: -1}}
	case pass:
		next := w.afterDelay(part, c.now)
		return []outcome{{next: w.processStateID(&next), effects: -1}}
	}
	return w.perform(c)
}

// perform runs a clause once for each sequence of answers.
func (w *runner) perform(c clauseInput) []outcome {
	var list []outcome
	w.script = w.script[:0]
	for {
		w.asked = 0
		if list = w.runOnce(c, list); len(list) > maxVariant {
			panic(tooMany)
		}
		if w.results++; w.results == 1<<10 {
			w.flushResults()
		}
		if w.halted() {
			return list
		}
		// The next sequence: the last answer that is not the largest is increased.
		w.script = w.script[:w.asked]
		last := len(w.script) - 1
		for last >= 0 && w.script[last].answer == w.script[last].of-1 {
			last--
		}
		if last < 0 {
			return slices.Clip(list)
		}
		w.script = w.script[:last+1]
		w.script[last].answer++
	}
}

// flushResults adds the counted outcomes to the count of the search.
func (w *runner) flushResults() {
	w.counted.Add(w.results)
	w.results = 0
}

// chosen returns the answers of the script so far.
func (w *runner) chosen() (list []uint32) {
	for _, c := range w.script[:w.asked] {
		list = append(list, uint32(c.answer))
	}
	return list
}

// choice is one answer, and the number of possible answers.
type choice struct{ answer, of int }

// Choose returns the next answer of the script, and 0 after its end.
func (w *runner) Choose(n int) int {
	if n > maxVariant {
		panic(tooMany)
	}
	if w.asked == len(w.script) {
		w.script = append(w.script, choice{0, n})
	}
	w.asked++
	c := &w.script[w.asked-1]
	if c.of == 0 { // of a replayed script
		c.of = n
	}
	if c.of != n {
		panic("explore: a clause chooses otherwise after the same choices")
	}
	return c.answer
}

// Refused counts nothing: a refused message changes no state.
func (w *runner) Refused(_, _ parley.ID, _ string) {}

// runOnce runs a clause with the current script and appends its outcomes: one, or one for each place in
// which the process crashes. A machine may panic.
func (w *runner) runOnce(c clauseInput, list []outcome) (all []outcome) {
	x := w.x
	defer func() {
		switch why := recover().(type) {
		case nil:
		case tooLarge:
			panic(why)
		default:
			all = append(list, outcome{panics: fmt.Sprint(why), choices: w.chosen(), effects: -1})
		}
	}()
	d := w.clause(c)
	parley.DurableFirst(w.step.Effects)
	if c.in&amid == 0 {
		d.crashed = -1
		return append(list, w.settle(c, &d, w.step.Effects))
	}
	effects := parley.Singly(w.step.Effects, x.p.N)
	for d.crashed = range effects {
		o := w.settle(c, &d, effects[:d.crashed])
		if !slices.ContainsFunc(list, func(p outcome) bool {
			return p.next == o.next && p.observations == o.observations && slices.Equal(p.sends, o.sends)
		}) {
			list = append(list, o)
		}
	}
	return list
}

// clauseResult is the result of a clause before its effects are carried out.
type clauseResult struct {
	machine parley.Machine
	next    processState
	seen    []event
	elapsed parley.Tick // on the process's own clock, where each process has one
	crashed int         // after this many effects; -1: no crash
}

// clause runs the clause for an input. Its effects are in the step.
func (w *runner) clause(c clauseInput) clauseResult {
	x, part := w.x, w.x.processStates.at(c.part)
	seat, s := &x.roots[part.root].seats[part.seat], &w.step
	d := clauseResult{machine: w.machine(part), next: *part}
	*s = parley.Step{
		Self: seat.ids[0], N: x.p.N, Now: c.now, Members: seat.members, Host: w, Effects: s.Effects[:0],
	}
	if c.in.kind() == restart {
		d.machine = w.fresh(part)
	} else if !w.vars.Load(d.machine, 0, part.machine) {
		panic(fmt.Sprintf("explore: process %d does not load the state that it saved", s.Self))
	}
	id := parley.ID(c.in.ref())
	w.coverage.clauses[c.in.kind()>>28]++
	switch c.in.kind() {
	case deliver:
		q := x.messages.at(c.in.ref())
		s.Self, s.Path, s.Epoch = q.to, q.path, q.epoch
		w.coverage.kinds[q.msg.Kind]++
		d.machine.Receive(s, q.from, q.msg)
	case begin:
		s.Self = id
		d.machine.Start(s)
	case ask:
		q := x.roots[part.root].requests[id][x.askedOf(part, id)]
		s.Self = id
		d.next.asked += 1 << (4 * seat.place[id])
		d.seen = append(d.seen, event{trace.Request, parley.ExternalEvent{At: id, From: id, Msg: q}})
		d.machine.Request(s, q)
	case expire:
		t := part.timers[c.in.ref()]
		d.next.timers = slices.Delete(slices.Clone(part.timers), int(c.in.ref()), int(c.in.ref())+1)
		if !x.timed {
			d.elapsed, s.Now = t.Due, t.Due
		}
		s.Self, s.Path = t.Of, t.Path
		d.machine.Timeout(s, t.Number)
	case suspect:
		of := id % most
		d.next.noticed = withNotice(part.noticed, of, uint64(id/most))
		d.machine.Receive(s, s.Self, parley.Msg{Kind: parley.Suspect, Origin: of})
	case restart:
		w.restartProcess(&d, c.in.ref() == 1)
	}
	return d
}

// restartProcess restarts a process after a crash.
func (w *runner) restartProcess(d *clauseResult, lost bool) {
	s := &w.step
	d.next.down, d.next.lives = false, d.next.lives+1
	var how parley.Msg
	if lost {
		d.next.durable, d.next.log, how.Value = nil, nil, 1
	} else if len(d.next.durable) > 0 && !parley.LoadDurable(d.machine, 0, d.next.durable) {
		panic("explore: a machine does not load the durable state that it saved")
	}
	d.seen = append(d.seen, event{trace.Restart, parley.ExternalEvent{At: s.Self, From: s.Self, Msg: how}})
	s.Restart, s.Log, s.Life = true, d.next.log, uint64(d.next.lives)
	d.machine.Start(s)
}

// settle carries out effects, and returns the process state after them and the messages it sends.
func (w *runner) settle(c clauseInput, d *clauseResult, effects []parley.Effect) outcome {
	x, next, seen := w.x, d.next, slices.Clip(d.seen)
	next.log = slices.Clip(next.log)
	next.timers = slices.Clone(next.timers)
	for i := range next.timers {
		next.timers[i].Due -= d.elapsed
	}
	o := outcome{effects: d.crashed, choices: w.chosen()}
	for i := range effects {
		e := &effects[i]
		switch e.Op {
		case parley.OpSend:
			o.sends = w.send(o.sends, e, c)
		case parley.OpKeep:
		case parley.OpDeliver:
			seen = append(seen, eventOf(trace.Deliver, e, e.To))
		case parley.OpIndicate:
			seen = append(seen, eventOf(trace.Indicate, e, e.From))
		case parley.OpSetTimer:
			t := timer.Timer{Of: e.From, Number: e.Timer, Path: e.Path, Due: e.After}
			if x.timed {
				t.Due += c.now
				if t.Due <= c.now && c.in.kind() == deliver {
					x.prompt.Store(true)
				}
			}
			next.timers = timer.Set(next.timers, t)
		case parley.OpStopTimer:
			next.timers = timer.Stop(next.timers, timer.Timer{Of: e.From, Number: e.Timer, Path: e.Path})
		case parley.OpAppend:
			next.log = append(next.log, parley.Record{Path: e.Path, Body: e.Msg.Body})
		case parley.OpCompact:
			next.durable, next.log = parley.SaveDurable(d.machine, d.elapsed, nil), nil
		default:
			panic(fmt.Sprintf("explore: process %d asks a layer beneath, and there is none that serves", e.From))
		}
	}
	if d.crashed >= 0 {
		next = x.afterCrash(&next)
	} else {
		w.saved = parley.Save(d.machine, d.elapsed, w.saved[:0])
		next.machine = w.saved
	}
	if !x.o.Model.FIFO { // FIFO links keep the order
		slices.Sort(o.sends)
	}
	o.next, o.observations = w.processStateID(&next), x.observationsID(seen)
	return o
}

func eventOf(op trace.Op, e *parley.Effect, from parley.ID) event {
	return event{op, parley.ExternalEvent{At: e.From, From: from, Path: e.Path, Msg: e.Msg}}
}

// send appends the messages of one send.
func (w *runner) send(list []uint32, e *parley.Effect, c clauseInput) []uint32 {
	x := w.x
	first, last := e.To, e.To
	if e.To == parley.All {
		first, last = 0, parley.ID(x.p.N-1)
	}
	for to := first; to <= last; to++ {
		if to == e.From {
			continue
		}
		m := message{from: e.From, to: to, epoch: e.Epoch, path: e.Path, msg: e.Msg}
		if x.timed {
			m.due = x.arrives(c)
		}
		list = append(list, w.messageID(&m))
	}
	return list
}

func (w *runner) machine(c *processState) parley.Machine { return w.machines[c.root][c.seat] }

// fresh replaces the machine of a crashed process by a new one.
func (w *runner) fresh(c *processState) parley.Machine {
	r := w.x.roots[c.root]
	m := w.x.fresh(r, &r.seats[c.seat])
	w.machines[c.root][c.seat] = m
	return m
}

// afterDelay returns a process state after time d in which nothing happened to it.
func (w *runner) afterDelay(part *processState, d parley.Tick) processState {
	next := *part
	if part.down {
		return next
	}
	m := w.machine(part)
	if !parley.Load(m, 0, part.machine) {
		panic("explore: a machine does not load the state that it saved")
	}
	w.saved = parley.Save(m, d, w.saved[:0])
	next.machine = w.saved
	next.timers = slices.Clone(part.timers)
	for i := range next.timers {
		next.timers[i].Due -= d
	}
	return next
}

// messageID returns the number of a message.
func (w *runner) messageID(m *message) uint32 {
	w.key = m.key(w.key[:0])
	return w.x.messages.number(w.key, func(at *message) {
		*at = *m
		at.share = digest('m', w.key)
	})
}

// halted returns whether a worker stops within a step, which may have a million outcomes. Replays after a
// search stop only when the context ends.
func (w *runner) halted() bool { return w.budget.Interrupted() || !w.replaying && w.budget.Halted() }

// processStateID returns the number of a process state. It copies the memory of its machine's state.
func (w *runner) processStateID(c *processState) uint32 {
	w.key = c.key(w.key[:0])
	return w.x.processStates.number(w.key, func(at *processState) {
		*at = *c
		at.machine = bytes.Clone(c.machine)
		at.share = digest('c', w.key)
	})
}
