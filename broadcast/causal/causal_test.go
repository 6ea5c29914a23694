package causal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// hall is a few machines; it keeps what each F-broadcasts for the test to F-deliver.
type hall struct {
	parley.Host
	machines []parley.Machine
	sent     [][]parley.Msg // by sender
	log      [][]string     // by process: the payloads that it C-delivered
	refused  []string
}

func newHall(c causal.Config) *hall {
	h := &hall{sent: make([][]parley.Msg, c.N), log: make([][]string, c.N)}
	p := causal.New(c)
	for id := range parley.ID(c.N) {
		h.machines = append(h.machines, p.New(id))
		h.do(id, func(m parley.Machine, s *parley.Step) { m.Start(s) })
	}
	return h
}

func (h *hall) Refused(_, _ parley.ID, why string) { h.refused = append(h.refused, why) }

// do runs a clause of a process and records the effects.
func (h *hall) do(id parley.ID, clause func(parley.Machine, *parley.Step)) {
	s := &parley.Step{Self: id, N: len(h.log), Host: h, Carried: true}
	clause(h.machines[id], s)
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpBroadcast:
			h.sent[id] = append(h.sent[id], e.Msg)
		case parley.OpDeliver:
			if e.Msg.Origin != e.To || e.Msg.Kind != parley.Carried {
				panic(fmt.Sprintf("%+v", e))
			}
			h.log[id] = append(h.log[id], string(e.Msg.Body))
		}
	}
}

func (h *hall) broadcast(id parley.ID, payload string) {
	h.do(id, func(m parley.Machine, s *parley.Step) { m.Request(s, problem.Request([]byte(payload))) })
}

// arrive F-delivers the seq-th broadcast of a sender, from 1, at a process.
func (h *hall) arrive(id, from parley.ID, seq int) {
	h.receive(id, from, h.sent[from][seq-1])
}

func (h *hall) receive(id, from parley.ID, m parley.Msg) {
	h.do(id, func(mc parley.Machine, s *parley.Step) { mc.Receive(s, from, m) })
}

func payloads(all []causal.Message) (out []string) {
	for _, m := range all {
		out = append(out, string(m.Body))
	}
	return out
}

// prevDlvs is what was C-delivered since the last C-broadcast, in order, including own messages. It is empty
// after the next one.
func TestPrevDlvs(t *testing.T) {
	h := newHall(causal.Config{N: 3})
	prev := func(want ...string) {
		t.Helper()
		if have := payloads(causal.Previous(h.machines[0])); !slices.Equal(have, want) {
			t.Errorf("prevDlvs is %v and not %v", have, want)
		}
	}
	prev()
	h.broadcast(0, "a1")
	prev() // broadcast, but not yet delivered
	h.broadcast(1, "b1")
	h.arrive(0, 1, 1)
	h.arrive(0, 0, 1)
	prev("b1", "a1")
	h.arrive(1, 1, 1)
	h.broadcast(2, "c1")
	h.arrive(1, 2, 1)
	h.broadcast(1, "b2")
	h.arrive(0, 1, 2) // b1 again, c1 and b2
	prev("b1", "a1", "c1", "b2")
	h.arrive(0, 2, 1) // delivered before
	prev("b1", "a1", "c1", "b2")
	h.broadcast(0, "a2")
	prev()
	all, err := causal.Unpack(h.sent[0][1].Body, 3)
	if want := []string{"b1", "a1", "c1", "b2", "a2"}; err != nil || !slices.Equal(payloads(all), want) {
		t.Errorf("a2 travels as %v, %v", payloads(all), err)
	}
	if want := []string{"b1", "a1", "c1", "b2"}; !slices.Equal(h.log[0], want) || len(h.refused) > 0 {
		t.Errorf("delivered %v, refused %v", h.log[0], h.refused)
	}
}

// Where the orders differ: at 2 the response overtakes the article, and a letter arrives between them.
// Piggyback has the article at once; with vector clocks the response waits, and the letter is delivered
// first. Both orders are causal, and the set is the same.
func TestWhereTheOrdersPart(t *testing.T) {
	for form, want := range map[causal.Form][]string{
		causal.Piggyback: {"article", "response", "letter"},
		causal.Vector:    {"letter", "article", "response"},
	} {
		h := newHall(causal.Config{N: 4, Form: form})
		h.broadcast(0, "article")
		h.arrive(1, 0, 1)
		h.broadcast(1, "response")
		h.broadcast(3, "letter")
		h.arrive(2, 1, 1)
		h.arrive(2, 3, 1)
		h.arrive(2, 0, 1)
		if !slices.Equal(h.log[2], want) || len(h.refused) > 0 {
			t.Errorf("%s: %v, refused %v", form, h.log[2], h.refused)
		}
	}
}

// A process that never broadcasts has at most Most messages in prevDlvs: then it broadcasts them alone, and
// empties prevDlvs. A receiver of such a bundle delivers its messages.
func TestMost(t *testing.T) {
	h := newHall(causal.Config{N: 3, Most: 4})
	for k := range 11 {
		h.broadcast(0, fmt.Sprint(k))
		h.arrive(1, 0, k+1)
		if n := len(causal.Previous(h.machines[1])); n >= 4 {
			t.Fatalf("%d messages in prevDlvs", n)
		}
	}
	if len(h.sent[1]) != 2 || len(causal.Previous(h.machines[1])) != 3 {
		t.Errorf("%d bundles, %v left", len(h.sent[1]), causal.Previous(h.machines[1]))
	}
	h.arrive(2, 1, 1)
	h.arrive(2, 1, 2)
	if want := []string{"0", "1", "2", "3", "4", "5", "6", "7"}; !slices.Equal(h.log[2], want) || len(h.refused) > 0 {
		t.Errorf("%v, refused %v", h.log[2], h.refused)
	}
	h.broadcast(1, "own") // with the remaining messages
	h.arrive(2, 1, 3)
	if want := []string{"8", "9", "10", "own"}; !slices.Equal(h.log[2][8:], want) {
		t.Errorf("%v", h.log[2])
	}
	for k := range 11 { // the messages themselves arrive late
		h.arrive(2, 0, k+1)
	}
	if len(h.log[2]) != 12 || len(h.refused) > 0 {
		t.Errorf("%v, refused %v", h.log[2], h.refused)
	}
	never := newHall(causal.Config{N: 2, Most: -1})
	for k := range 3000 {
		never.broadcast(0, "m")
		never.arrive(1, 0, k+1)
	}
	if len(never.sent[1]) != 0 || len(causal.Previous(never.machines[1])) != 3000 {
		t.Error("the lecture's form broadcasts by itself")
	}
}

// news makes processes answer one another: each broadcasts at random times, often directly after a delivery.
func news(n int, r *rand.Rand) []sim.Request {
	var out []sim.Request
	for id := range parley.ID(n) {
		for k := range 1 + r.IntN(6) {
			out = append(out, sim.Request{At: id, When: parley.Tick(r.IntN(2500)),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return out
}

func holds(t *testing.T, h *parley.History, seed uint64, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := problem.Of(name)[0].Check(h); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, name, err)
		}
	}
}

// system draws a run of both forms: the same requests, crashes and delays.
func system(seed uint64) (opt sim.Options, c diffusion.Config) {
	r := rand.New(rand.NewPCG(seed, 1))
	n := 3 + r.IntN(3)
	c = diffusion.Config{N: n, Uniform: seed%3 == 0}
	opt = sim.Options{Seed: seed, Twice: 0.2, Requests: news(n, r)}
	for _, i := range r.Perm(n)[:r.IntN(diffusion.New(c).M+1)] {
		opt.Crashes = append(opt.Crashes, sim.Crash{At: parley.ID(i), Step: 2 + r.IntN(8*n), Effects: r.IntN(n + 2)})
	}
	return opt, c
}

// Slide "Causal Broadcast": reliable broadcast and causal order hold in both forms, on links that double and
// reorder, with processes that crash in the middle of a send. FIFO broadcast must break causal order in some
// run.
func TestOrder(t *testing.T) {
	disorder := 0
	for seed := range uint64(300) {
		opt, c := system(seed)
		for _, form := range []causal.Form{causal.Piggyback, causal.Vector} {
			opt.Protocol = causal.Tower(form, c)
			s := sim.Run(opt)
			parleytest.Judge(t, opt.Protocol, s, seed)
			holds(t, &s.History, seed, problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder,
				problem.CausalOrder, problem.UniformAgreement)
		}
		opt.Protocol = fifo.Tower(c)
		if s := sim.Run(opt); problem.Of(problem.CausalOrder)[0].Check(&s.History) != nil {
			disorder++
		}
	}
	if disorder < 70 {
		t.Errorf("FIFO broadcast lost causal order in %d runs only", disorder)
	}
}

// On one schedule both forms send the same messages at the same times. They deliver the same sets, and both
// in an order that extends one happened-before relation: that of the run with vector clocks, because with
// piggyback a process has at any time delivered at least what it has with vector clocks. In some runs the
// orders differ.
func TestFormsAgree(t *testing.T) {
	differ := 0
	for seed := range uint64(300) {
		opt, c := system(seed)
		opt.Crashes = nil // they are placed by steps, which differ between the forms
		var logs [2][][]string
		var runs [2]*sim.Sim
		for i, form := range []causal.Form{causal.Piggyback, causal.Vector} {
			opt.Protocol = causal.Tower(form, c)
			s := sim.Run(opt)
			runs[i], logs[i] = s, make([][]string, c.N)
			for _, d := range s.History.Deliveries {
				logs[i][d.At] = append(logs[i][d.At], string(d.Msg.Body))
			}
		}
		if runs[0].Stats.Sends != runs[1].Stats.Sends || runs[0].Now() != runs[1].Now() {
			t.Fatalf("seed %d: not the same schedule", seed)
		}
		before := happenedBefore(&runs[1].History)
		for id := range c.N {
			a, b := logs[0][id], logs[1][id]
			if !slices.Equal(a, b) {
				differ++
			}
			for _, log := range [][]string{a, b} {
				place := make(map[string]int)
				for i, m := range log {
					place[m] = i
				}
				for pair := range before {
					if place[pair[0]] >= place[pair[1]] {
						t.Fatalf("seed %d: process %d delivers %s before %s: %v", seed, id, pair[1], pair[0], log)
					}
				}
			}
			slices.Sort(a)
			slices.Sort(b)
			if !slices.Equal(a, b) || len(a) != len(opt.Requests) {
				t.Fatalf("seed %d: process %d delivers %v and %v", seed, id, a, b)
			}
		}
	}
	if differ < 100 {
		t.Errorf("the orders differ %d times only", differ)
	}
}

// happenedBefore returns the pairs of messages of which the broadcast of the first causally precedes that of
// the second, computed by the definition, step by step.
func happenedBefore(h *parley.History) map[[2]string]bool {
	out := make(map[[2]string]bool)
	for _, q := range h.Requests {
		for _, earlier := range h.Requests {
			if earlier.At == q.At && earlier.Order < q.Order {
				out[[2]string{string(earlier.Msg.Body), string(q.Msg.Body)}] = true
			}
		}
		for _, d := range h.Deliveries {
			if d.At == q.At && d.Order < q.Order {
				out[[2]string{string(d.Msg.Body), string(q.Msg.Body)}] = true
			}
		}
	}
	for {
		size := len(out)
		for _, m := range h.Requests {
			for _, a := range h.Requests {
				for _, b := range h.Requests {
					x, y, z := string(a.Msg.Body), string(m.Msg.Body), string(b.Msg.Body)
					if out[[2]string{x, y}] && out[[2]string{y, z}] {
						out[[2]string{x, z}] = true
					}
				}
			}
		}
		if len(out) == size {
			return out
		}
	}
}

// Vector clocks need no FIFO order beneath. Piggyback does: without it causal order still holds, because a
// bundle that is not the next of its sender is refused, and all after it, but not everything is delivered.
func TestOnDiffusionAlone(t *testing.T) {
	refused := uint64(0)
	for seed := range uint64(150) {
		opt, c := system(seed)
		for _, form := range []causal.Form{causal.Piggyback, causal.Vector} {
			opt.Protocol = stack.New(diffusion.New(c), causal.New(causal.Config{N: c.N, Form: form}))
			s := sim.Run(opt)
			holds(t, &s.History, seed, problem.CausalOrder, problem.Integrity)
			if form == causal.Vector {
				holds(t, &s.History, seed, problem.Validity, problem.Agreement)
			} else {
				refused += s.Stats.Refused["message that is not the next of its sender"]
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d refused", refused)
	}
}

func TestSuite(t *testing.T) {
	for _, form := range []causal.Form{causal.Piggyback, causal.Vector} {
		options := parleytest.Options{Seeds: 60, Sim: sim.Options{Twice: 0.1}}
		t.Run(form.String()+" uniform", func(t *testing.T) {
			parleytest.Suite(t, causal.Tower(form, diffusion.Config{N: 5, Uniform: true}), options)
		})
		options.NothingBeyond = "any number of processes may crash"
		t.Run(form.String(), func(t *testing.T) {
			parleytest.Suite(t, causal.Tower(form, diffusion.Config{N: 4}), options)
		})
	}
}

func FuzzPiggyback(f *testing.F) {
	parleytest.Fuzz(f, causal.Tower(causal.Piggyback, diffusion.Config{N: 3, Window: 8}))
}

func FuzzVector(f *testing.F) {
	parleytest.Fuzz(f, causal.Tower(causal.Vector, diffusion.Config{N: 3, Window: 8}))
}
