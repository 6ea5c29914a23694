package problem_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
)

// story reads a history from words, in time order: 0:a means that process 0 broadcasts a; 0:a>12 that it
// broadcasts a to 1 and 2 only; 1<0:a that process 1 delivers a of process 0; 1! that process 1 restarts
// after a crash. x0 at the start means that 0 is faulty.
func story(text string) *parley.History {
	h := &parley.History{N: 4, Over: true, Naming: func(id parley.ID) string { return "P" + id.String() }}
	id := func(c byte) parley.ID { return parley.ID(c - '0') }
	for i, word := range strings.Fields(text) {
		one := parley.ExternalEvent{At: id(word[0]), From: id(word[0]), Order: uint64(i + 1)}
		switch {
		case word[0] == 'x':
			h.Faulty.Add(id(word[1]))
		case word[1] == '!':
			h.Restarts = append(h.Restarts, one)
		case word[1] == '<':
			one.From = id(word[2])
			one.Msg = parley.Msg{Kind: parley.Carried, Origin: one.From, Body: []byte(word[4:])}
			h.Deliveries = append(h.Deliveries, one)
		default:
			body, receivers, named := strings.Cut(word[2:], ">")
			one.Msg = problem.Request([]byte(body))
			if named {
				var to parley.Set
				for i := range receivers {
					to.Add(id(receivers[i]))
				}
				one.Msg = problem.RequestTo(to, []byte(body))
			}
			h.Requests = append(h.Requests, one)
		}
	}
	return h
}

func check(name string, h *parley.History) error { return problem.Of(name)[0].Check(h) }

// Each property is tried with histories in which it holds, and with others in which it does not and returns
// the error.
func TestProperties(t *testing.T) {
	for _, c := range []struct{ property, story, says string }{
		{"validity", "0:a 0<0:a 1<0:a 2<0:a 3<0:a", ""},
		{"validity", "0:a 0<0:a 1<0:a 3<0:a", "P2 did not deliver a of P0, which the correct sender broadcast"},
		{"validity", "x2 0:a 0<0:a 1<0:a 3<0:a", ""},
		{"validity", "x0 0:a 1<0:a", ""},
		{"validity", "0:a>12 1<0:a 2<0:a", ""},
		{"validity", "0:a>12 1<0:a 0<0:a", "P2 did not deliver a of P0"},
		{"validity", "1<0:lie", ""}, // integrity covers that it was not broadcast
		{"validity", "0:a 0:a 0<0:a 0<0:a 1<0:a 1<0:a 2<0:a 2<0:a 3<0:a", "P3 did not deliver a of P0"},

		{"agreement", "x0 0:a", ""},
		{"agreement", "x0 0:a 0<0:a", ""},
		{"agreement", "x0 0:a 1<0:a", "P2 did not deliver a of P0, which P1 delivered"},
		{"agreement", "x0 0:a 3<0:a 1<0:a 2<0:a", ""},
		{"agreement", "x0 1<0:lie 2<0:lie 3<0:lie", ""},
		{"agreement", "x0 1<0:lie 2<0:lie 3<0:truth", "P3 did not deliver lie of P0, which P1 delivered"},
		{"agreement", "0:a>12 1<0:a 2<0:a", ""},
		{"agreement", "x0 0:a 0:a 1<0:a 1<0:a 2<0:a 3<0:a 3<0:a", "P2 did not deliver a of P0"},

		{"uniform agreement", "x0 0:a", ""},
		{"uniform agreement", "x0 0:a 0<0:a", "P1 did not deliver a of P0, which P0 delivered"},
		{"uniform agreement", "x0 x1 0:a 1<0:a 2<0:a", "P3 did not deliver a of P0, which P1 delivered"},
		{"uniform agreement", "x0 x1 0:a 1<0:a 2<0:a 3<0:a", ""},

		{"integrity", "0:a 1<0:a 2<0:a", ""},
		{"integrity", "0:a 1<0:a 2<0:a 1<0:a", "P1 delivered a of P0 more often than it was broadcast"},
		{"integrity", "0:a 0:a 1<0:a 1<0:a", ""},
		{"integrity", "0:a 0:a 1<0:a 1<0:a 1<0:a", "P1 delivered a of P0 more often"},
		{"integrity", "0:a 0:a 1<0:a 2<0:a 1<0:a 0:a 1<0:a 2<0:a 2<0:a 2<0:a", "P2 delivered a of P0 more often"},
		{"integrity", "0:a 1<0:a 1! 1<0:a", ""}, // another incarnation
		{"integrity", "0:a 1! 1<0:a 1<0:a", "more often"},
		{"integrity", "1<0:a 0:a", "P1 delivered a of P0 before it was broadcast"},
		{"integrity", "0:a 1<1:a", "P1 delivered a of P1, which was not broadcast"},
		{"integrity", "x0 1<0:lie", "which was not broadcast"},
		{"integrity", "x1 1<0:lie 1<0:lie", ""},
		{"integrity", "0:a>12 3<0:a", "P3 delivered a of P0, which was not addressed to it"},
		{"integrity of correct senders", "x0 1<0:lie", ""},
		{"integrity of correct senders", "x0 1<0:lie 1<0:lie", "more often"},
		{"integrity of correct senders", "1<0:lie", "which was not broadcast"},

		{"FIFO order", "0:a 0:b 1<0:a 2<0:a 1<0:b 2<0:b", ""},
		{"FIFO order", "0:a 0:b 1<0:b", "P1 delivered b of P0, but had not delivered a of P0, which the sender broadcast before"},
		{"FIFO order", "0:a 0:b 1<0:b 1<0:a", "P1 delivered b of P0, but had not delivered a of P0"},
		{"FIFO order", "x1 0:a 0:b 1<0:b 1<0:a", ""},
		{"FIFO order", "x0 0:a 0:b 1<0:b", "P1 delivered b of P0, but had not"}, // for any sender
		{"FIFO order", "0:a 2:b 1<2:b 1<0:a", ""},
		{"FIFO order", "0:a>12 0:b>23 2<0:a 3<0:b 2<0:b", ""},
		{"FIFO order", "0:a>12 0:b>23 2<0:b 3<0:b 2<0:a", "P2 delivered b of P0"},
		{"FIFO order", "0:a 0! 0:b 0:c 1<0:b", ""}, // another incarnation
		{"FIFO order", "0:a 0! 0:b 0:c 1<0:c", "P1 delivered c of P0, but had not delivered b of P0"},
		{"FIFO order", "0:a 0:a 0:b 1<0:a 1<0:b", "P1 delivered b of P0, but had not delivered a of P0"},
		{"FIFO order", "0:a 0:b 1<0:a 1! 1<0:b", ""}, // delivered before, in another incarnation

		{"causal order", "0:a 1<0:a 1:b 2<0:a 2<1:b", ""},
		{"causal order", "0:a 1<0:a 1:b 2<1:b 2<0:a", "P2 delivered b of P1, but had not delivered a of P0, on which it may depend"},
		{"causal order", "0:a 1:b 1<0:a 2<1:b 2<0:a", ""},                                            // concurrent
		{"causal order", "0:a 1<0:a 1:b 2<0:a 2<1:b 2:c 3<2:c", "P3 delivered c of P2, but had not"}, // indirectly
		{"causal order", "0:a 1<0:a 1:b 2<1:b 2:c 3<1:b", "but had not delivered a of P0"},
		{"causal order", "x2 0:a 1<0:a 1:b 2<1:b 2:c 3<2:c", "P3 delivered c of P2, but had not delivered a of P0"},
		{"causal order", "x2 0:a 1<0:a 1:b 2<1:b", ""},
		{"causal order", "0:a 0:b 1<0:b", "P1 delivered b of P0, but had not delivered a of P0"}, // FIFO is a part of it
		{"causal order", "0:a 1<0:a 1! 1:b 2<1:b", ""},                                           // it knows nothing
		{"causal order", "0:a>13 1<0:a 1:b 2<1:b", ""},                                           // it was not addressed to 2
		{"causal order", "0:a>13 1<0:a 1:b 3<1:b", "P3 delivered b of P1"},
		{"causal order", "0:a 0:b 1<0:a 1:c 2<1:c", "P2 delivered c of P1, but had not delivered a of P0"},
		{"causal order", "0:a 0:b 1<0:a 1:c 2<0:a 2<1:c 2<0:b", ""},

		{"total order", "0:a 1:b 2<0:a 2<1:b 3<0:a 3<1:b", ""},
		{"total order", "0:a 1:b 2<0:a 2<1:b 3<1:b 3<0:a", "P2 delivered a of P0 before b of P1, and P3 delivered them in the opposite order"},
		{"total order", "0:a 1:b 0:c 2<0:a 2<1:b 2<0:c 3<0:a 3<0:c 3<1:b", "in the opposite order"},
		{"total order", "0:a 1:b 0:c 2<0:a 2<1:b 3<0:a 3<0:c", ""},
		{"total order", "x3 0:a 1:b 2<0:a 2<1:b 3<1:b 3<0:a", ""},
		{"uniform total order", "x3 0:a 1:b 2<0:a 2<1:b 3<1:b 3<0:a", "in the opposite order"},
		{"uniform total order", "x3 0:a 1:b 2<0:a 2<1:b 3<0:a 3<1:b", ""},
		{"uniform total order", "0:a 1:b 2<0:a 2<1:b 2! 2<1:b 2<0:a", "P2 delivered a of P0 before b of P1, and P2 delivered them in the opposite order"},

		{"uniform prefix", "x3 0:a 1:b 2<0:a 2<1:b 3<0:a", ""},
		{"uniform prefix", "x3 0:a 1:b 2<0:a 2<1:b 3<1:b", "of the messages to both, the one at place 1 is a of P0 at P2 and b of P1 at P3"},
		{"uniform prefix", "0:a>2 1:b 2<0:a 2<1:b 3<1:b", ""},

		{"delivery", "0:a 1<0:a", ""},
		{"delivery", "0:a 0<0:a", "nothing is delivered"},
	} {
		err := check(c.property, story(c.story))
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %s: %v", c.property, c.story, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %s: %v, and not %s", c.property, c.story, err, c.says)
		}
	}
}

// An unfinished run does not violate a property that must hold eventually.
func TestEventually(t *testing.T) {
	for _, name := range []string{problem.Validity, problem.Agreement, problem.UniformAgreement} {
		h := story("0:a 0<0:a")
		if check(name, h) == nil {
			t.Errorf("%s: holds", name)
		}
		h.Over = false
		if err := check(name, h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if problem.Of(name)[0].Mode != parley.Eventually {
			t.Error(name)
		}
	}
}

// slow checks FIFO, causal and total order of a history without restarts literally by their definitions, and
// slowly.
type slow struct {
	h      *parley.History
	n      int
	before [][]bool // of requests: whether the broadcast of one causally precedes that of another
}

func newSlow(h *parley.History) *slow {
	s := &slow{h: h, n: len(h.Requests)}
	s.before = make([][]bool, s.n)
	for i, q := range h.Requests {
		s.before[i] = make([]bool, s.n)
		for k, earlier := range h.Requests {
			d := s.delivery(q.At, k)
			s.before[i][k] = earlier.At == q.At && earlier.Order < q.Order || d > 0 && d < q.Order
		}
	}
	for k := range s.n { // the transitive closure
		for i := range s.n {
			for j := range s.n {
				s.before[i][j] = s.before[i][j] || s.before[i][k] && s.before[k][j]
			}
		}
	}
	return s
}

// delivery returns when a process delivered the k-th request, 0 if it never did.
func (s *slow) delivery(at parley.ID, k int) uint64 {
	for _, d := range s.h.Deliveries {
		if d.At == at && d.From == s.h.Requests[k].At && bytes.Equal(d.Msg.Body, s.h.Requests[k].Msg.Body) {
			return d.Order
		}
	}
	return 0
}

func (s *slow) holds(name string) bool {
	for id := range parley.ID(s.h.N) {
		for i := range s.n {
			for k := range s.n {
				di, dk := s.delivery(id, i), s.delivery(id, k)
				if di == 0 {
					continue
				}
				missed := dk == 0 || dk > di
				same := s.h.Requests[i].At == s.h.Requests[k].At && k < i
				if name == problem.FIFOOrder && same && missed || name == problem.CausalOrder && s.before[i][k] && missed {
					return false
				}
				for other := range parley.ID(s.h.N) {
					oi, ok := s.delivery(other, i), s.delivery(other, k)
					if name == problem.TotalOrder && dk != 0 && oi != 0 && ok != 0 && (di < dk) != (oi < ok) {
						return false
					}
				}
			}
		}
	}
	return true
}

// The properties agree with the definitions on random histories.
func TestAgainstDefinitions(t *testing.T) {
	names := []string{problem.FIFOOrder, problem.CausalOrder, problem.TotalOrder}
	held, broke := make(map[string]int), make(map[string]int)
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := &parley.History{N: 3, Over: true}
		for order := range uint64(3 + r.IntN(10)) {
			at := parley.ID(r.IntN(3))
			one := parley.ExternalEvent{At: at, From: at, Order: order + 1}
			if len(h.Requests) == 0 || len(h.Requests) < 4 && r.IntN(3) == 0 {
				one.Msg = problem.Request(fmt.Append(nil, len(h.Requests)))
				h.Requests = append(h.Requests, one)
				continue
			}
			what := h.Requests[r.IntN(len(h.Requests))]
			again := func(d parley.ExternalEvent) bool { return d.At == at && bytes.Equal(d.Msg.Body, what.Msg.Body) }
			if slices.ContainsFunc(h.Deliveries, again) {
				continue
			}
			one.From, one.Msg = what.At, what.Msg
			h.Deliveries = append(h.Deliveries, one)
		}
		s := newSlow(h)
		for _, name := range names {
			err := check(name, h)
			if want := s.holds(name); (err == nil) != want {
				t.Fatalf("seed %d: %s: %v, and by definition %t", seed, name, err, want)
			}
			if err == nil {
				held[name]++
			} else {
				broke[name]++
			}
		}
	}
	for _, name := range names {
		if held[name] < 100 || broke[name] < 100 {
			t.Errorf("%s held in %d runs and broke in %d", name, held[name], broke[name])
		}
	}
}

func TestRequestTo(t *testing.T) {
	for _, ids := range [][]parley.ID{{0}, {3}, {0, 1, 2, 3}, {1, 3}, {0, 200, 255}} {
		set := parley.SetOf(ids...)
		to, payload, err := problem.Decode(problem.RequestTo(set, []byte("pay")), 256)
		if err != nil || to != set || string(payload) != "pay" {
			t.Error(ids, to, string(payload), err)
		}
	}
	if to, payload, err := problem.Decode(problem.Request([]byte("x")), 3); err != nil ||
		to != parley.Everyone(3) || string(payload) != "x" {
		t.Error(to, payload, err)
	}
	for _, m := range []parley.Msg{
		problem.RequestTo(parley.SetOf(3), nil), // of 3
		problem.RequestTo(parley.Set{}, nil),
		{Kind: problem.CarryTo},
		{Kind: problem.CarryTo, Body: []byte{2, 1}},
		{Kind: problem.CarryTo, Body: []byte{4, 0, 0, 0, 0}},
		{Kind: problem.CarryTo, Body: []byte{2, 1, 1}},
		{Kind: parley.Propose, Body: []byte{1, 1}},
	} {
		if _, _, err := problem.Decode(m, 3); err == nil {
			t.Errorf("%v is accepted", m)
		}
	}
	if problem.CarryTo <= parley.Local || problem.CarryTo >= parley.Indication {
		t.Error("not a local kind that is requested")
	}
}

func TestOf(t *testing.T) {
	got := problem.Of(problem.Integrity, problem.Validity)
	if len(got) != 2 || got[0].Name != "integrity" || got[1].Name != "validity" {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a property that there is not")
		}
	}()
	problem.Of("nonsense")
}

func ExampleOf() {
	h := &parley.History{N: 2, Over: true}
	h.Requests = []parley.ExternalEvent{{At: 0, Order: 1, Msg: problem.Request([]byte("hello"))}}
	h.Deliveries = []parley.ExternalEvent{{At: 0, From: 0, Order: 2, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("hello")}}}
	for _, property := range problem.Of(problem.Integrity, problem.Validity) {
		fmt.Println(property.Name, property.Check(h))
	}
	// Output:
	// integrity <nil>
	// validity process 1 did not deliver hello of process 0, which the correct sender broadcast
}

// large returns a history of n processes in which all deliver all messages, in one order.
func large(n, deliveries int) *parley.History {
	h := &parley.History{N: n, Over: true}
	order := uint64(0)
	for c := range deliveries / n {
		from := parley.ID(c % n)
		order++
		q := parley.ExternalEvent{At: from, From: from, Order: order, Msg: problem.Request(fmt.Appendf(nil, "m%d", c))}
		h.Requests = append(h.Requests, q)
		for id := range parley.ID(n) {
			order++
			d := q
			d.At, d.Order = id, order
			h.Deliveries = append(h.Deliveries, d)
		}
	}
	return h
}

func BenchmarkCheck(b *testing.B) {
	h := large(10, 100_000)
	for _, property := range problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder,
		problem.CausalOrder, problem.TotalOrder, problem.UniformAgreement, problem.UniformTotalOrder,
		problem.UniformPrefix) {
		b.Run(property.Name, func(b *testing.B) {
			for b.Loop() {
				if err := property.Check(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
