package parleytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// hostile sends machines messages that no correct process sends, among honest ones: none may stop a machine
// or corrupt its state.
func hostile(s suite) error {
	said := spoken(s, 1)
	for seed := range uint64(s.share(2)) {
		r := rand.New(rand.NewPCG(seed, 4))
		if err := assault(s, r.IntN, said, 60); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

// Fuzz lets the fuzzer choose messages that machines of p receive, mixed with honest messages, timeouts and requests.
func Fuzz(f *testing.F, p parley.Protocol, options ...Options) {
	s := newSuite(p, options)
	said := spoken(s, 1)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 5))
		b := make([]byte, 256)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := assault(s, reader(script), said, 60); err != nil {
			t.Fatal(err)
		}
	})
}

// reader returns a function that answers choices from the fuzzer's bytes, and with 0 after their end.
func reader(script []byte) func(n int) int {
	return func(n int) int {
		x := 0
		for k := n - 1; k > 0; k >>= 8 {
			if len(script) == 0 {
				return 0
			}
			x, script = x<<8|int(script[0]), script[1:]
		}
		return x % max(n, 1)
	}
}

// spoken returns the events of a run with as many faults as the protocol tolerates.
func spoken(s suite, seed uint64) []trace.Event {
	var out []trace.Event
	r := s.honest(s.p, seed)
	for id := range parley.ID(min(s.p.M, s.p.N-1)) {
		if s.byzantine() {
			if r.Faulty == nil {
				r.Faulty = make(map[parley.ID]faulty.Behavior)
			}
			r.Faulty[parley.ID(s.p.N)-1-id] = faulty.Random
		}
	}
	log := &trace.Log{Keep: true}
	r.Log = log
	sim.Run(r.Options) // the run need not end: some of its messages are enough
	for _, e := range log.Events {
		if e.Op == trace.Send {
			out = append(out, e)
		}
	}
	return out
}

// assault runs one machine against an adversary with the given choices and returns an error if it breaks.
func assault(s suite, choose func(n int) int, said []trace.Event, moves int) (err error) {
	var last string
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a machine panics: %v\nafter %s\n%s", p, last, debug.Stack())
		}
	}()
	self := parley.ID(choose(s.p.N))
	b := newBench(s.p, self, choose)
	b.do(0, func() { b.machine.Start(&b.step) })
	requests := s.inputs(s.p, rand.New(rand.NewPCG(uint64(choose(256)), 1)))
	for range moves {
		switch move := choose(14); {
		case move == 0 && len(requests) > 0:
			q := requests[choose(len(requests))].Msg
			last = fmt.Sprintf("request %v", q)
			b.do(0, func() { b.machine.Request(&b.step, q) })
		case move <= 2 && len(b.timers) > 0:
			last = "a timeout"
			b.expire(choose(len(b.timers)))
		case move == 3:
			last = "a load"
			saved := parley.Save(b.machine, b.step.Now, nil)
			fresh := s.p.New(self)
			if err := checkLoad(fresh, b.step.Now, saved); err != nil {
				return fmt.Errorf("process %d: %w", self, err)
			}
			b.machine = fresh
		case move == 4 && !s.o.NeverBack:
			last = "a crash"
			b.restart(s.p, self)
		case move == 5 && s.p.Timing == parley.Asynchronous:
			of := parley.ID(choose(s.p.N))
			last = fmt.Sprintf("a suspicion of %d", of)
			b.do(0, func() { b.machine.Receive(&b.step, self, parley.Msg{Kind: parley.Suspect, Origin: of}) })
		case s.p.N > 1:
			from, path, m := message(s, choose, said, self)
			b.step.Epoch = epoch(s, choose, said)
			last = fmt.Sprintf("%v from %d at path %#x in epoch %d", m, from, path, b.step.Epoch)
			inspect(s, parley.Env{From: from, To: self, Epoch: b.step.Epoch, Path: path}, m)
			b.do(path, func() { b.machine.Receive(&b.step, from, m) })
			b.step.Epoch = 0
		}
	}
	parley.Show(b.machine, b.step.Now)
	return nil
}

// message returns a message for self: an honest one, a changed one, or bytes that happen to be a message.
func message(s suite, choose func(n int) int, said []trace.Event, self parley.ID) (parley.ID, parley.Path,
	parley.Msg) {
	from := parley.ID(choose(s.p.N))
	if from == self {
		from = (from + 1) % parley.ID(s.p.N)
	}
	if len(said) == 0 || choose(8) == 0 {
		raw := make([]byte, choose(64))
		for i := range raw {
			raw[i] = byte(choose(256))
		}
		if e, m, err := parley.Decode(raw); err == nil {
			return from, e.Path, m
		}
		return from, parley.Path(choose(16)), parley.Msg{Kind: parley.Kind(choose(int(parley.Local))), Body: raw}
	}
	e := said[choose(len(said))]
	if e.At != self && choose(4) > 0 {
		from = e.At
	}
	if choose(2) == 0 {
		return from, e.Path, e.Msg
	}
	if choose(8) == 0 {
		e.Path = parley.Path(number(choose, uint64(e.Path)))
	}
	return from, e.Path, mutated(choose, s.p.N, e.Msg)
}

// epoch returns an epoch for a message: that of another message, or any.
func epoch(s suite, choose func(n int) int, said []trace.Event) uint32 {
	if len(said) > 0 && choose(4) > 0 {
		return said[choose(len(said))].Epoch
	}
	return uint32(number(choose, 1))
}

// inspect calls the functions of the protocol that read messages with m.
func inspect(s suite, e parley.Env, m parley.Msg) {
	if s.p.Explain != nil {
		for range s.p.Explain(e, m, parley.ID.String) {
			continue
		}
	}
	if s.p.Size != nil {
		s.p.Size(e, m)
	}
}

// mutated returns m with something changed in it or in a message inside it, because frames and the messages
// of layers contain messages.
func mutated(choose func(n int) int, n int, m parley.Msg) parley.Msg {
	if inner := messages(m.Body); len(inner) > 0 && choose(2) == 0 {
		which := choose(len(inner))
		m.Body = nil
		for i, one := range inner {
			if i == which {
				one.Msg = mutated(choose, n, one.Msg)
			}
			m.Body = parley.AppendMsg(m.Body, one.Path, one.Msg)
		}
		return m
	}
	switch choose(8) {
	case 0:
		m.Kind = parley.Kind(choose(8))
	case 1:
		m.Origin = [...]parley.ID{0, parley.ID(choose(n)), parley.ID(n), parley.MaxProcesses, parley.All}[choose(5)]
	case 2:
		m.Seq = number(choose, m.Seq)
	case 3:
		m.Value = number(choose, m.Value)
	case 4:
		m.Body = m.Body[:choose(len(m.Body)+1)]
	case 5:
		m.Body = append(m.Body[:len(m.Body):len(m.Body)], byte(choose(256)))
	default:
		if len(m.Body) == 0 {
			m.Body = []byte{byte(choose(256))}
			break
		}
		m.Body = slices.Clone(m.Body)
		for range 1 + choose(3) {
			m.Body[choose(len(m.Body))] = [...]byte{0, 1, 0x7F, 0x80, 0xFF, byte(choose(256))}[choose(6)]
		}
	}
	return m
}

// messages returns the messages that a body consists of, nil if it does not consist of messages.
func messages(body []byte) []parley.Outgoing {
	var out []parley.Outgoing
	for len(body) > 0 {
		path, m, rest, err := parley.ReadMsg(body)
		if err != nil {
			return nil
		}
		out, body = append(out, parley.Outgoing{Path: path, Msg: m}), rest
	}
	return out
}

// number returns a number near x, or at an end of a range.
func number(choose func(n int) int, x uint64) uint64 {
	return [...]uint64{0, 1, x + 1, x - 1, x ^ 1<<choose(64), 1 << 32, 1 << 63, math.MaxUint64}[choose(8)]
}

// bench holds one machine, and acts as its host.
type bench struct {
	sim.Signer
	machine parley.Machine
	step    parley.Step
	timers  []ticking
	lives   uint64          // the number of restarts
	state   []byte          // what Compact stored in place of records
	log     []parley.Record // the records since then
	choose  func(n int) int
}

type ticking struct {
	path   parley.Path
	number parley.Timer
	at     parley.Tick
}

func newBench(p parley.Protocol, self parley.ID, choose func(n int) int) *bench {
	b := &bench{machine: p.New(self), choose: choose, Signer: sim.Ideal(1)}
	b.step = parley.Step{Self: self, N: p.N, Members: parley.SetOf(self), Host: b}
	return b
}

// do runs one clause and records the timers that it sets.
func (b *bench) do(path parley.Path, clause func()) {
	b.step.Path = path
	b.step.Effects = b.step.Effects[:0]
	clause()
	compact := false
	for _, e := range b.step.Effects {
		switch e.Op {
		case parley.OpSetTimer, parley.OpStopTimer:
			b.timers = slices.DeleteFunc(b.timers, func(t ticking) bool { return t.path == e.Path && t.number == e.Timer })
			if e.Op == parley.OpSetTimer {
				b.timers = append(b.timers, ticking{e.Path, e.Timer, b.step.Now + e.After})
			}
		case parley.OpAppend:
			b.log = append(b.log, parley.Record{Path: e.Path, Body: e.Msg.Body})
		case parley.OpCompact:
			compact = true
		case parley.OpBroadcast, parley.OpRequest:
			panic("it asks a layer beneath, and there is none that serves")
		}
	}
	if compact {
		b.state, b.log = parley.SaveDurable(b.machine, b.step.Now, nil), nil
	}
}

// restart replaces the crashed machine by one with its durable state.
func (b *bench) restart(p parley.Protocol, self parley.ID) {
	b.machine, b.timers = p.New(self), nil
	if len(b.state) > 0 && !parley.LoadDurable(b.machine, b.step.Now, b.state) {
		panic("it does not load the durable state that it saved")
	}
	b.lives++
	b.step.Restart, b.step.Log, b.step.Life = true, b.log, b.lives
	b.do(0, func() { b.machine.Start(&b.step) })
	b.step.Restart, b.step.Log, b.step.Life = false, nil, 0
}

// expire expires a timer; the clock never goes back.
func (b *bench) expire(i int) {
	t := b.timers[i]
	b.timers = slices.Delete(b.timers, i, i+1)
	b.step.Now = max(b.step.Now, t.at)
	b.do(t.path, func() { b.machine.Timeout(&b.step, t.number) })
}

func (b *bench) Choose(n int) int                     { return b.choose(n) }
func (b *bench) Refused(parley.ID, parley.ID, string) {}
