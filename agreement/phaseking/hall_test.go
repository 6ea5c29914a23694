package phaseking_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/lockstep"
)

type host struct {
	choose  func(n int) int
	refused []string
}

func (h *host) Choose(n int) int                      { return h.choose(n) }
func (h *host) Sign(parley.ID, []byte) []byte         { panic("nothing is signed") }
func (h *host) Verify(parley.ID, []byte, []byte) bool { panic("nothing is signed") }
func (h *host) Refused(_, _ parley.ID, why string)    { h.refused = append(h.refused, why) }

// process makes it possible to save, load and show one process in rounds.
type process struct {
	parley.Base
	lockstep.Rounds
}

func (p process) Request(s *parley.Step, m parley.Msg) { p.Rounds.Request(s, m) }

// hall runs all processes without frames and without time: rounds can
// be run one by one, from any state, and inspected in between.
type hall struct {
	p       lockstep.Protocol
	procs   []lockstep.Rounds
	liars   parley.Set
	host    host
	step    parley.Step
	decided map[parley.ID]string
	sent    [][]parley.Msg // scratch
}

func newHall(p lockstep.Protocol) *hall {
	h := &hall{p: p, decided: make(map[parley.ID]string), sent: make([][]parley.Msg, p.N)}
	h.step = parley.Step{N: p.N, Host: &h.host}
	for id := range parley.ID(p.N) {
		h.procs = append(h.procs, p.New(id))
	}
	return h
}

func (h *hall) propose(id parley.ID, v string) {
	h.step.Self = id
	h.procs[id].Request(&h.step, parley.Msg{Kind: parley.Propose, Body: []byte(v)})
}

// round runs one round. turn answers for a faulty process, given what it would honestly send;
// if turn is nil, the protocol's own Lies answers.
func (h *hall) round(r int, turn func(s *parley.Step, t *parley.Turn) []parley.Outgoing) {
	if turn == nil {
		turn = h.p.Lies
	}
	s := &h.step
	for id := range parley.ID(h.p.N) {
		s.Self, s.Effects = id, s.Effects[:0]
		h.procs[id].Emit(s, r)
		h.sent[id] = h.sent[id][:0]
		for _, e := range s.Effects {
			if e.Op != parley.OpSend || e.To != parley.All {
				panic("not sent to all")
			}
			h.sent[id] = append(h.sent[id], e.Msg)
		}
	}
	for to := range parley.ID(h.p.N) {
		for from := range parley.ID(h.p.N) {
			switch {
			case from == to:
			case h.liars.Has(from) && !h.liars.Has(to):
				t := &parley.Turn{Self: from, To: to, Round: r, Members: h.liars}
				for _, m := range h.sent[from] {
					t.Honest = append(t.Honest, parley.Outgoing{Msg: m})
				}
				s.Self = from
				said := turn(s, t)
				s.Self = to
				for _, sent := range said {
					h.procs[to].Absorb(s, r, from, sent.Msg)
				}
			default:
				s.Self = to
				for _, m := range h.sent[from] {
					h.procs[to].Absorb(s, r, from, m)
				}
			}
		}
	}
	for id := range parley.ID(h.p.N) {
		s.Self, s.Effects = id, s.Effects[:0]
		h.procs[id].Close(s, r)
		for _, e := range s.Effects {
			h.decided[id] = string(e.Msg.Body)
		}
	}
}

func (h *hall) held(id parley.ID) string {
	for _, v := range parley.Show(process{Rounds: h.procs[id]}, 0) {
		if v.Name == "value" {
			return v.Value
		}
	}
	panic("no value")
}

// common returns the value that all correct processes hold, if they hold the same.
func (h *hall) common() (string, bool) {
	first, found := "", false
	for id := range parley.Everyone(h.p.N).Minus(h.liars).All() {
		v := h.held(id)
		if found && v != first {
			return "", false
		}
		first, found = v, true
	}
	return first, true
}

func (h *hall) allHold(v string) bool {
	got, same := h.common()
	return same && got == v
}

func perPhase(f phaseking.Form) int { return 3 - int(f) }

// The two lemmas hold in every phase and from any values: if all correct processes
// hold v when a phase begins, they hold it when it ends, whichever process is its king; and
// if its king is correct, all hold the same value when it ends.
func TestPhaseLemmas(t *testing.T) {
	persisted, united, split := 0, 0, 0
	for _, f := range forms {
		for _, nm := range [][2]int{{4 + int(f), 1}, {7 + 2*int(f), 2}, {10 + 3*int(f), 3}} {
			c := config(f, nm[0], nm[1])
			c.Alphabet = [][]byte{[]byte("0"), []byte("1"), []byte("2")}
			for seed := range uint64(600) {
				rng := rand.New(rand.NewPCG(seed, uint64(c.N)))
				h := newHall(phaseking.Rounds(c))
				h.host.choose = rng.IntN
				for _, id := range rng.Perm(c.N)[:c.M] {
					h.liars.Add(parley.ID(id))
				}
				for id, v := range inputs(rng, c.N, "0", "1", "2") {
					h.propose(parley.ID(id), v)
				}
				k := int(seed) % (c.M + 1)
				before, same := h.common()
				for r := range perPhase(f) {
					var turn func(*parley.Step, *parley.Turn) []parley.Outgoing
					if seed/uint64(c.M+1)%2 == 1 {
						turn = babble(rng)
					}
					h.round(k*perPhase(f)+r, turn)
				}
				after, agree := h.common()
				switch {
				case same && (!agree || after != before):
					t.Fatalf("%s n=%d seed %d: all held %s before phase %d, then not", f, c.N, seed, before, k)
				case !agree && !h.liars.Has(parley.ID(k)):
					t.Fatalf("%s n=%d seed %d: the king of phase %d is correct and they differ", f, c.N, seed, k)
				case same:
					persisted++
				case agree:
					united++
				default:
					split++
				}
			}
		}
	}
	if persisted < 500 || united < 500 || split < 50 {
		t.Errorf("phases that kept one value %d, came to one %d, stayed split under a faulty king %d",
			persisted, united, split)
	}
}

// babble sends several messages at once, most of them not due: it proposes in rounds
// of values and sends as a king without being one.
func babble(rng *rand.Rand) func(*parley.Step, *parley.Turn) []parley.Outgoing {
	return func(_ *parley.Step, t *parley.Turn) (out []parley.Outgoing) {
		for range rng.IntN(5) {
			m := parley.Msg{Kind: parley.Kind(1 + rng.IntN(3)), Seq: uint64(t.Round), Body: []byte{"012"[rng.IntN(3)]}}
			out = append(out, parley.Outgoing{Msg: m})
		}
		return out
	}
}

// A message that does not fit is refused for its reason, and does not count.
func TestRefusals(t *testing.T) {
	c := config(phaseking.ThreeRound, 4, 1)
	one := []byte("1")
	for _, test := range []struct {
		r    int
		from parley.ID
		m    parley.Msg
		want string
	}{
		{0, 1, parley.Msg{Kind: phaseking.Value, Body: one}, ""},
		{3, 1, parley.Msg{Kind: phaseking.Value, Seq: 3, Body: one}, ""},
		{4, 1, parley.Msg{Kind: phaseking.Proposal, Seq: 4, Body: one}, ""},
		{5, 1, parley.Msg{Kind: phaseking.King, Seq: 5, Body: one}, ""},
		{0, 1, parley.Msg{Kind: phaseking.Value, Body: make([]byte, problem.MaxValue)}, ""},
		{3, 1, parley.Msg{Kind: phaseking.Value, Seq: 0, Body: one}, "message not due in this round"},
		{0, 1, parley.Msg{Kind: phaseking.Value, Origin: 1, Body: one}, "fields that are not used"},
		{0, 1, parley.Msg{Kind: phaseking.Value, Value: 1, Body: one}, "fields that are not used"},
		{0, 1, parley.Msg{Kind: phaseking.Proposal, Body: one}, "message not due in this round"},
		{1, 1, parley.Msg{Kind: phaseking.Value, Seq: 1, Body: one}, "message not due in this round"},
		{1, 0, parley.Msg{Kind: phaseking.King, Seq: 1, Body: one}, "message not due in this round"},
		{0, 1, parley.Msg{Kind: 9, Body: one}, "message not due in this round"},
		{2, 1, parley.Msg{Kind: phaseking.King, Seq: 2, Body: one}, "king's word from another"},
		{5, 0, parley.Msg{Kind: phaseking.King, Seq: 5, Body: one}, "king's word from another"},
		{0, 1, parley.Msg{Kind: phaseking.Value, Body: make([]byte, problem.MaxValue+1)}, "oversized value"},
	} {
		h := newHall(phaseking.Rounds(c))
		h.procs[3].Absorb(&h.step, test.r, test.from, test.m)
		got := strings.Join(h.host.refused, ", ")
		if got != test.want {
			t.Errorf("round %d, from %d, %v: refused %q, want %q", test.r, test.from, test.m, got, test.want)
		}
	}

	// The first message of a sender is final.
	h := newHall(phaseking.Rounds(c))
	for _, v := range []string{"1", "2"} {
		h.procs[3].Absorb(&h.step, 2, 0, parley.Msg{Kind: phaseking.King, Seq: 2, Body: []byte(v)})
	}
	h.procs[3].Close(&h.step, 2)
	if got := fmt.Sprint(h.host.refused); got != "[second message of a round]" || h.held(3) != "1" {
		t.Errorf("the king said 1, then 2: refused %v, held %s", got, h.held(3))
	}
}
