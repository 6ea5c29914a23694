package sim

import (
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/trace"
)

// Replay makes again what the correct processes of a trace did, whoever made the run and
// scheduled it: fresh machines are given what the trace says that came to them, and must
// ask for what it says that they asked for.
type Replay struct {
	Protocol parley.Protocol
	Faulty   parley.Set // who lies is taken at its word
	Signer   Signer
	Clocks   []Clock // those that do not show the true time
	Stepped  bool    // as in [trace.Facts]
}

// Run replays the events of a trace, and returns how many steps of correct processes
// these have. The error is about the first event that does not follow from those before.
func (r Replay) Run(events []trace.Event) (steps int, err error) {
	if r.Signer == nil {
		r.Signer = Ideal(1)
	}
	p := &player{Replay: r, procs: make([]played, r.Protocol.N)}
	for _, c := range r.Clocks {
		p.procs[c.At].clock = c
	}
	for len(events) > 0 {
		e, rest := &events[0], events[1:]
		n := slices.IndexFunc(rest, func(e trace.Event) bool { return !isEffect(e.Op) })
		if n < 0 {
			n = len(rest)
		}
		events = rest[n:]
		switch {
		case int(e.At) >= len(p.procs):
			return steps, fmt.Errorf("event %d: there is no process %d", e.ID, e.At)
		case r.Faulty.Has(e.At) || e.Op == trace.Lose || e.Op == trace.Refuse:
			continue
		case isEffect(e.Op):
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
	}
	return steps, nil
}

// isEffect tells whether an event is something that a step asked for, or one among those:
// a link may lose a message as it is sent.
func isEffect(op trace.Op) bool {
	switch op {
	case trace.Send, trace.Keep, trace.Deliver, trace.Indicate, trace.Append, trace.Refuse, trace.Lose:
		return true
	}
	return false
}

// player is a replay at work.
type player struct {
	Replay
	procs []played
	step  parley.Step
	drew  bool // the present step
}

// played is what is kept of one process.
type played struct {
	machine parley.Machine // nil: it has not begun, or is down
	own     parley.Tick    // what its clock shows, where that moves with its timers alone
	clock   Clock
	timers  []timeout
	lives   uint64 // how often it has come back
	state   []byte // what Compact put in the place of records
	log     []parley.Record
}

// timeout is a timer that is set.
type timeout struct {
	number parley.Timer
	path   parley.Path
	due    parley.Tick // by the process's own clock
}

// Choose is asked by who tosses coins, which no trace has.
func (p *player) Choose(int) int {
	p.drew = true
	return 0
}

// Sign is the signer's.
func (p *player) Sign(as parley.ID, b []byte) []byte { return p.Signer.Sign(as, b) }

// Verify is the signer's.
func (p *player) Verify(id parley.ID, b, sig []byte) bool { return p.Signer.Verify(id, b, sig) }

// Refused is of no account: what is refused shows in what is asked for.
func (p *player) Refused(_, _ parley.ID, _ string) {}

// happens lets an event happen to a correct process, and demands what follows in the
// trace. In the midst of that the process may crash. It tells whether this was a step.
func (p *player) happens(e *trace.Event, follows []trace.Event, crashes bool) (step bool, err error) {
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
	p.drew = false
	p.step = parley.Step{
		Self: e.At, N: p.Protocol.N, Now: now, Members: parley.SetOf(e.At), Path: e.Path, Epoch: e.Epoch, Host: p,
		Effects: p.step.Effects[:0],
	}
	if err := p.clause(q, e); err != nil {
		return false, err
	}
	if p.drew {
		return false, errors.New("it draws by lot, and a trace does not have what was drawn")
	}
	return true, p.demand(q, follows, crashes)
}

// runsOut takes off a timer that runs out, and returns what time the process has.
func (q *played) runsOut(e *trace.Event, now parley.Tick, stepped bool) (parley.Tick, error) {
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

// clause runs the clause that an event asks for. A machine may panic.
func (p *player) clause(q *played, e *trace.Event) (err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("it panics: %v", why)
		}
	}()
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

// demand carries out what a step asked for and holds the trace against it. A process
// that crashes then may have done it in part, and one after another.
func (p *player) demand(q *played, follows []trace.Event, crashes bool) error {
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

// matched goes through effects as long as the trace has them. It returns how many events
// of that those are, and how many effects; those that a trace does not have count with
// what is before them.
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

// same tells whether two events are the same, but for their numbers and times.
func same(f, e *trace.Event) bool {
	return e.Op == f.Op && e.At == f.At && e.Peer == f.Peer && e.Epoch == f.Epoch && e.Path == f.Path && e.Msg.Equal(f.Msg)
}

// unseen tells whether a simulated process may ask for this without an event in the trace.
func unseen(op parley.Op) bool {
	return op == parley.OpSetTimer || op == parley.OpStopTimer || op == parley.OpCompact
}

// differs says what a step asks for where the trace has something else.
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

// beside tells whether an event among those of a step is none that it asked for.
func beside(e trace.Event) bool { return e.Op == trace.Refuse || e.Op == trace.Lose }

// none demands that nothing follows from an event in which a process does nothing.
func none(follows []trace.Event) error {
	for _, e := range follows {
		if !beside(e) {
			return fmt.Errorf("event %d follows from nothing", e.ID)
		}
	}
	return nil
}

// carry carries out what concerns the process alone.
func (q *played) carry(f *parley.Effect, now parley.Tick) {
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
