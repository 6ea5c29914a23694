package explore

import (
	"slices"

	"parley"
	"parley/trace"
)

// Run is one run, transition by transition.
type Run struct {
	// Root is the index in Options.Roots of the root with which the run begins.
	Root  int
	Steps []Step
}

// Step is one transition of a run, and its outcome.
type Step struct {
	Kind TransitionKind
	At   parley.ID // where it happens
	Of   parley.ID // the sender, or the suspected process
	// Time is the time of the run if message delays are bounded, and otherwise the number of the step.
	Time    parley.Tick
	Msg     parley.Msg   // the message delivered or lost, or the request
	Path    parley.Path  // of a message or timer
	Epoch   uint32       // of a message
	Timer   parley.Timer // the timer that expires
	Choices []int        // the answer to each Choose
	Due     parley.Tick  // if message delays are bounded, by when the message must arrive
	Crashed bool         // the process crashes in this step, after these effects
	Effects []parley.Effect
}

// runTo returns the run that leads to a finding.
func (w *worker) runTo(f *found) Run {
	x := w.search
	run, steps := Run{Root: f.root}, f.trail
	if f.id != 0 {
		steps = w.retrace(f.id)
	}
	if x.Interrupted() {
		return run
	}
	now := parley.Tick(0)
	for i, m := range slices.Concat(steps, f.last) {
		switch {
		case x.relative:
			now += m.transition.wait
		case x.timed:
			now = m.transition.now
		default:
			now = parley.Tick(i)
		}
		run.Steps = append(run.Steps, w.replay(&m, now))
	}
	return run
}

// retrace returns the transitions from an initial state to a state.
func (w *worker) retrace(at id) []takenTransition {
	x := w.search
	var numbers []int
	for at != 0 {
		var number int
		at, number = x.visited.before(at)
		numbers = append(numbers, number)
	}
	slices.Reverse(numbers)
	begun := w.begin(numbers[0] >> variantBits)
	if x.Interrupted() {
		return nil
	}
	first := begun[numbers[0]&maxVariant]
	steps, s := first.trail, first.state
	for _, want := range numbers[1:] {
		if x.Interrupted() {
			return nil
		}
		var next state
		w.moves(&s, 0, func(from, reached *state, number int) {
			if number != want {
				return
			}
			reached.copyTo(&next)
			steps = append(steps, w.latest(from)...)
		})
		s = next
		s.again = 0
	}
	return steps
}

// replay takes a transition again, to get the effects of the process.
func (w *worker) replay(m *takenTransition, now parley.Tick) Step {
	x, t := w.search, &m.transition
	out := Step{Kind: t.what, At: t.at, Of: t.of, Time: now}
	part := x.processStates.at(m.before)
	switch {
	case t.what == OnLoss:
		q := x.messages.at(t.lost)
		out.Msg, out.Path, out.Epoch, out.Due = q.msg, q.path, q.epoch, q.due
		return out
	case t.in.kind() == deliver:
		q := x.messages.at(t.in.ref())
		out.Msg, out.Path, out.Epoch, out.Due = q.msg, q.path, q.epoch, q.due
	case t.in.kind() == ask:
		out.Msg = x.roots[part.root].requests[t.at][x.askedOf(part, t.at)]
	case t.in.kind() == expire:
		out.Timer, out.Path = part.timers[t.in.ref()].Number, part.timers[t.in.ref()].Path
	case t.in.kind() == crash:
		return out
	}
	w.script, w.asked = w.script[:0], 0
	for _, c := range m.outcome.choices {
		w.script = append(w.script, choice{int(c), 0})
		out.Choices = append(out.Choices, int(c))
	}
	if m.outcome.panics != "" {
		return out // there is no outcome
	}
	w.clause(clauseInput{m.before, t.in, t.now})
	parley.DurableFirst(w.step.Effects)
	out.Effects = slices.Clone(w.step.Effects)
	if m.outcome.effects >= 0 {
		out.Crashed = true
		out.Effects = parley.Singly(out.Effects, x.p.N)[:m.outcome.effects]
	}
	return out
}

// Log returns the trace of the run. The argument keep is as in trace.Log.
func (r *Run) Log(keep bool) *trace.Log {
	l := NewRecorder(keep)
	for i := range r.Steps {
		l.Add(&r.Steps[i])
	}
	return l.Log
}

// Recorder makes the trace of a run, transition by transition.
type Recorder struct {
	Log  *trace.Log
	sent map[string][]uint64 // by message: the events that sent it, if it is in flight
}

// NewRecorder returns a recorder of an empty run. keep is as in trace.Log.
func NewRecorder(keep bool) *Recorder {
	return &Recorder{&trace.Log{Keep: keep}, make(map[string][]uint64)}
}

// inFlight identifies a message in flight.
func inFlight(from, to parley.ID, epoch uint32, path parley.Path, m parley.Msg) string {
	return string((&message{from: from, to: to, epoch: epoch, path: path, msg: m}).key(nil))
}

// Cause returns the event that sent the message of a transition that is possible now, or 0 if the transition concerns
// no message.
func (l *Recorder) Cause(s *Step) uint64 {
	switch s.Kind {
	case OnDelivery, OnLoss, OnDuplicate:
		if ids := l.sent[inFlight(s.Of, s.At, s.Epoch, s.Path, s.Msg)]; len(ids) > 0 {
			return ids[0]
		}
	}
	return 0
}

// Add adds the events of a transition.
func (l *Recorder) Add(s *Step) {
	e := trace.Event{Op: s.Kind.op(), At: s.At, Time: s.Time, Path: s.Path, Epoch: s.Epoch, Msg: s.Msg, Cause: l.Cause(s)}
	switch s.Kind {
	case OnDelivery, OnLoss, OnDuplicate:
		e.Peer = s.Of
		if k := inFlight(s.Of, s.At, s.Epoch, s.Path, s.Msg); e.Cause > 0 && s.Kind != OnDuplicate {
			l.sent[k] = l.sent[k][1:]
		}
	case OnTimeout:
		e.Msg = parley.Msg{Value: uint64(s.Timer)}
	case OnLostDisk:
		e.Msg = parley.Msg{Value: 1}
	case OnSuspicion, OnFalseSuspicion:
		e.Msg = parley.Msg{Kind: parley.Suspect, Origin: s.Of}
	}
	l.Log.Add(e)
	for k := range s.Effects {
		f := &s.Effects[k]
		e, traced := trace.OfEffect(f)
		if !traced {
			continue
		}
		e.Time = s.Time
		id := l.Log.Add(e)
		if f.Op == parley.OpSend {
			for to := range parley.ID(most) {
				if to != f.From && (f.To == to || f.To == parley.All) {
					k := inFlight(f.From, to, f.Epoch, f.Path, f.Msg)
					l.sent[k] = append(l.sent[k], id)
				}
			}
		}
	}
	if s.Crashed {
		l.Log.Add(trace.Event{Op: trace.Crash, At: s.At, Time: s.Time})
	}
}

// op returns the operation that a trace uses for a transition.
func (w TransitionKind) op() trace.Op {
	return [...]trace.Op{
		OnDelivery: trace.Receive, OnLoss: trace.Lose, OnDuplicate: trace.Receive, OnRequest: trace.Request,
		OnTimeout: trace.Timeout,
		OnCrash:   trace.Crash, OnRestart: trace.Restart, OnLostDisk: trace.Restart, OnSuspicion: trace.Suspect,
		OnFalseSuspicion: trace.Suspect, OnStart: trace.Start,
	}[w]
}
