package rsm_test

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/replica/rsm"
	"parley/sim"
	"parley/stack"
)

func causally(n int) parley.Protocol {
	c := fifo.New(fifo.Config{N: n})
	return stack.New(diffusion.New(diffusion.Config{N: n}), c, causal.New(causal.Config{N: n}))
}

// The lecture's atomic broadcast has one order, but not FIFO. Several requests at once at one process still
// lose no command and no answer is out of turn.
func TestOwnCommandsOverNoFIFO(t *testing.T) {
	for seed := range uint64(100) {
		p := over(atomic.New(atomic.Config{N: 3}), rsm.Config{})
		opt := sim.Options{Protocol: p, Seed: seed}
		for k := range 5 {
			opt.Requests = append(opt.Requests, ask(1, parley.Tick(10+k), fmt.Sprint("deposit ", 1+k)),
				ask(2, parley.Tick(10+k), "interest 1"))
		}
		s := sim.Run(opt)
		judge(t, seed, p, s)
		for _, property := range []string{rsm.OneMachine, rsm.Completion} {
			if x := promised(t, p, s.RunConditions(), property); !x.Holds {
				t.Fatalf("%s is not promised: %s", property, x.Because)
			}
		}
	}
}

// A restarted process is another client: its first command is not taken for an earlier one, and is applied.
func TestLivesAreClients(t *testing.T) {
	for seed := range uint64(30) {
		p := over(causally(3), rsm.Config{})
		s := sim.Run(sim.Options{
			Protocol: p, Seed: seed, Crashes: []sim.Crash{{At: 1, When: 4000, Back: 2000}},
			Requests: []sim.Request{ask(1, 10, "deposit 150"), ask(1, 9000, "withdraw 50")},
		})
		judge(t, seed, p, s)
		got := answers(&s.History)
		if got[0] != "1:1150 2:1100 " || got[2] != got[0] || got[1] != "1:1150 1:950 " {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
}

// No process can use up the numbers of another process or client.
func TestNoProcessRequestsForAnother(t *testing.T) {
	b := newBench(t, rsm.Config{N: 2, New: account}, 0)
	b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
	own := b.effects[0].Msg
	b.receive(1, parley.Msg{Kind: 1, Value: own.Value, Seq: 1, Body: []byte("deposit 7")})
	b.receive(1, parley.Msg{Kind: 1, Value: own.Value, Seq: 1<<63 - 1, Body: []byte("deposit 7")})
	b.receive(1, parley.Msg{Kind: 1, Value: 5, Seq: 1<<64 - 1, Body: []byte("deposit 7")})
	b.receive(1, parley.Msg{Kind: 1, Value: 5, Seq: 0, Body: []byte("deposit 7")})
	if n := b.refused["command without a number, or in the name of another"]; n != 4 || len(b.effects) != 0 {
		t.Errorf("refused %v, and asks for %v", b.refused, b.effects)
	}
	b.request(parley.Msg{Kind: rsm.Command, Value: own.Value, Seq: 1})
	b.request(parley.Msg{Kind: rsm.Command, Value: 5, Seq: 1 << 63})
	if n := b.refused["request of another kind"]; n != 2 {
		t.Errorf("refused %v", b.refused)
	}
	b.receive(0, own)
	if len(b.effects) != 1 || string(b.effects[0].Msg.Body) != "1001" {
		t.Errorf("its own command: %v", b.effects)
	}
	for range rsm.Queue + 5 {
		b.request(parley.Msg{Kind: parley.Carried, Body: []byte("deposit 1")})
	}
	if b.refused["too many commands of its own"] != 5 {
		t.Errorf("refused %v", b.refused)
	}
}

// A command older than a client's last one is promised no answer. Clients that send requests through another
// process do not delay that process's own answers.
func TestOldNumbersAskedAgain(t *testing.T) {
	p := over(sequencer(3), rsm.Config{})
	s := sim.Run(sim.Options{Protocol: p, Seed: 1, FIFO: true, Requests: []sim.Request{
		command(0, 5000, 77, 1, "deposit 100"), command(1, 9000, 77, 2, "balance"),
		command(2, 12000, 77, 1, "deposit 100"), command(2, 12000, 78, 1, "balance"),
	}})
	judge(t, 1, p, s)
	if x := promised(t, p, s.RunConditions(), rsm.Completion); !x.Holds {
		t.Error(x)
	}
	s.History.Deliveries = s.History.Deliveries[:len(s.History.Deliveries)-3]
	for _, property := range p.Properties {
		if property.Name == rsm.Completion && property.Check(&s.History) == nil {
			t.Error("the last command has no answer, and nobody misses it")
		}
	}
}

// Runs that are as one machine pass; each change of one breaks it.
func TestAsOneMachine(t *testing.T) {
	p := over(sequencer(3), rsm.Config{})
	run := func() *parley.History {
		return &sim.Run(sim.Options{Protocol: p, Seed: 1, FIFO: true, Requests: []sim.Request{
			ask(0, 10, "deposit 1"), ask(1, 20, "interest 2"), ask(2, 5000, "balance"), ask(0, 9000, "deposit 2"),
		}}).History
	}
	if err := broken(p, rsm.OneMachine, run()); err != nil {
		t.Fatal(err)
	}
	// own returns the answer of a process to itself at a position.
	own := func(h *parley.History, position uint64) *parley.ExternalEvent {
		for i := range h.Deliveries {
			if d := &h.Deliveries[i]; d.At == d.From && d.Msg.Seq == position {
				return d
			}
		}
		t.Fatalf("nobody answers at position %d", position)
		return nil
	}
	for says, change := range map[string]func(h *parley.History){
		"but one machine would answer 1001": func(h *parley.History) { own(h, 1).Msg.Body = []byte("1002") },
		"has two commands":                  func(h *parley.History) { own(h, 4).Msg.Seq = 1 },
		"but received no such command":      func(h *parley.History) { h.Requests = h.Requests[:3] },
		"when position 3 was answered": func(h *parley.History) {
			own(h, 3).Msg.Seq, own(h, 2).Msg.Seq = 2, 3
		},
		"but one machine would answer 1024.02": func(h *parley.History) { h.Requests[3].Msg.Body = []byte("deposit 3") },
	} {
		h := run()
		change(h)
		if err := broken(p, rsm.OneMachine, h); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q was expected, and it is %v", says, err)
		}
	}
}
