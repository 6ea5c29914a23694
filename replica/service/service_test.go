package service_test

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/replica/bank"
	"parley/replica/service"
	"parley/sim"
	"parley/stack"
)

func account() service.Application { return bank.New() }

// sequencer is the least total order there is: process 0 numbers all messages, on
// links that keep their order. It bears no fault and is here for tests alone.
func sequencer(n int) parley.Protocol {
	return parley.Protocol{
		Name: "sequencer", N: n, M: 0, Serves: true, Kinds: []string{"", "ASK", "ORDER"},
		New: func(parley.ID) parley.Machine { return new(orders) },
	}
}

type orders struct{ parley.Base }

func (o *orders) Request(s *parley.Step, m parley.Msg) {
	if s.Self == 0 {
		o.order(s, 0, m.Body)
		return
	}
	s.Send(0, parley.Msg{Kind: 1, Body: m.Body})
}

func (o *orders) order(s *parley.Step, from parley.ID, body []byte) {
	s.SendAll(parley.Msg{Kind: 2, Origin: from, Body: body})
	s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: body})
}

func (o *orders) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == 1 {
		o.order(s, from, m.Body)
	} else {
		s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Body: m.Body})
	}
}

func (o *orders) State(*parley.Vars) {}

func over(beneath parley.Protocol, c service.Config) parley.Protocol {
	c.N = beneath.N
	if c.New == nil {
		c.New = account
	}
	return stack.New(beneath, service.New(c))
}

func ask(at parley.ID, when parley.Tick, command string) sim.Request {
	return sim.Request{At: at, When: when, Msg: problem.Request([]byte(command))}
}

func command(at parley.ID, when parley.Tick, client, seq uint64, body string) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{
		Kind: service.Command, Value: client, Seq: seq, Body: []byte(body),
	}}
}

// answers are what each process answered, in its order.
func answers(h *parley.History) []string {
	out := make([]string, h.N)
	for _, d := range h.Deliveries {
		out[d.At] += fmt.Sprintf("%d:%s ", d.Msg.Seq, d.Msg.Body)
	}
	return out
}

func judge(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim) {
	t.Helper()
	for _, v := range parley.Judge(p, s.Assumptions(), &s.History) {
		if v.Property.Mode != parley.Sometimes && v.Violated() {
			t.Fatalf("seed %d: %s: %v", seed, v.Property.Name, v.Broken)
		}
	}
}

// The lecture's bank account: a deposit and the interest are broadcast at the same
// time. In causal order the copies may apply them either way and end with 1242 and
// 1230 dollars; in one total order they cannot.
func TestBankAccount(t *testing.T) {
	requests := []sim.Request{ask(0, 10, "deposit 150"), ask(1, 10, "interest 8")}
	parted := 0
	for seed := range uint64(100) {
		tower := stack.New(diffusion.New(diffusion.Config{N: 2}), fifo.New(fifo.Config{N: 2}),
			causal.New(causal.Config{N: 2}))
		p := over(tower, service.Config{Every: 2})
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: requests})
		got := answers(&s.History)
		if got[0] != got[1] {
			parted++
			if got[0] != "1:1150 2:1242 " || got[1] != "1:1080 2:1230 " {
				t.Fatalf("seed %d: %q", seed, got)
			}
			if len(s.History.Indications) != 2 || s.History.Indications[0].Msg.Kind != service.Differs {
				t.Fatalf("seed %d: the copies differ and say %+v", seed, s.History.Indications)
			}
		}
		p = over(sequencer(2), service.Config{Every: 2})
		s = sim.Run(sim.Options{Protocol: p, Seed: seed, FIFO: true, Requests: requests})
		if got := answers(&s.History); got[0] != got[1] || len(s.History.Indications) > 0 {
			t.Fatalf("seed %d: in total order %q", seed, got)
		}
		judge(t, seed, p, s)
	}
	if parted == 0 {
		t.Error("in causal order the copies never parted")
	}
}

// A command that a client repeats, at whatever copy, is answered again and applied
// once (client sessions).
func TestRetriesApplyOnce(t *testing.T) {
	for seed := range uint64(50) {
		p := over(sequencer(3), service.Config{})
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, FIFO: true, Requests: []sim.Request{
			command(1, 10, 77, 1, "deposit 100"), command(2, 20, 77, 1, "deposit 100"),
			command(0, 5000, 77, 1, "deposit 100"), command(1, 9000, 77, 2, "balance"),
			command(2, 12000, 77, 1, "deposit 100"), // of long ago: not even answered
		}})
		for id, got := range answers(&s.History) {
			if got != "1:1100 1:1100 1:1100 2:1100 " {
				t.Fatalf("seed %d: process %d answers %s", seed, id, got)
			}
		}
		if s.Stats.Refused["command that was answered long ago"] != 3 {
			t.Fatalf("seed %d: refused %v", seed, s.Stats.Refused)
		}
	}
}

// A copy whose state is not a function of the commands is named by all, and stops.
func TestDivergenceIsNamed(t *testing.T) {
	for seed := range uint64(50) {
		made := 0
		p := over(sequencer(4), service.Config{Every: 3, New: func() service.Application {
			made++
			if made == 3 { // the one of process 2
				return &forgetful{Account: bank.New()}
			}
			return bank.New()
		}})
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true}
		for k := range 12 {
			opt.Requests = append(opt.Requests, ask(parley.ID(k%4), parley.Tick(10+2000*k), "deposit 10"))
		}
		s := sim.Run(opt)
		named := make(map[parley.ID]uint64)
		for _, i := range s.History.Indications {
			if i.Msg.Kind != service.Diverged || i.Msg.Origin != 2 {
				t.Fatalf("seed %d: process %d indicates %+v", seed, i.At, i.Msg)
			}
			named[i.At] = i.Msg.Seq
		}
		if len(named) != 4 || named[0] != 6 {
			t.Fatalf("seed %d: named by %v, and at position 6 the states differ first", seed, named)
		}
		if got := answers(&s.History); strings.Contains(got[2], "9:") {
			t.Fatalf("seed %d: process 2 goes on: %s", seed, got[2])
		}
	}
}

// forgetful ignores the fifth command.
type forgetful struct {
	*bank.Account
	n int
}

func (f *forgetful) Apply(c []byte) []byte {
	if f.n++; f.n == 5 {
		return []byte(f.String())
	}
	return f.Account.Apply(c)
}

// A spare applies and is silent, until an ordered command makes it active; another
// demands that m+1 copies have the same state before any answers.
func TestSetupChangesInOrder(t *testing.T) {
	first := service.Setup{Active: parley.SetOf(0, 1, 2), M: 1, Checked: true}
	then := service.Setup{Active: parley.SetOf(0, 2, 3)}
	for seed := range uint64(50) {
		p := over(sequencer(4), service.Config{Setup: first})
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, FIFO: true, Requests: []sim.Request{
			ask(0, 10, "deposit 1"), ask(1, 3000, "deposit 2"),
			{At: 2, When: 9000, Msg: parley.Msg{Kind: service.Configure, Body: then.Append(nil)}},
			ask(0, 15000, "deposit 3"), ask(3, 18000, "deposit 4"),
			{At: 2, When: 20000, Msg: parley.Msg{Kind: service.Configure, Body: []byte{9}}},
		}})
		got := answers(&s.History)
		whole, early, late := "1:1001 2:1003 3:1006 4:1010 ", "1:1001 2:1003 ", "3:1006 4:1010 "
		if got[0] != whole || got[1] != early || got[2] != whole || got[3] != late {
			t.Fatalf("seed %d: %q", seed, got)
		}
		for _, d := range s.History.Deliveries[:3] {
			if d.Msg.Seq == 1 && s.Now() > 0 && d.When < 12 {
				t.Fatalf("seed %d: answered at %d, before anybody could confirm", seed, d.When)
			}
		}
	}
}
