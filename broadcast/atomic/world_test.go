package atomic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
)

// world is an asynchronous system without time: machines, and links that hold messages until the test makes
// them arrive.
type world struct {
	parley.Host
	t        *testing.T
	p        parley.Protocol
	machines []parley.Machine
	links    [][][]parley.Msg // from, to: in transit, the oldest first
	down     parley.Set
	told     []parley.Set // by process: the crashes that were indicated to it
	step     parley.Step
	order    uint64
	history  parley.History
	refused  map[string]int
	sends    int
}

func newWorld(t *testing.T, n int) *world {
	w := &world{t: t, p: atomic.New(atomic.Config{N: n, Detector: true}), refused: make(map[string]int)}
	w.links, w.told = make([][][]parley.Msg, n), make([]parley.Set, n)
	w.history = parley.History{N: n}
	for id := range parley.ID(n) {
		w.machines = append(w.machines, w.p.New(id))
		w.links[id] = make([][]parley.Msg, n)
		w.do(id, func(m parley.Machine) { m.Start(&w.step) })
	}
	return w
}

func (w *world) Refused(_, _ parley.ID, why string) { w.refused[why]++ }

// do runs a clause of a process.
func (w *world) do(at parley.ID, clause func(parley.Machine)) {
	w.step = parley.Step{Self: at, N: len(w.machines), Host: w, Effects: w.step.Effects[:0]}
	clause(w.machines[at])
	for _, e := range w.step.Effects {
		switch e.Op {
		case parley.OpSend:
			w.sends++
			w.links[at][e.To] = append(w.links[at][e.To], e.Msg)
		case parley.OpDeliver:
			w.order++
			w.history.Deliveries = append(w.history.Deliveries,
				parley.ExternalEvent{At: at, From: e.To, Order: w.order, Msg: e.Msg})
		default:
			w.t.Fatalf("effect %d", e.Op)
		}
	}
}

// cast requests a process to broadcast a text to the given receivers.
func (w *world) cast(at parley.ID, text string, to ...parley.ID) {
	m := problem.RequestTo(parley.SetOf(to...), []byte(text))
	w.order++
	w.history.Requests = append(w.history.Requests, parley.ExternalEvent{At: at, From: at, Order: w.order, Msg: m})
	w.do(at, func(mc parley.Machine) { mc.Request(&w.step, m) })
}

// receive makes the oldest message of a link arrive.
func (w *world) receive(from, to parley.ID) { w.arrive(from, to, 0) }

// arrive makes the i-th message of a link arrive.
func (w *world) arrive(from, to parley.ID, i int) parley.Msg {
	w.t.Helper()
	link := w.links[from][to]
	if i >= len(link) {
		w.t.Fatalf("no message from %d to %d", from, to)
	}
	m := link[i]
	w.links[from][to] = slices.Delete(slices.Clone(link), i, i+1)
	if !w.down.Has(to) {
		w.do(to, func(mc parley.Machine) { mc.Receive(&w.step, from, m) })
	}
	return m
}

// crash stops a process. Of its messages in transit on each link only the first ones arrive, as many as kept
// returns.
func (w *world) crash(id parley.ID, kept func(to parley.ID, sent int) int) {
	w.down.Add(id)
	w.history.Faulty.Add(id)
	for to := range w.links[id] {
		w.links[id][to] = w.links[id][to][:kept(parley.ID(to), len(w.links[id][to]))]
	}
}

func none(parley.ID, int) int       { return 0 }
func all(_ parley.ID, sent int) int { return sent }

// only keeps all messages in transit to one process.
func only(who parley.ID) func(parley.ID, int) int {
	return func(to parley.ID, sent int) int {
		if to == who {
			return sent
		}
		return 0
	}
}

// suspect indicates to a process that another has crashed.
func (w *world) suspect(at, of parley.ID) {
	w.told[at].Add(of)
	w.do(at, func(mc parley.Machine) {
		mc.Receive(&w.step, at, parley.Msg{Kind: parley.Suspect, Origin: of})
	})
}

// detect indicates all crashes to all live processes.
func (w *world) detect() {
	for at := range parley.ID(len(w.machines)) {
		for of := range w.down.All() {
			if !w.down.Has(at) && !w.told[at].Has(of) {
				w.suspect(at, of)
			}
		}
	}
}

// rest delivers all messages in transit, link by link, and indicates crashes, until nothing is left.
func (w *world) rest() {
	for again := true; again; {
		again = false
		for from := range w.links {
			for to := range w.links[from] {
				for len(w.links[from][to]) > 0 {
					w.receive(parley.ID(from), parley.ID(to))
					again = true
				}
			}
		}
		before := w.sends
		w.detect()
		again = again || w.sends > before
	}
	w.history.Over = true
}

// delivered returns the texts that a process delivered, in order.
func (w *world) delivered(at parley.ID) []string {
	out := []string{}
	for _, d := range w.history.Deliveries {
		if d.At == at {
			out = append(out, string(d.Msg.Body))
		}
	}
	return out
}

// expect compares the deliveries of processes.
func (w *world) expect(want map[parley.ID][]string) {
	w.t.Helper()
	for at, texts := range want {
		if got := w.delivered(at); !slices.Equal(got, texts) {
			w.t.Errorf("process %d delivered %v, and not %v", at, got, texts)
		}
	}
}

// check returns the error of the first named property that does not hold.
func (w *world) check(names ...string) error {
	for _, property := range problem.Of(names...) {
		if err := property.Check(&w.history); err != nil {
			return fmt.Errorf("%s: %w", property.Name, err)
		}
	}
	return nil
}

// promised names what the lecture's form promises among correct processes.
var promised = []string{problem.Integrity, problem.TotalOrder, problem.Agreement, problem.Validity}

// receivers draws some processes, or all of them.
func receivers(r *rand.Rand, n int, all bool) []parley.ID {
	perm := r.Perm(n)
	if !all {
		perm = perm[:1+r.IntN(n)]
	}
	var out []parley.ID
	for _, id := range perm {
		out = append(out, parley.ID(id))
	}
	return out
}

// double makes the oldest message of a link arrive and keeps a copy in transit.
func (w *world) double(from, to parley.ID) {
	w.t.Helper()
	w.links[from][to] = slices.Insert(slices.Clone(w.links[from][to]), 0, w.links[from][to][0])
	w.receive(from, to)
}
