package atomic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
)

// move is a line of a script without crashes: "recv" (p receives m and proposes),
// "decide" (the sender has all proposals), "final" (p receives m's final priority).
type move struct {
	op string
	p  parley.ID
	m  string
}

// outcome is the result of a script.
type outcome struct {
	proposals map[string]map[parley.ID]uint64
	final     map[string]atomic.Priority
	delivered [][][]string // after each move: by process
}

// rule computes the number that a receiver proposes.
type rule func(r *receiver) uint64

// The lecture's own rule, read as one above the highest among all buffered messages; and the corrected one:
// above all that was ever proposed or seen as final.
func buffered(r *receiver) uint64 {
	top := uint64(0)
	for _, e := range r.queue {
		top = max(top, e.priority.Number)
	}
	return top + 1
}

func ever(r *receiver) uint64 { return r.top + 1 }

// receiver is a receiver as on the slides, slow and simple.
type receiver struct {
	queue     []waiting
	top       uint64
	delivered []string
}

type waiting struct {
	m           string
	priority    atomic.Priority
	deliverable bool
}

// model runs a script by the slides with the given rule.
func model(script []move, n int, highest rule) outcome {
	rs := make([]receiver, n)
	out := outcome{proposals: make(map[string]map[parley.ID]uint64), final: make(map[string]atomic.Priority)}
	for _, s := range script {
		r := &rs[s.p]
		switch s.op {
		case "recv":
			number := highest(r)
			r.top = max(r.top, number)
			r.queue = append(r.queue, waiting{m: s.m, priority: atomic.Priority{Number: number, By: s.p}})
			if out.proposals[s.m] == nil {
				out.proposals[s.m] = make(map[parley.ID]uint64)
			}
			out.proposals[s.m][s.p] = number
		case "decide":
			for p, number := range out.proposals[s.m] {
				if q := (atomic.Priority{Number: number, By: p}); q.Compare(out.final[s.m]) > 0 {
					out.final[s.m] = q
				}
			}
		case "final":
			r.top = max(r.top, out.final[s.m].Number)
			for i := range r.queue {
				if r.queue[i].m == s.m {
					r.queue[i].priority, r.queue[i].deliverable = out.final[s.m], true
				}
			}
			slices.SortFunc(r.queue, func(a, b waiting) int { return a.priority.Compare(b.priority) })
			for len(r.queue) > 0 && r.queue[0].deliverable {
				r.delivered, r.queue = append(r.delivered, r.queue[0].m), r.queue[1:]
			}
		}
		out.note(n, func(p parley.ID) []string { return slices.Clone(rs[p].delivered) })
	}
	return out
}

func (o *outcome) note(n int, delivered func(parley.ID) []string) {
	now := make([][]string, n)
	for p := range now {
		now[p] = delivered(parley.ID(p))
	}
	o.delivered = append(o.delivered, now)
}

// play runs a script on the machines: those of the receivers, and after them one for the sender of each
// message, in the order of their first moves.
func play(t *testing.T, script []move, n int) outcome {
	t.Helper()
	senders := make(map[string]parley.ID)
	to := make(map[string][]parley.ID)
	for _, s := range script {
		if s.op == "recv" {
			if _, known := senders[s.m]; !known {
				senders[s.m] = parley.ID(n + len(senders))
			}
			to[s.m] = append(to[s.m], s.p)
		}
	}
	w := newWorld(t, n+len(senders))
	asked := make(map[string]bool)
	out := outcome{proposals: make(map[string]map[parley.ID]uint64), final: make(map[string]atomic.Priority)}
	for _, s := range script {
		from := senders[s.m]
		switch s.op {
		case "recv":
			if !asked[s.m] {
				asked[s.m], out.proposals[s.m] = true, make(map[parley.ID]uint64)
				w.cast(from, s.m, to[s.m]...)
			}
			w.receive(from, s.p)
			out.proposals[s.m][s.p] = w.carries(s.p, from).Number
		case "decide":
			for _, p := range to[s.m] {
				w.receive(p, from)
			}
			out.final[s.m] = w.carries(from, to[s.m][0])
		case "final":
			w.receive(from, s.p)
		}
		out.note(n, w.delivered)
	}
	return out
}

// carries returns the priority that the newest message of a link carries.
func (w *world) carries(from, to parley.ID) atomic.Priority {
	w.t.Helper()
	link := w.links[from][to]
	if len(link) == 0 {
		w.t.Fatalf("no message from %d to %d", from, to)
	}
	p, ok := atomic.PriorityOf(link[len(link)-1], from, len(w.machines))
	if !ok {
		w.t.Fatalf("no priority in the message from %d to %d", from, to)
	}
	return p
}

// the lecture's rule, "highest among all buffered messages", on a pinned schedule.
// s is process 0 and r is process 1. r delivers m1 at 2 and its buffer is empty;
// counting only what is buffered it then gives m2 number 1 once more.
var emptied = []move{
	{"recv", 0, "m2"}, {"recv", 0, "m1"}, {"recv", 1, "m1"}, {"decide", 0, "m1"}, {"final", 1, "m1"},
	{"recv", 1, "m2"}, {"decide", 0, "m2"}, {"final", 0, "m2"}, {"final", 0, "m1"}, {"final", 1, "m2"},
}

// By the lecture's rule s delivers m2 before m1, and r m1 before m2. By the corrected one both deliver m1
// first, and so do the machines.
func TestLecturesRuleBreaksTotalOrder(t *testing.T) {
	last := len(emptied) - 1
	broken := model(emptied, 2, buffered)
	if got := fmt.Sprint(broken.delivered[last]); got != "[[m2 m1] [m1 m2]]" {
		t.Errorf("by the lecture's rule: %s", got)
	}
	if p := broken.proposals["m2"]; p[0] != 1 || p[1] != 1 {
		t.Errorf("by the lecture's rule m2 gets %v", p)
	}
	for name, o := range map[string]outcome{"model": model(emptied, 2, ever), "machines": play(t, emptied, 2)} {
		if got := fmt.Sprint(o.delivered[last]); got != "[[m1 m2] [m1 m2]]" {
			t.Errorf("%s: %s", name, got)
		}
		if p := o.proposals["m2"]; p[0] != 1 || p[1] != 3 {
			t.Errorf("%s: m2 gets %v", name, p)
		}
	}
}

// Machines propose, decide and deliver as the slides say, move by move.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(4)
		script := drawn(r, n)
		got, want := play(t, script, n), model(script, n, ever)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %v\ngave %v\nand not %v", seed, script, got, want)
		}
	}
}

// drawn draws a script for n receivers: the moves of each message are in order, otherwise all are mixed.
func drawn(r *rand.Rand, n int) []move {
	var pending [][]move // by message: its remaining moves
	for k := range 1 + r.IntN(5) {
		m := fmt.Sprintf("m%d", k)
		var moves []move
		to := receivers(r, n, false)
		for _, p := range to {
			moves = append(moves, move{"recv", p, m})
		}
		moves = append(moves, move{"decide", to[0], m})
		r.Shuffle(len(to), func(i, k int) { to[i], to[k] = to[k], to[i] })
		for _, p := range to {
			moves = append(moves, move{"final", p, m})
		}
		pending = append(pending, moves)
	}
	var out []move
	for len(pending) > 0 {
		i := r.IntN(len(pending))
		out = append(out, pending[i][0])
		if pending[i] = pending[i][1:]; len(pending[i]) == 0 {
			pending = slices.Delete(pending, i, i+1)
		}
	}
	return out
}

// The lecture's two deposits cross: both messages end with number 2, and the
// proposer's id breaks the tie.
func TestAccountsInOrder(t *testing.T) {
	script := []move{
		{"recv", 0, "msg1"}, {"recv", 1, "msg2"}, {"recv", 0, "msg2"}, {"recv", 1, "msg1"},
		{"decide", 0, "msg1"}, {"decide", 0, "msg2"},
		{"final", 0, "msg1"}, {"final", 1, "msg2"}, {"final", 0, "msg2"}, {"final", 1, "msg1"},
	}
	o := play(t, script, 2)
	if got := fmt.Sprint(o.proposals); got != "map[msg1:map[0:1 1:2] msg2:map[0:2 1:1]]" {
		t.Errorf("proposals %s", got)
	}
	if got := fmt.Sprint(o.final); got != "map[msg1:{2 1} msg2:{2 0}]" {
		t.Errorf("final priorities %s", got)
	}
	for step, want := range map[int]string{6: "[[] []]", 7: "[[] [msg2]]", 9: "[[msg2 msg1] [msg2 msg1]]"} {
		if got := fmt.Sprint(o.delivered[step]); got != want {
			t.Errorf("after step %d: %s, and not %s", step, got, want)
		}
	}
	if a := balances(o.delivered[9]); a[0] != 1230 || a[1] != 1230 {
		t.Errorf("balances %v", a)
	}
}

// The order of the two deposits shows in the balance: 1242 or 1230.
func TestAccount(t *testing.T) {
	for _, c := range []struct {
		order []string
		want  int
	}{{[]string{"msg1", "msg2"}, 1242}, {[]string{"msg2", "msg1"}, 1230}} {
		var script []move
		for _, m := range c.order {
			script = append(script, move{"recv", 0, m}, move{"recv", 1, m}, move{"decide", 0, m},
				move{"final", 1, m}, move{"final", 0, m})
		}
		o := play(t, script, 2)
		if a := balances(o.delivered[len(script)-1]); a[0] != c.want || a[1] != c.want {
			t.Errorf("%v: balances %v, and not %d", c.order, a, c.want)
		}
	}
}

// balances applies the deliveries of each process to an account with a balance of 1000.
func balances(delivered [][]string) []int {
	var out []int
	for _, texts := range delivered {
		account := 1000
		for _, m := range texts {
			switch m {
			case "msg1":
				account += 150
			case "msg2":
				account += account * 8 / 100
			}
		}
		out = append(out, account)
	}
	return out
}
