package sim

import (
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/trace"
)

// Replay repeats the steps of the correct processes of a trace from any host. Fresh machines get the inputs
// in the trace, and must request the effects in the trace.
type Replay struct {
	Protocol parley.Protocol
	Faulty   parley.Set // their events are taken from the trace
	Signer   Signer
	Clocks   []Clock // the clocks that do not show true time
	Stepped  bool    // as in [trace.Facts]
	// Naming returns the names of processes in variables; nil means numbers.
	Naming func(parley.ID) string
}

// Run replays the events of a trace, and returns the number of steps of correct processes in them. The error
// is about the first event that does not follow from the events before it.
func (r Replay) Run(events []trace.Event) (steps int, err error) {
	return r.replayer().run(events, len(events))
}

// Variables replays the events of a trace up to the end of the step in which the given number of events is reached. It
// returns the variables of each process as its machine shows them then: nil for a process that is down, not started, or
// faulty.
func (r Replay) Variables(events []trace.Event, upTo int) ([][]parley.Variable, error) {
	p := r.replayer()
	_, err := p.run(events, max(0, min(upTo, len(events))))
	all := make([][]parley.Variable, len(p.procs))
	for id := range p.procs {
		v, failed := p.shows(parley.ID(id))
		if failed != nil && err == nil {
			err = fmt.Errorf("process %d: %w", id, failed)
		}
		all[id] = v
	}
	return all, err
}

// Watch replays the events of a trace, and calls seen after each step of a correct process, with the event that began
// the step and the variables of the process. It also calls seen when a correct process crashes, is paused, or resumes.
// The variables of a process that is down are nil.
func (r Replay) Watch(events []trace.Event, seen func(happened trace.Event, v []parley.Variable)) error {
	p := r.replayer()
	p.after = func(e *trace.Event) error {
		v, err := p.shows(e.At)
		if err == nil {
			seen(*e, v)
		}
		return err
	}
	_, err := p.run(events, len(events))
	return err
}

// WatchDerived is like Watch, but only for the variables that machines derive. That is much faster. up is false if the
// process is down.
func (r Replay) WatchDerived(
	events []trace.Event, seen func(happened trace.Event, up bool, v []parley.Variable),
) error {
	p := r.replayer()
	p.after = func(e *trace.Event) error {
		m := p.procs[e.At].machine
		var v []parley.Variable
		err := guarded(func() {
			if m != nil {
				v = parley.ShowDerived(m, r.Naming)
			}
		})
		if err == nil {
			seen(*e, m != nil, v)
		}
		return err
	}
	_, err := p.run(events, len(events))
	return err
}

// Feed gives one process, which may be faulty, the inputs that a trace has for it. It does not compare what the process
// does with the trace, and does not check that timers are set. It calls did, if it is not nil, with the effects of each
// step and the event that began the step. It returns the machine in its last state, also if the process is down. The
// error is about the first event that the machine does not survive.
func (r Replay) Feed(
	events []trace.Event, id parley.ID, did func(began trace.Event, effects []parley.Effect),
) (parley.Machine, error) {
	p := r.replayer()
	q := &p.procs[id]
	q.machine = r.Protocol.New(id)
	up := false
	for i := range events {
		e := &events[i]
		switch {
		case e.At != id || IsEffect(e.Op) || e.Op == trace.Pause || e.Op == trace.Resume:
			continue
		case e.Op == trace.Start || e.Op == trace.Restart:
			up = true
		case e.Op == trace.Crash:
			up = false
		}
		if !up {
			continue // a faulty process may hear something although it is down
		}
		p.begin(e, q.clock.Shows(e.Time))
		if err := p.clause(q, e); err != nil {
			return q.machine, fmt.Errorf("event %d: process %d: %w", e.ID, id, err)
		}
		for i := range p.step.Effects {
			q.carry(&p.step.Effects[i], p.step.Now)
		}
		if did != nil {
			did(*e, p.step.Effects)
		}
	}
	return q.machine, nil
}

func (r Replay) replayer() *replayer {
	if r.Signer == nil {
		r.Signer = Ideal(1)
	}
	p := &replayer{Replay: r, procs: make([]replayedProcess, r.Protocol.N)}
	for _, c := range r.Clocks {
		p.procs[c.At].clock = c
	}
	return p
}

// run replays events, up to the end of the step in which upTo of them are reached.
func (p *replayer) run(events []trace.Event, upTo int) (steps int, err error) {
	for left := len(events) - upTo; len(events) > left; {
		e, rest := &events[0], events[1:]
		n := slices.IndexFunc(rest, func(e trace.Event) bool { return !IsEffect(e.Op) })
		if n < 0 {
			n = len(rest)
		}
		events, p.now = rest[n:], e.Time
		switch {
		case int(e.At) >= len(p.procs):
			return steps, fmt.Errorf("event %d: there is no process %d", e.ID, e.At)
		case p.Faulty.Has(e.At) || e.Op == trace.Lose || e.Op == trace.Refuse:
			continue
		case IsEffect(e.Op):
			return steps, fmt.Errorf("event %d: process %d does this in no step", e.ID, e.At)
		}
		crashes := len(events) > 0 && events[0].Op == trace.Crash && events[0].At == e.At
		made, err := p.happens(e, rest[:n], crashes)
		if err != nil {
			return steps, fmt.Errorf("event %d: process %d: %w", e.ID, e.At, err)
		}
		if made {
			steps++
		}
		if p.after == nil {
			continue
		}
		if err := p.after(e); err != nil {
			return steps, fmt.Errorf("event %d: process %d: %w", e.ID, e.At, err)
		}
	}
	return steps, nil
}

// IsEffect reports whether an event is an effect of a step, or may appear among effects. For example, a link may lose
// a message when it is sent.
func IsEffect(op trace.Op) bool {
	switch op {
	case trace.Send, trace.Keep, trace.Deliver, trace.Indicate, trace.Append, trace.Refuse, trace.Lose:
		return true
	}
	return false
}

// replayer is a running replay.
type replayer struct {
	Replay
	procs []replayedProcess
	step  parley.Step
	drew  bool // the present step has called Choose
	now   parley.Tick
	// after, if not nil, is called after an event of a correct process, with its effects.
	after func(*trace.Event) error
}

// shows returns the variables of a process, or nil if it is down, not started, or faulty.
func (p *replayer) shows(id parley.ID) (v []parley.Variable, err error) {
	q := &p.procs[id]
	if q.machine == nil {
		return nil, nil
	}
	now := q.clock.Shows(p.now)
	if p.Stepped {
		now = q.own
	}
	err = guarded(func() { v = parley.ShowNamed(q.machine, now, p.Naming) })
	return v, err
}

// guarded calls a method of a machine. A panic becomes an error.
func guarded(method func()) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("it panics: %v", why)
		}
	}()
	method()
	return nil
}

// begin begins the step of an event.
func (p *replayer) begin(e *trace.Event, now parley.Tick) {
	p.drew = false
	p.step = parley.Step{
		Self: e.At, N: p.Protocol.N, Now: now, Members: parley.SetOf(e.At), Path: e.Path, Epoch: e.Epoch, Host: p,
		Effects: p.step.Effects[:0],
	}
}

// replayedProcess holds the state of one process.
type replayedProcess struct {
	machine parley.Machine // nil: not started, or down
	own     parley.Tick    // time on its clock, if that moves only with its timers
	clock   Clock
	timers  []timeout
	lives   uint64 // number of restarts
	state   []byte // durable state from Compact, which replaces records
	log     []parley.Record
}

// timeout is a timer that is set.
type timeout struct {
	number parley.Timer
	path   parley.Path
	due    parley.Tick // on the process's own clock
}

// Choose is called by machines that toss coins. A trace does not have the results.
func (p *replayer) Choose(int) int {
	p.drew = true
	return 0
}

func (p *replayer) Sign(as parley.ID, b []byte) []byte { return p.Signer.Sign(as, b) }

func (p *replayer) Verify(id parley.ID, b, sig []byte) bool { return p.Signer.Verify(id, b, sig) }

// Refused does nothing, because refusals show in the effects.
func (p *replayer) Refused(_, _ parley.ID, _ string) {}

// happens gives an event to a correct process, and checks what follows in the trace. The process may crash in
// the middle of that. happens returns whether this was a step.
func (p *replayer) happens(e *trace.Event, follows []trace.Event, crashes bool) (step bool, err error) {
	q := &p.procs[e.At]
	switch e.Op {
	case trace.Pause, trace.Resume:
		return false, none(follows)
	case trace.Crash:
		if q.machine == nil {
			return false, errors.New("it crashes, and it is not up")
		}
		q.machine, q.timers = nil, nil
		return false, none(follows)
	case trace.Start, trace.Restart:
		if q.machine != nil {
			return false, errors.New("it starts, and it is up")
		}
	default:
		if q.machine == nil {
			return false, errors.New("something happens to it, and it is not up")
		}
	}
	now := q.clock.Shows(e.Time)
	if p.Stepped {
		now = q.own
	}
	if e.Op == trace.Timeout {
		if now, err = q.runsOut(e, now, p.Stepped); err != nil {
			return false, err
		}
	}
	p.begin(e, now)
	if err := p.clause(q, e); err != nil {
		return false, err
	}
	if p.drew {
		return false, errors.New("it draws random values, which a trace does not contain")
	}
	return true, p.demand(q, follows, crashes)
}

// runsOut removes a timer that expires, and returns the time on the process's clock.
func (q *replayedProcess) runsOut(e *trace.Event, now parley.Tick, stepped bool) (parley.Tick, error) {
	i := slices.IndexFunc(q.timers, func(t timeout) bool {
		return t.number == parley.Timer(e.Msg.Value) && t.path == e.Path
	})
	if i < 0 {
		return now, fmt.Errorf("timer %d runs out, and it is not set", e.Msg.Value)
	}
	due := q.timers[i].due
	q.timers = slices.Delete(q.timers, i, i+1)
	if stepped {
		q.own = max(q.own, due)
		return q.own, nil
	}
	if due > now {
		return now, fmt.Errorf("timer %d runs out at %d, and it is due at %d", e.Msg.Value, now, due)
	}
	return now, nil
}

// clause runs the clause for an event. A panic of the machine becomes an error.
func (p *replayer) clause(q *replayedProcess, e *trace.Event) (err error) {
	if panics := guarded(func() { err = p.handle(q, e) }); panics != nil {
		return panics
	}
	return err
}

func (p *replayer) handle(q *replayedProcess, e *trace.Event) error {
	s := &p.step
	switch e.Op {
	case trace.Start:
		q.machine = p.Protocol.New(e.At)
		s.Life = e.Msg.Seq
		q.machine.Start(s)
	case trace.Restart:
		if e.Msg.Value == 1 {
			q.state, q.log = nil, nil
		}
		q.machine = p.Protocol.New(e.At)
		if len(q.state) > 0 && !parley.LoadDurable(q.machine, s.Now, q.state) {
			return errors.New("it does not load the durable state that it saved")
		}
		q.lives++
		s.Restart, s.Log, s.Life = true, q.log, max(e.Msg.Seq, q.lives)
		q.machine.Start(s)
	case trace.Request:
		q.machine.Request(s, e.Msg)
	case trace.Receive:
		q.machine.Receive(s, e.Peer, e.Msg)
	case trace.Suspect:
		q.machine.Receive(s, e.At, e.Msg)
	case trace.Timeout:
		q.machine.Timeout(s, parley.Timer(e.Msg.Value))
	default:
		return fmt.Errorf("nothing is known of %s", e.Op)
	}
	return nil
}

// demand carries out the effects of a step and compares them with the trace. If the process then crashes, the
// trace may have a part of them, with sends to all split by receiver.
func (p *replayer) demand(q *replayedProcess, follows []trace.Event, crashes bool) error {
	follows = slices.DeleteFunc(slices.Clone(follows), beside)
	whole := slices.Clone(p.step.Effects)
	parley.DurableFirst(whole)
	n, done := matched(whole, follows)
	if n < len(follows) || done < len(whole) {
		if crashes {
			whole = parley.Singly(whole, p.Protocol.N)
			n, done = matched(whole, follows)
		}
		if n < len(follows) || !crashes {
			return differs(whole, follows, n)
		}
	}
	for i := range whole[:done] {
		q.carry(&whole[i], p.step.Now)
	}
	return nil
}

// matched compares effects with the trace as long as they agree. It returns how many events and how many
// effects agree. An effect without an event counts with the effect before it.
func matched(effects []parley.Effect, follows []trace.Event) (events, done int) {
	for i := range effects {
		f, traced := trace.OfEffect(&effects[i])
		if !traced && unseen(effects[i].Op) {
			continue
		}
		if !traced || events == len(follows) || !same(&f, &follows[events]) {
			return events, i
		}
		events++
	}
	return events, len(effects)
}

// same reports whether two events are equal, except for their numbers and times.
func same(f, e *trace.Event) bool {
	return e.Op == f.Op && e.At == f.At && e.Peer == f.Peer && e.Epoch == f.Epoch && e.Path == f.Path && e.Msg.Equal(f.Msg)
}

// unseen reports whether an effect has no event in a trace of the simulator.
func unseen(op parley.Op) bool {
	return op == parley.OpSetTimer || op == parley.OpStopTimer || op == parley.OpCompact
}

// differs returns an error with the effect of a step and what the trace has instead.
func differs(effects []parley.Effect, follows []trace.Event, n int) error {
	_, done := matched(effects, follows[:n])
	asks := "nothing more"
	if done < len(effects) {
		e := &effects[done]
		what := "what no layer beneath serves"
		if f, traced := trace.OfEffect(e); traced {
			what = f.Op.String()
		}
		asks = fmt.Sprintf("%s of %q", what, parley.AppendMsg(nil, e.Path, e.Msg))
	}
	if n == len(follows) {
		return fmt.Errorf("it asks for %s, and the trace has no more", asks)
	}
	e := &follows[n]
	has := parley.AppendMsg(nil, e.Path, e.Msg)
	return fmt.Errorf("it asks for %s, and event %d is %s of %q", asks, e.ID, e.Op, has)
}

// beside reports whether an event among those of a step is not one of its effects.
func beside(e trace.Event) bool { return e.Op == trace.Refuse || e.Op == trace.Lose }

// none checks that no effect follows an event without a step.
func none(follows []trace.Event) error {
	for _, e := range follows {
		if !beside(e) {
			return fmt.Errorf("event %d follows from nothing", e.ID)
		}
	}
	return nil
}

// carry carries out an effect that concerns only the process itself.
func (q *replayedProcess) carry(f *parley.Effect, now parley.Tick) {
	is := func(t timeout) bool { return t.number == f.Timer && t.path == f.Path }
	switch f.Op {
	case parley.OpSetTimer:
		q.timers = append(slices.DeleteFunc(q.timers, is), timeout{f.Timer, f.Path, after(now, f.After)})
	case parley.OpStopTimer:
		q.timers = slices.DeleteFunc(q.timers, is)
	case parley.OpAppend:
		q.log = append(q.log, parley.Record{Path: f.Path, Body: f.Msg.Body})
	case parley.OpCompact:
		q.state, q.log = parley.SaveDurable(q.machine, now, nil), nil
	}
}
