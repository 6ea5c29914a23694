package rsm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/replica/bank"
	"parley/replica/rsm"
	"parley/sim"
	"parley/stack"
)

func account() rsm.Application { return bank.New() }

// sequencer is the simplest total order: process 0 numbers all messages, on links that keep their order. It
// tolerates no fault and serves only these tests.
func sequencer(n int) parley.Protocol {
	return parley.Protocol{
		Name: "sequencer", N: n, M: 0, Serves: true, Kinds: []string{"", "ASK", "ORDER"},
		New: func(parley.ID) parley.Machine { return new(orders) },
		Promises: func(parley.RunConditions) (out []parley.Promise) {
			for _, p := range []string{problem.TotalOrder, problem.Agreement, problem.Validity, problem.Integrity} {
				out = append(out, parley.Promise{Property: p, Holds: true, Because: "process 0 is correct"})
			}
			return out
		},
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

// over returns a service that relies on the promises of the broadcast below.
func over(beneath parley.Protocol, c rsm.Config) parley.Protocol {
	c.N, c.Beneath = beneath.N, beneath.Promises
	if c.Order == nil {
		c.Order = []string{problem.TotalOrder, problem.Agreement}
	}
	if c.New == nil {
		c.New = account
	}
	return stack.New(beneath, rsm.New(c))
}

func ask(at parley.ID, when parley.Tick, command string) sim.Request {
	return sim.Request{At: at, When: when, Msg: problem.Request([]byte(command))}
}

func command(at parley.ID, when parley.Tick, client, seq uint64, body string) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{
		Kind: rsm.Command, Value: client, Seq: seq, Body: []byte(body),
	}}
}

// answers returns what each process answered, in its order.
func answers(h *parley.History) []string {
	out := make([]string, h.N)
	for _, d := range h.Deliveries {
		out[d.At] += fmt.Sprintf("%d:%s ", d.Msg.Seq, d.Msg.Body)
	}
	return out
}

// judge checks the promises, and that the named properties hold in any case.
func judge(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim, always ...string) {
	t.Helper()
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		if v.Violated() || v.Broken != nil && slices.Contains(always, v.Property.Name) {
			t.Fatalf("seed %d: %s: %v\n%q", seed, v.Property.Name, v.Broken, answers(&s.History))
		}
	}
}

// broken returns what breaks a property, or nil.
func broken(p parley.Protocol, property string, h *parley.History) error {
	i := slices.IndexFunc(p.Properties, func(x parley.Property) bool { return x.Name == property })
	return p.Properties[i].Check(h)
}

// promised returns the promise of a property for a run.
func promised(t *testing.T, p parley.Protocol, a parley.RunConditions, property string) parley.Promise {
	t.Helper()
	all := p.Promises(a)
	i := slices.IndexFunc(all, func(p parley.Promise) bool { return p.Property == property })
	if i < 0 {
		t.Fatalf("%s: no word of it", property)
	}
	return all[i]
}

// The lecture's bank account: a deposit and the interest are broadcast at the same
// time. In causal order the replicas may apply them either way and end with 1242 and 1230 dollars; in one
// total order they cannot.
func TestBankAccount(t *testing.T) {
	requests := []sim.Request{ask(0, 10, "deposit 150"), ask(1, 10, "interest 8")}
	parted := 0
	for seed := range uint64(100) {
		tower := stack.New(diffusion.New(diffusion.Config{N: 2}), fifo.New(fifo.Config{N: 2}),
			causal.New(causal.Config{N: 2}))
		p := over(tower, rsm.Config{Every: 2})
		s := sim.Run(sim.Options{Protocol: p, Seed: seed, Requests: requests})
		judge(t, seed, p, s)
		got := answers(&s.History)
		if got[0] != got[1] {
			parted++
			if got[0] != "1:1150 2:1242 " || got[1] != "1:1080 2:1230 " {
				t.Fatalf("seed %d: %q", seed, got)
			}
			if len(s.History.Indications) != 2 || s.History.Indications[0].Msg.Kind != rsm.Differs {
				t.Fatalf("seed %d: the copies differ and say %+v", seed, s.History.Indications)
			}
			for _, property := range []string{rsm.Consistency, rsm.OneMachine} {
				if broken(p, property, &s.History) == nil {
					t.Fatalf("seed %d: %s is not broken", seed, property)
				}
			}
		}
		p = over(sequencer(2), rsm.Config{Every: 2})
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

// A replica whose state is not a function of the commands is reported by all, and stops.
func TestDivergenceIsNamed(t *testing.T) {
	for seed := range uint64(50) {
		made := 0
		p := over(sequencer(4), rsm.Config{Every: 3, New: func() rsm.Application {
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
			if i.Msg.Kind == rsm.Stopped && i.At == 2 && len(i.Msg.Body) > 0 {
				continue
			}
			if i.Msg.Kind != rsm.Diverged || i.Msg.Origin != 2 {
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
		s.History.Faulty.Add(2) // a replica that is no deterministic machine
		judge(t, seed, p, s)
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
