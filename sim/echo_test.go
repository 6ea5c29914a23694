package sim_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

// Clients ask a server, process 0, to add up numbers, over links that lose and duplicate messages, while any
// process may crash and restart. A client numbers its requests, records them durably and repeats each until
// the answer arrives. The server records durably what it has added, and answers again without adding again.
//
// ask: Seq is the client's number, Value the number to add.
// answer: Seq is the client's number, Value the sum after the addition.
const (
	ask parley.Kind = iota + 1
	answer
)

const retry parley.Tick = 2000

func newEcho(n, compactEvery int) parley.Protocol {
	return parley.Protocol{
		Name: "echo", N: n, M: 0, Faults: parley.CrashFaults, Kinds: []string{"", "ASK", "ANSWER"},
		New: func(self parley.ID) parley.Machine {
			if self == 0 {
				return &server{every: compactEvery, done: make([][]added, n)}
			}
			return &client{every: compactEvery}
		},
		Properties: []parley.Property{{
			Name: "exactly once", Says: "no request is added twice, and every answer is the sum after it",
			Check: exactlyOnce,
		}},
	}
}

// exactlyOnce checks only the answers: each request has one answer, and no two requests have the same.
func exactlyOnce(h *parley.History) error {
	sums := make(map[string]uint64)
	for _, d := range h.Deliveries {
		id := fmt.Sprintf("%d of %d", d.Msg.Seq, d.At)
		if before, again := sums[id]; again && before != d.Msg.Value {
			return fmt.Errorf("request %s is answered by %d and by %d", id, before, d.Msg.Value)
		}
		sums[id] = d.Msg.Value
	}
	all := make(map[uint64]string)
	for id, sum := range sums {
		if other, again := all[sum]; again {
			return fmt.Errorf("requests %s and %s have the same answer %d", id, other, sum)
		}
		all[sum] = id
	}
	return nil
}

// client is one client.
type client struct {
	parley.Base
	every   int
	records int // since the last compaction
	last    uint64
	open    []open // requested and not answered
}

type open struct{ seq, value uint64 }

func (c *client) Start(s *parley.Step) {
	for _, r := range s.Log {
		seq, n := binary.Uvarint(r.Body)
		value, _ := binary.Uvarint(r.Body[n:])
		if value == 0 {
			c.close(seq)
		} else {
			c.last, c.open = seq, append(c.open, open{seq, value})
		}
	}
	c.records = len(s.Log)
	c.Timeout(s, 0)
}

func (c *client) close(seq uint64) {
	c.open = slices.DeleteFunc(c.open, func(o open) bool { return o.seq == seq })
}

func (c *client) note(s *parley.Step, seq, value uint64) {
	s.Append(binary.AppendUvarint(binary.AppendUvarint(nil, seq), value))
	if c.records++; c.every > 0 && c.records >= c.every {
		c.records = 0
		s.Compact()
	}
}

func (c *client) Request(s *parley.Step, m parley.Msg) {
	c.last++
	c.open = append(c.open, open{c.last, m.Value})
	c.note(s, c.last, m.Value)
	s.Send(0, parley.Msg{Kind: ask, Seq: c.last, Value: m.Value})
	s.SetTimer(0, retry)
}

func (c *client) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if from != 0 || m.Kind != answer || !slices.ContainsFunc(c.open, func(o open) bool { return o.seq == m.Seq }) {
		s.Refuse(from, "no answer that is waited for")
		return
	}
	c.close(m.Seq)
	c.note(s, m.Seq, 0)
	s.Deliver(from, m)
}

func (c *client) Timeout(s *parley.Step, _ parley.Timer) {
	for _, o := range c.open {
		s.Send(0, parley.Msg{Kind: ask, Seq: o.seq, Value: o.value})
	}
	if len(c.open) > 0 {
		s.SetTimer(0, retry)
	}
}

func (c *client) State(v *parley.Vars) {
	parley.Num(v, "records", &c.records)
	v.Durable(func() {
		parley.Num(v, "last", &c.last)
		parley.Slice(v, "open", &c.open, func(_ int, o *open) {
			parley.Num(v, "seq", &o.seq)
			parley.Num(v, "value", &o.value)
		})
	})
}

// server adds what clients ask for, once for each number, and answers with the sum.
type server struct {
	parley.Base
	every   int
	records int
	sum     uint64
	done    [][]added // by client
}

type added struct{ seq, sum uint64 }

func (p *server) Start(s *parley.Step) {
	for _, r := range s.Log {
		p.add(parley.ID(r.Body[0]), binary.LittleEndian.Uint64(r.Body[1:]), binary.LittleEndian.Uint64(r.Body[9:]))
	}
	p.records = len(s.Log)
}

func (p *server) add(from parley.ID, seq, value uint64) {
	p.sum += value
	p.done[from] = append(p.done[from], added{seq, p.sum})
}

func (p *server) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != ask {
		s.Refuse(from, "not asked")
		return
	}
	i := slices.IndexFunc(p.done[from], func(a added) bool { return a.seq == m.Seq })
	if i < 0 {
		i = len(p.done[from])
		p.add(from, m.Seq, m.Value)
		b := binary.LittleEndian.AppendUint64([]byte{byte(from)}, m.Seq)
		s.Append(binary.LittleEndian.AppendUint64(b, m.Value))
		if p.records++; p.every > 0 && p.records >= p.every {
			p.records = 0
			s.Compact()
		}
	}
	s.Send(from, parley.Msg{Kind: answer, Seq: m.Seq, Value: p.done[from][i].sum})
}

func (p *server) State(v *parley.Vars) {
	parley.Num(v, "records", &p.records)
	v.Durable(func() {
		parley.Num(v, "sum", &p.sum)
		parley.PerProcess(v, "done", p.done, func(_ parley.ID, list *[]added) {
			parley.Slice(v, "added", list, func(_ int, a *added) {
				parley.Num(v, "seq", &a.seq)
				parley.Num(v, "sum", &a.sum)
			})
		})
	})
}

// echoInputs requests powers of two, so that a sum shows what was added.
func echoInputs(*rand.Rand) []sim.Request {
	var out []sim.Request
	for k := range 6 {
		out = append(out, sim.Request{
			At: parley.ID(1 + k%2), When: parley.Tick(1500 * k), Msg: parley.Msg{Kind: parley.Propose, Value: 1 << k},
		})
	}
	return out
}

func echoRun(seed uint64, every int, crashes ...sim.Crash) (*sim.Sim, *trace.Log) {
	log := &trace.Log{Keep: true}
	return sim.Run(sim.Options{
		Protocol: newEcho(3, every), Seed: seed, Loss: 0.3, Twice: 0.2, Requests: echoInputs(nil), Crashes: crashes,
		Log: log,
	}), log
}

// judgeEcho returns what is wrong with a run that is over. Only the log shows what was recorded: a request
// that a client's crash erased gets no answer, and a history does not distinguish it from others.
func judgeEcho(s *sim.Sim, log *trace.Log) error {
	if err := exactlyOnce(&s.History); err != nil {
		return err
	}
	answered := make(map[open]bool)
	for _, d := range s.History.Deliveries {
		answered[open{uint64(d.At), d.Msg.Seq}] = true
	}
	var want uint64
	for _, e := range log.Events {
		if e.Op != trace.Append || e.At == 0 {
			continue
		}
		seq, n := binary.Uvarint(e.Msg.Body)
		value, _ := binary.Uvarint(e.Msg.Body[n:])
		if want += value; value == 0 {
			answered[open{uint64(e.At), seq}] = true // it recorded the answer, and crashed before the delivery
		}
	}
	for _, e := range log.Events {
		if e.Op == trace.Append && e.At != 0 {
			if seq, _ := binary.Uvarint(e.Msg.Body); !answered[open{uint64(e.At), seq}] {
				return fmt.Errorf("request %d of %d is not answered", seq, e.At)
			}
		}
	}
	if sum := s.Machine(0).(*server).sum; sum != want {
		return fmt.Errorf("the sum of what was noted is %d, and the server has %d", want, sum)
	}
	return nil
}

// Without crashes, over links that lose and duplicate: everything is answered, with many lost and duplicate
// messages.
func TestEchoLossy(t *testing.T) {
	var lost, sent, received uint64
	for seed := range uint64(200) {
		s, log := echoRun(seed, 3)
		if err := judgeEcho(s, log); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if sum := s.Machine(0).(*server).sum; sum != 63 || len(s.History.Deliveries) != 6 {
			t.Fatalf("seed %d: sum %d, %d answers", seed, sum, len(s.History.Deliveries))
		}
		lost, sent, received = lost+s.Stats.Lost, sent+s.Stats.Sends, received+s.Stats.Deliveries
	}
	if share := float64(lost) / float64(sent); share < 0.27 || share > 0.33 {
		t.Errorf("%.3f of the messages were lost, not 0.3", share)
	}
	if share := float64(received) / float64(sent-lost); share < 1.17 || share > 1.23 {
		t.Errorf("%.3f copies of a message arrived, not 1.2", share)
	}
}

// everyCrash calls f for a crash of each process in each of its steps after each number of effects.
func everyCrash(t *testing.T, seed uint64, every int, f func(c sim.Crash)) {
	t.Helper()
	_, log := echoRun(seed, every)
	steps := make(map[parley.ID]int)
	for _, e := range log.Events {
		switch e.Op {
		case trace.Start, trace.Request, trace.Receive, trace.Timeout:
			steps[e.At]++
		}
	}
	if len(steps) != 3 || steps[0] < 6 {
		t.Fatal("no steps", steps)
	}
	for id, k := range steps {
		for step := 1; step <= k; step++ {
			for effects := range 5 {
				f(sim.Crash{At: id, Step: step, Effects: effects, Back: 700})
			}
		}
	}
}

// A crash in any step, before anything is durable, between that and the sends, and between the sends, with
// restart: every recorded request is answered, and none added twice.
func TestEchoCrash(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	runs := 0
	for _, every := range []int{0, 1, 3} {
		for seed := range seeds {
			everyCrash(t, seed, every, func(c sim.Crash) {
				s, log := echoRun(seed, every, c)
				runs++
				if s.Stats.Crashes != 1 {
					t.Fatalf("seed %d %+v: no crash", seed, c)
				}
				if err := judgeEcho(s, log); err != nil {
					t.Fatalf("seed %d, %+v, compacted after %d records: %v", seed, c, every, err)
				}
			})
		}
	}
	t.Log(runs, "runs")
}

// A server that loses its disk adds again, and a client that loses its disk reuses its numbers: the check must
// find both.
func TestEchoLostDisk(t *testing.T) {
	broken := make(map[parley.ID]int)
	everyCrash(t, 1, 3, func(c sim.Crash) {
		c.LostDisk = true
		if judgeEcho(echoRun(1, 3, c)) != nil {
			broken[c.At]++
		}
	})
	if broken[0] == 0 || broken[1]+broken[2] == 0 {
		t.Error("runs broken by a lost disk:", broken)
	}
}

// A process restarts from a compacted log as from all records: runs with and without compaction are otherwise
// the same.
func TestEchoCompact(t *testing.T) {
	crashed := 0
	for seed := range uint64(20) {
		c := sim.Crash{At: parley.ID(seed % 3), Step: 4 + int(seed)/3, Effects: 1 << 20, Back: 700}
		plain, _ := echoRun(seed, 0, c)
		compact, _ := echoRun(seed, 2, c)
		crashed += int(plain.Stats.Crashes)
		if !reflect.DeepEqual(plain.History, compact.History) || !reflect.DeepEqual(plain.Stats, compact.Stats) {
			t.Fatalf("seed %d: another run", seed)
		}
		for id := range parley.ID(3) {
			a := parley.SaveDurable(plain.Machine(id), plain.Now(), nil)
			b := parley.SaveDurable(compact.Machine(id), compact.Now(), nil)
			if !bytes.Equal(a, b) {
				t.Fatalf("seed %d: process %d ends with state %x, and if it compacts with %x", seed, id, a, b)
			}
			state, log := compact.Durable(id)
			if len(state) == 0 || len(log) > 1 {
				t.Fatalf("seed %d: process %d keeps %d records beside a state of %d bytes", seed, id, len(log), len(state))
			}
			if state, log := plain.Durable(id); len(state) > 0 || len(log) < 4 {
				t.Fatalf("seed %d: process %d keeps %d records", seed, id, len(log))
			}
		}
	}
	if crashed < 15 {
		t.Errorf("only %d crashes", crashed)
	}
}

func TestEchoSuite(t *testing.T) {
	parleytest.Suite(t, newEcho(3, 3), parleytest.Options{
		Seeds: 100, Recovers: true, Inputs: echoInputs, Sim: sim.Options{Loss: 0.3, Twice: 0.2},
	})
}
