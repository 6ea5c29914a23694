package lockstep_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

func round(t *testing.T, s *sim.Sim, id parley.ID) int {
	for _, v := range parley.Show(s.Machine(id), s.Now()) {
		if v.Name == "round" {
			r, err := strconv.Atoi(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatal("no round")
	return 0
}

// saying is a protocol of four rounds in which every process sends all its number and
// the round.
func saying(n int) lockstep.Protocol {
	return tellers(n, 3, func(s *parley.Step, r int) {
		s.SendAll(parley.Msg{Kind: 1, Value: uint64(10*r) + uint64(s.Self)})
	})
}

func absorbed(s *sim.Sim) map[parley.ID][]string {
	out := make(map[parley.ID][]string)
	for id := range s.Correct().All() {
		for _, v := range parley.Show(s.Machine(id), s.Now()) {
			if len(v.Name) > 13 && v.Name[:13] == "rounds.values" {
				out[id] = append(out[id], v.Value)
			}
		}
	}
	return out
}

// With early advance correct processes are at most one round apart, none of their
// frames is refused, all absorb what they would absorb without it, and rounds pass
// at the speed of messages. With one silent process no round closes early.
func TestEarly(t *testing.T) {
	const n = 4
	early := lockstep.Simulated
	early.Early = true
	apart := 0
	for seed := range uint64(60) {
		for _, silent := range []bool{false, true} {
			opt := sim.Options{Protocol: lockstep.Of(saying(n), lockstep.Simulated), Seed: seed}
			if silent {
				opt.Faulty = map[parley.ID]faulty.Behavior{parley.ID(seed % n): faulty.Silent}
			}
			plain := sim.Run(opt)
			opt.Protocol = lockstep.Of(saying(n), early)
			opt.Between = func(s *sim.Sim) {
				low, high := 9, -1
				for id := range s.Correct().All() {
					r := round(t, s, id)
					low, high = min(low, r), max(high, r)
				}
				if high-low > 1 {
					t.Fatalf("seed %d: processes are in rounds %d and %d", seed, low, high)
				}
				apart += high - low
			}
			fast := sim.Run(opt)
			if len(fast.Stats.Refused) > 0 || len(plain.Stats.Refused) > 0 {
				t.Fatalf("seed %d: %v %v", seed, fast.Stats.Refused, plain.Stats.Refused)
			}
			want := absorbed(plain)
			if have := absorbed(fast); !reflect.DeepEqual(have, want) || len(want[(parley.ID(seed)+1)%n]) < 4*(n-2) {
				t.Fatalf("seed %d: have %v, want %v", seed, have, want)
			}
			end := decided(fast)
			if on := silent; (end == 4000) != on {
				t.Fatalf("seed %d, silent %v: the last round closes at %d", seed, silent, end)
			}
			if decided(plain) != 4000 {
				t.Fatalf("seed %d: without early advance it closes at %d", seed, decided(plain))
			}
		}
	}
	if apart == 0 {
		t.Error("processes were never a round apart: nothing was tested")
	}
}

// Processes that are paused, each time for less than the slack and at any time,
// are in time with everything: all absorb all.
func TestHeldUpALittle(t *testing.T) {
	const n = 4
	for seed := range uint64(100) {
		opt := sim.Options{Protocol: lockstep.Of(saying(n), lockstep.Simulated), Seed: seed}
		want := absorbed(sim.Run(opt))
		r := rand.New(rand.NewPCG(seed, 3))
		for id := range parley.ID(n) {
			for at := parley.Tick(1); at < 4000; at += parley.Tick(49 + r.IntN(200)) {
				opt.Pauses = append(opt.Pauses, sim.Pause{At: id, From: at, For: parley.Tick(1 + r.IntN(48))})
			}
		}
		s := sim.Run(opt)
		if have := absorbed(s); len(s.Stats.Refused) > 0 || !reflect.DeepEqual(have, want) || len(want[0]) != 4*(n-1) {
			t.Fatalf("seed %d: refused %v, have %v, want %v", seed, s.Stats.Refused, have, want)
		}
		if end := decided(s); end < 4000 || end >= 4050 || s.Stats.Pauses < 20*n {
			t.Fatalf("seed %d: it ends at %d after %d pauses", seed, end, s.Stats.Pauses)
		}
	}
}

// A process that is paused for longer does not harm the others: they absorb all of each
// other's messages, and nothing late of its own. If the pause covers a round's end it abstains.
func TestHeldUpForLong(t *testing.T) {
	const n, slow = 4, 2
	abstained := 0
	for seed := range uint64(100) {
		opt := sim.Options{Protocol: lockstep.Of(saying(n), lockstep.Simulated), Seed: seed}
		want := absorbed(sim.Run(opt))
		r := rand.New(rand.NewPCG(seed, 4))
		opt.Pauses = []sim.Pause{{At: slow, From: 1 + parley.Tick(r.IntN(3900)), For: 50 + parley.Tick(r.IntN(3000))}}
		s := sim.Run(opt)
		from, to := opt.Pauses[0].From, opt.Pauses[0].From+opt.Pauses[0].For
		have := absorbed(s)
		for id, values := range want {
			ofSlow := func(v string) bool {
				x, err := strconv.Atoi(v)
				return err != nil || x/100%10 == slow
			}
			rest := slices.DeleteFunc(slices.Clone(have[id]), ofSlow)
			full := slices.DeleteFunc(slices.Clone(values), ofSlow)
			if id != slow && !slices.Equal(rest, full) {
				t.Fatalf("seed %d: process %d has %v of %v", seed, id, have[id], values)
			}
		}
		ends := (from + 999) / 1000 * 1000 // the first end of a round in the pause
		late := ends < to && to-ends >= 50 && ends <= 4000
		if s.Stats.Refused["woke too late: abstains"] == 1 != late {
			t.Fatalf("seed %d: asleep from %d to %d, refused %v", seed, from, to, s.Stats.Refused)
		}
		if late {
			abstained++
			for _, d := range s.History.Deliveries {
				if d.At == slow && d.When >= ends {
					t.Fatalf("seed %d: asleep from %d to %d, it closes a round at %d", seed, from, to, d.When)
				}
			}
		}
	}
	if abstained < 30 || abstained > 95 {
		t.Errorf("it abstained in %d runs", abstained)
	}
}

func decided(s *sim.Sim) parley.Tick {
	var last parley.Tick
	for _, d := range s.History.Deliveries {
		if s.History.Correct(d.At) {
			last = max(last, d.When)
		}
	}
	return last
}

// The protocol suite passes with and without early advance: machines saved and loaded with
// frames in their windows, and garbage on links.
func TestSuite(t *testing.T) {
	for _, early := range []bool{false, true} {
		when := lockstep.Simulated
		when.Early = early
		p := saying(4)
		p.Faults = parley.OralByzantineFaults
		p.Properties = []parley.Property{{
			Name: "all rounds close", Mode: parley.Eventually, Check: func(h *parley.History) error {
				closed := make(map[parley.ID]int)
				for _, d := range h.Deliveries {
					closed[d.At]++
				}
				for id := range parley.Everyone(h.N).Minus(h.Faulty).All() {
					if closed[id] != 4 {
						return fmt.Errorf("%d closes %d rounds", id, closed[id])
					}
				}
				return nil
			},
		}}
		p.Rename = func(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg { return m }
		p.New = func(parley.ID) lockstep.Rounds {
			return &counter{teller: teller{emit: func(s *parley.Step,
				r int) {
				s.SendAll(parley.Msg{Kind: 1, Value: uint64(r)})
			}}}
		}
		t.Run(fmt.Sprintf("early=%v", early), func(t *testing.T) {
			parleytest.Suite(t, lockstep.Of(p, when), parleytest.Options{Seeds: 60})
		})
	}
}

// counter is a teller that ignores senders, so that it can be renamed.
type counter struct {
	teller
	from parley.Set
	sum  int
}

func (c *counter) Absorb(_ *parley.Step, _ int, from parley.ID, m parley.Msg) {
	c.from.Add(from)
	c.sum += int(m.Value % 8)
}

func (c *counter) State(v *parley.Vars) {
	c.teller.State(v)
	v.Set("from", &c.from)
	parley.Num(v, "sum", &c.sum)
}

// Functions that look into messages see the messages in the frames, with the round, and
// the own copy, which is in no frame. A function that a protocol does not have is also
// missing from the protocol that Of makes.
func TestFrameFunctions(t *testing.T) {
	p := tellers(3, 2, nil)
	bare := lockstep.Of(p, hours)
	if bare.Size != nil || bare.Lies != nil || bare.Rename != nil || bare.Tree != nil {
		t.Error("functions out of nothing")
	}
	if bare.Timing != parley.Synchronous || bare.Kinds[lockstep.Frame] != "FRAME" {
		t.Error(bare.Timing, bare.Kinds)
	}
	p.Explain = func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return slices.Values([]string{fmt.Sprintf("%s:%d", name(e.From), m.Value),
			fmt.Sprintf("r%d@%d", e.Round, e.Path)})
	}
	p.Size = func(e parley.Env, m parley.Msg) parley.Traffic {
		return parley.Traffic{Messages: 1, Bits: m.Value, Signatures: uint64(e.Round)}
	}
	p.Rename = func(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
		m.Value = uint64(perm[m.Value]) + 10*uint64(e.Round)
		return m
	}
	p.Tree = func(r lockstep.Rounds) parley.Tree { _ = r.(*teller); return nil }
	full := lockstep.Of(p, hours)
	name := func(id parley.ID) string { return "P" + id.String() }
	rows := slices.Collect(full.Explain(parley.Env{From: 1, To: 2}, frame(2, 5, 6), name))
	if !slices.Equal(rows, []string{"P1:5", "r2@0", "P1:6", "r2@0"}) {
		t.Error(rows)
	}
	for range full.Explain(parley.Env{From: 1, To: 2}, frame(2, 5, 6), name) {
		break
	}
	said := frame(2, 5, 0)
	said.Body = parley.AppendMsg(said.Body, 0, parley.Msg{Kind: 1, Value: 5, Body: []byte("stay")})
	said.Body = parley.AppendMsg(said.Body, 0, parley.Msg{Kind: 9})
	if rows := slices.Collect(bare.Explain(parley.Env{From: 1, To: 2}, said, name)); !slices.Equal(rows,
		[]string{"NUMBER 5", "NUMBER", "NUMBER stay", "kind 9"}) {
		t.Error(rows)
	}
	for row := range bare.Explain(parley.Env{}, parley.Msg{Kind: parley.Propose, Body: []byte("1")}, name) {
		t.Errorf("what is proposed is explained: %s", row)
	}
	own := parley.Msg{Kind: 1, Seq: 1, Value: 7}
	if rows := slices.Collect(full.Explain(parley.Env{From: 1, To: 1}, own, name)); !slices.Equal(rows,
		[]string{"P1:7", "r1@0"}) {
		t.Error(rows)
	}
	if size := full.Size(parley.Env{From: 1, To: 2}, frame(2, 5, 6)); size != (parley.Traffic{Messages: 2,
		Bits: 11, Signatures: 4}) {
		t.Error(size)
	}
	if have := full.Rename(parley.Env{From: 1}, frame(1, 0, 2), []parley.ID{1, 2, 0}); !reflect.DeepEqual(have,
		frame(1, 11, 10)) {
		t.Error(lockstep.Open(have))
	}
	// A frame of a round that does not exist, or that cannot be read, has no rows.
	bad := frame(1, 5)
	bad.Body = bad.Body[:3]
	for _, m := range []parley.Msg{frame(3, 5), frame(1<<63, 5), bad} {
		if size := full.Size(parley.Env{From: 1, To: 2}, m); size != (parley.Traffic{}) {
			t.Error(size)
		}
		if have := full.Rename(parley.Env{From: 1}, m, []parley.ID{0, 1, 2}); len(lockstep.Open(have)) != len(lockstep.Open(m)) {
			t.Error(have)
		}
	}
	full.Tree(full.New(0))
}

// Lies open each frame of a turn. If messages were there and none is left, the frame is
// missing; if there were none, the frame is empty; and there may be more messages than in
// the honest frame.
func TestFrameLies(t *testing.T) {
	p := tellers(3, 2, nil)
	var turns []parley.Turn
	p.Lies = func(s *parley.Step, turn *parley.Turn) []parley.Outgoing {
		saw := *turn
		saw.Seen = nil
		for got := range turn.Seen {
			if got.Round != 1 || got.Msg.Value != 4 || got.From != 2 {
				t.Errorf("saw %+v", got)
			}
		}
		turns = append(turns, saw)
		switch {
		case turn.Round == 0 && turn.To == 1:
			return nil
		case turn.Round == 1:
			return append(slices.Clone(turn.Honest), parley.Outgoing{Path: 5, Msg: parley.Msg{Kind: 3}})
		}
		return turn.Honest
	}
	full := lockstep.Of(p, hours)
	s := &parley.Step{Self: 0, N: 3}
	turn := func(to parley.ID, frames ...parley.Msg) []parley.Outgoing {
		var honest []parley.Outgoing
		for _, m := range frames {
			honest = append(honest, parley.Outgoing{Msg: m})
		}
		return full.Lies(s, &parley.Turn{To: to, Honest: honest,
			Seen: slices.Values([]parley.Received{{From: 2, Msg: frame(1, 4)}})})
	}
	for name, c := range map[string]struct{ have, want []parley.Outgoing }{
		"honest":               {turn(2, frame(0, 1, 2)), []parley.Outgoing{{Msg: frame(0, 1, 2)}}},
		"nothing of something": {turn(1, frame(0, 1, 2)), nil},
		"nothing of nothing":   {turn(1, frame(0)), []parley.Outgoing{{Msg: frame(0)}}},
		"one more": {turn(1, frame(1, 7)), []parley.Outgoing{{Msg: parley.Msg{Kind: lockstep.Frame, Seq: 1,
			Body: parley.AppendMsg(frame(1, 7).Body, 5, parley.Msg{Kind: 3})}}}},
		"two rounds at once": {turn(1, frame(0, 1), frame(2, 3)), []parley.Outgoing{{Msg: frame(2, 3)}}},
		"no frame":           {turn(1), nil},
	} {
		if len(c.have) != len(c.want) || len(c.want) > 0 && !reflect.DeepEqual(c.have, c.want) {
			t.Errorf("%s: %+v, not %+v", name, c.have, c.want)
		}
	}
	if last := turns[len(turns)-1]; len(turns) != 6 || last.Round < 0 {
		t.Errorf("%d turns", len(turns))
	}
}

// Derive replaces deliveries in their place, and leaves all other effects unchanged.
func TestDerive(t *testing.T) {
	p := tellers(3, 0, func(s *parley.Step, _ int) {
		s.Deliver(2, parley.Msg{Kind: parley.Decide, Value: 7})
		s.SendAll(parley.Msg{Kind: 1})
	})
	p.Tree = func(r lockstep.Rounds) parley.Tree { _ = r.(*teller); return nil }
	var took []uint64
	d := lockstep.Derive(p, "derived", func(s *parley.Step, from parley.ID, m parley.Msg) {
		took = append(took, m.Value)
		s.Deliver(from, parley.Msg{Kind: parley.Decide, Value: m.Value + 100})
		s.Deliver(from, parley.Msg{Kind: parley.Decide, Value: m.Value + 200})
	})
	if d.Name != "derived" || p.Name != "tell" {
		t.Error(d.Name, p.Name)
	}
	b := seat(d, hours)
	b.start(0)
	var delivered []uint64
	sends := 0
	for _, e := range append(slices.Clone(b.timeout(100)), b.timeout(1100)...) {
		switch e.Op {
		case parley.OpDeliver:
			delivered = append(delivered, e.Msg.Value)
		case parley.OpSend:
			sends++
		}
	}
	if !slices.Equal(delivered, []uint64{107, 207, 100, 200}) || !slices.Equal(took, []uint64{7, 0}) ||
		sends != 1 {
		t.Error(delivered, took, sends)
	}
	d.Tree(d.New(0))
}
