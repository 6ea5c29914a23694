package host

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	mathrand "math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/trace"
)

// Process is one machine of a node. Its methods are safe for concurrent use.
type Process struct {
	h  *Host
	o  Options
	in inbox // if its steps may take long

	mu sync.Mutex
	m  parley.Machine
	stepContext
	timers    timers
	alarm     *time.Timer
	alarmAt   parley.Tick // when the alarm is due, if it is pending
	pending   bool
	alarmDue  atomic.Int64 // for Punctual: when the alarm is due
	outbox    outbox
	crashPlan crashPlan
	head      []byte // scratch for the head of a frame
	chance    *mathrand.Rand
	refused   map[refusal]uint64
	notified  bool // something was delivered or indicated
	stopped   bool
	broken    error
}

// refusal is a sender and the reason why something from it was refused.
type refusal struct {
	from parley.ID
	why  string
}

// start starts the machine. The caller holds the lock.
func (p *Process) start(restart, lost bool, records []parley.Record) {
	defer p.guard()
	if p.crashed() {
		return
	}
	e := trace.Event{Op: trace.Start}
	if restart {
		e.Op = trace.Restart
	}
	if lost { // all that it had, or it had nothing durable
		e.Msg.Value = 1
	}
	p.begin(0, 0)
	e.Msg.Seq = p.h.c.Life
	p.note(e)
	p.step.Restart, p.step.Log, p.step.Life = restart, records, p.h.c.Life
	p.m.Start(&p.step)
	p.step.Restart, p.step.Log, p.step.Life = false, nil, 0
	p.carry()
}

// guard stops a process whose machine has panicked. It must be deferred.
func (p *Process) guard() {
	if r := recover(); r != nil {
		p.stopped = true
		p.broken = fmt.Errorf("host: machine %s panicked: %v", p.o.Name, r)
		p.h.c.Log.Error("machine panicked; the node fails", "machine", p.o.Name, "err", fmt.Sprint(r), "stack",
			string(debug.Stack()))
		go p.h.c.Broken(p.broken) // the lock is held
	}
}

// Request makes a request to the machine, in the machine's own messages.
func (p *Process) Request(m parley.Msg) error {
	p.mu.Lock()
	err := p.request(m)
	p.unlock()
	p.h.Flush()
	return err
}

// Beside does what Request does, but within a step of another machine of the host. The sends of the request leave
// when that step ends. The layer above this machine must not make a request to the other machine.
func (p *Process) Beside(m parley.Msg) {
	p.mu.Lock()
	defer p.unlock()
	_ = p.request(m) // a stopped machine ignores it
}

func (p *Process) request(m parley.Msg) error {
	if p.stopped || p.crashed() {
		return cmp.Or(p.broken, ErrStopped)
	}
	defer p.guard()
	p.begin(0, 0)
	p.note(trace.Event{Op: trace.Request, Peer: p.step.Self, Msg: m})
	p.m.Request(&p.step, m)
	p.carry()
	return nil
}

// Indicate gives the machine information of the host, for example that a process is suspected.
func (p *Process) Indicate(m parley.Msg) {
	p.receive(parley.Env{From: p.step.Self}, m)
	p.h.Flush()
}

// Carried gives the machine a delivery or an indication of the order in the layer below, within a step of that order.
func (p *Process) Carried(from parley.ID, m parley.Msg) {
	p.mu.Lock()
	defer p.unlock()
	p.step.Carried = true
	p.receiveLocked(parley.Env{From: from}, m)
	p.step.Carried = false
}

func (p *Process) receive(e parley.Env, m parley.Msg) {
	p.mu.Lock()
	p.receiveLocked(e, m)
	p.unlock()
}

// unlock ends one or more steps.
func (p *Process) unlock() {
	told := p.notified
	p.notified = false
	p.mu.Unlock()
	if told && p.o.After != nil {
		p.o.After()
	}
}

func (p *Process) receiveLocked(e parley.Env, m parley.Msg) {
	if p.stopped || p.crashed() {
		return
	}
	defer p.guard()
	p.begin(e.Path, e.Epoch)
	if m.Kind < parley.Local {
		p.note(trace.Event{Op: trace.Receive, Peer: e.From, Epoch: e.Epoch, Path: e.Path, Msg: m})
	} else {
		p.note(trace.Event{Op: trace.Suspect, Peer: e.From, Msg: m})
	}
	p.m.Receive(&p.step, e.From, m)
	p.carry()
}

// Do calls f between two steps, for example to read the state of the machine.
func (p *Process) Do(f func(m parley.Machine, now parley.Tick)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.m, p.clock.Now())
}

// Idle returns whether nothing is due: no timer is set, and nothing waits for the disk.
func (p *Process) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped || len(p.timers.list) == 0 && len(p.outbox.list) == 0
}

// Refused calls each with the number of refused messages, by sender and reason.
func (p *Process) Refused(each func(from parley.ID, why string, times uint64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r, times := range p.refused {
		each(r.from, r.why, times)
	}
}

// Close stops the machine where it is: to other nodes it has crashed.
func (p *Process) Close() {
	h := p.h
	h.mu.Lock()
	defer h.mu.Unlock()
	table := maps.Clone(*h.table.Load())
	maps.DeleteFunc(table, func(_ uint32, q *Process) bool { return q == p })
	h.table.Store(&table)
	p.stop()
}

func (p *Process) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped, p.crashPlan.crashing = true, false
	if p.alarm != nil {
		p.alarm.Stop()
	}
}

// Tell does what [Process.Request] does, but returns no error, and does not wait for a long step. For example, the
// reader of a connection uses it. The machine gets requests and messages in the order of their arrival.
func (p *Process) Tell(m parley.Msg) {
	if p.o.Long {
		p.in.post(letter{msg: m, asked: true})
	} else {
		_ = p.Request(m)
	}
}

// work handles the inbox, on a goroutine of its own.
func (p *Process) work() {
	for {
		letters, upto := p.in.take()
		if len(letters) == 0 && upto == 0 {
			return
		}
		if upto > 0 {
			p.release(upto)
		}
		for i := range letters {
			if l := &letters[i]; l.asked {
				_ = p.Request(l.msg)
			} else {
				p.receive(l.Env, l.msg)
			}
			p.in.done(&letters[i])
		}
		p.h.Flush()
	}
}

// crashed returns whether the machine has crashed before the step that would begin. The caller holds the
// lock.
func (p *Process) crashed() bool {
	if !p.crashPlan.before(p.clock.Now()) {
		return false
	}
	p.stopped = true
	p.crashPlan.die(p.outbox.empty())
	return true
}

// stepContext is the current step of a machine, and the receivers of its events.
type stepContext struct {
	clock Clock
	step  parley.Step
	trace func(trace.Event) // nil: none
	tape  *tape             // of the recorder, or nil
}

// begin prepares the step for a clause.
func (t *stepContext) begin(path parley.Path, epoch uint32) {
	t.step.Now, t.step.Path, t.step.Epoch = t.clock.Now(), path, epoch
	t.step.Effects = t.step.Effects[:0]
}

// note reports an event to the trace and the recorder, with the time that the machine sees, so that the
// step can be replayed.
func (t *stepContext) note(e trace.Event) {
	if t.trace == nil && t.tape == nil {
		return
	}
	e.At, e.Time = t.step.Self, t.step.Now
	if t.tape != nil {
		t.tape.add(&e)
	}
	if t.trace != nil {
		t.trace(e)
	}
}

// noteEffect reports an effect if traces contain such effects.
func (t *stepContext) noteEffect(e *parley.Effect) {
	if event, traced := trace.OfEffect(e); traced {
		t.note(event)
	}
}

// stepHost is the host of a running step.
type stepHost Process

func (s *stepHost) Choose(n int) int { return s.chance.IntN(n) }

func (s *stepHost) Sign(_ parley.ID, b []byte) []byte {
	if s.h.c.Signer == nil {
		panic("it signs, and this node has no key to sign with")
	}
	return s.h.c.Signer.Sign(s.o.Name, b)
}

func (s *stepHost) Verify(id parley.ID, b, sig []byte) bool {
	return s.h.c.Signer != nil && s.h.c.Signer.Verify(s.o.Name, id, b, sig)
}

// Refused counts a refusal, and logs it the first time.
func (s *stepHost) Refused(_, from parley.ID, why string) {
	r := refusal{from, why}
	if s.refused[r]++; s.refused[r] == 1 {
		s.h.c.Log.Info("message refused", slog.String("machine", s.o.Name), slog.Int("from", int(from)),
			slog.String("reason", why))
	}
	(*Process)(s).note(trace.Event{Op: trace.Refuse, Peer: from, Msg: parley.Msg{Body: []byte(why)}})
}
