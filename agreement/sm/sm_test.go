package sm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// TestSlide has one test per sentence of the lecture's "Algorithm SM(m)".
func TestSlide(t *testing.T) {
	// sent returns a run as a reader sees it, "round from>to v:0:...", without the messages
	// between faulty processes.
	sent := func(p parley.Protocol, log *trace.Log, liars []parley.ID) []string {
		var out []string
		name := func(id parley.ID) string { return id.String() }
		for _, e := range log.Events {
			if e.Op != trace.Send || slices.Contains(liars, e.At) && slices.Contains(liars, e.Peer) {
				continue
			}
			for row := range p.Explain(parley.Env{From: e.At, To: e.Peer}, e.Msg, name) {
				out = append(out, fmt.Sprintf("r%d %v>%v %s", e.Msg.Seq, e.At, e.Peer, row))
			}
		}
		slices.Sort(out)
		return out
	}
	run := func(c sm.Config, liars []parley.ID, sends ...sm.Forged) (*sim.Sim, []string) {
		log := &trace.Log{Keep: true}
		p := scripted(c, sends)
		s := sim.Run(sim.Options{
			Protocol: p, Faulty: the(faulty.Script, liars...), Requests: propose(c, "1"), Log: log,
		})
		return s, sent(p, log, liars)
	}
	expect := func(t *testing.T, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}

	t.Run("1: the transmitter signs its value and sends it to the others", func(t *testing.T) {
		_, got := run(config(4, 0), nil)
		expect(t, got, "r0 0>all 1:0")
	})
	t.Run("2A: i sets V to {v} and sends v:0:i to every other lieutenant", func(t *testing.T) {
		s, got := run(config(4, 1), nil)
		expect(t, got, "r0 0>all 1:0", "r1 1>2 1:0:1", "r1 1>3 1:0:1", "r1 2>1 1:0:2", "r1 2>3 1:0:2",
			"r1 3>1 1:0:3", "r1 3>2 1:0:3")
		same(t, "V", fmt.Sprint(set(s, 3)), "[1]")
	})
	t.Run("2A: a second direct value does not reset V", func(t *testing.T) {
		s, got := run(config(3, 1), ids(0), send(0, 0, 1, "a", 0), send(0, 0, 1, "b", 0))
		same(t, "V of 1", fmt.Sprint(set(s, 1)), "[a b]")
		same(t, "V of 2", fmt.Sprint(set(s, 2)), "[a b]")
		expect(t, got, "r0 0>1 a:0", "r0 0>1 b:0", "r1 1>2 a:0:1", "r1 1>2 b:0:1")
	})
	t.Run("2B: v not in V is added and, if k < m, sent to all not on the chain", func(t *testing.T) {
		s, got := run(config(6, 3), ids(0, 1), send(1, 1, 2, "x", 0, 1))
		expect(t, got, "r1 1>2 x:0:1",
			"r2 2>3 x:0:1:2", "r2 2>4 x:0:1:2", "r2 2>5 x:0:1:2",
			"r3 3>4 x:0:1:2:3", "r3 3>5 x:0:1:2:3", "r3 4>3 x:0:1:2:4", "r3 4>5 x:0:1:2:4",
			"r3 5>3 x:0:1:2:5", "r3 5>4 x:0:1:2:5")
		same(t, "V of 5", fmt.Sprint(set(s, 5)), "[x]")
	})
	t.Run("2B: v in V is not sent again", func(t *testing.T) {
		_, got := run(config(4, 2), nil)
		same(t, "messages", len(got), 1+6)
	})
	t.Run("2B: with k = m it is added and not sent", func(t *testing.T) {
		s, got := run(config(5, 2), ids(0, 1, 2), send(2, 2, 3, "x", 0, 1, 2))
		expect(t, got, "r2 2>3 x:0:1:2")
		same(t, "V of 3", fmt.Sprint(set(s, 3)), "[x]")
	})
	t.Run("3: the decision is choice(V) when no more can come", func(t *testing.T) {
		for _, x := range []struct {
			choice sm.Choice
			values []string
			want   string
		}{
			{sm.Only, nil, "0"}, {sm.Only, []string{"b"}, "b"}, {sm.Only, []string{"b", "a"}, "0"},
			{sm.Minimum, nil, "0"}, {sm.Minimum, []string{"b"}, "b"}, {sm.Minimum, []string{"b", "a", "c"}, "a"},
		} {
			c := config(4, 1)
			c.Choice = x.choice
			var sends []sm.Forged
			for i, v := range x.values {
				sends = append(sends, send(0, 0, parley.ID(1+i), v, 0))
			}
			s, _ := run(c, ids(0), sends...)
			for id, got := range decisions(c, s) {
				same(t, fmt.Sprint(x.choice, x.values, " at ", id), got, x.want)
			}
			for _, d := range s.History.Deliveries {
				same(t, "time of the decision", d.When, 2*lockstep.Simulated.Delta)
			}
		}
	})
	t.Run("the transmitter decides on its own value, and without one on the default", func(t *testing.T) {
		c := config(3, 1)
		for _, given := range []string{"", "7"} {
			opt := sim.Options{Protocol: sm.New(c, lockstep.Simulated)}
			want := "0"
			if given != "" {
				opt.Requests, want = propose(c, given), given
			}
			s := sim.Run(opt)
			same(t, "decisions", len(s.History.Deliveries), 3)
			for _, d := range s.History.Deliveries {
				same(t, fmt.Sprint("decision of ", d.At), string(d.Msg.Body), want)
				same(t, "about", d.Msg.Origin, c.Source)
			}
		}
	})
}

// TestRefused: a message that does not fit changes nothing and is counted under its reason.
func TestRefused(t *testing.T) {
	long := strings.Repeat("x", 1025)
	for _, x := range []struct {
		name, reason string
		m            int
		liars        []parley.ID
		sends        []sm.Forged
	}{
		{"value too long", "oversized-value", 1, ids(0), []sm.Forged{send(0, 0, 1, long, 0)}},
		{"no signature", "chain-length", 1, ids(0), []sm.Forged{send(0, 0, 1, "x")}},
		{"short chain in the last round", "chain-length", 1, ids(0), []sm.Forged{send(1, 0, 1, "x", 0)}},
		{"short chain on the way", "chain-length", 3, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 2)}},
		{"long chain", "chain-length", 2, ids(0, 2), []sm.Forged{send(0, 2, 1, "x", 0, 2)}},
		{"lieutenant as source", "not-from-source", 1, ids(2), []sm.Forged{send(0, 2, 1, "x", 2)}},
		{"source behind", "not-from-source", 2, ids(0, 2), []sm.Forged{send(1, 0, 1, "x", 2, 0)}},
		{"repeated signer", "repeated-signer", 2, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 2, 2)}},
		{"repeated source", "repeated-signer", 1, ids(0), []sm.Forged{send(1, 0, 1, "x", 0, 0)}},
		{"unknown signer", "unknown-signer", 2, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 9, 2)}},
		{"signer that no set holds", "unknown-signer", 2, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 999, 2)}},
		{"receiver on the chain", "own-signature", 2, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 1, 2)}},
		{"to the source", "own-signature", 1, ids(2), []sm.Forged{send(1, 2, 0, "1", 0, 2)}},
		{"last signer another", "last-signer-not-sender", 2, ids(0, 2, 3), []sm.Forged{send(1, 3, 1, "x", 0, 2)}},
		{"signature of a correct process", "bad-signature", 2, ids(0, 2), []sm.Forged{send(2, 2, 1, "x", 0, 3, 2)}},
		{"spoilt signature", "bad-signature", 1, ids(0), []sm.Forged{
			{Round: 0, From: 0, To: 1, Value: []byte("x"), Chain: ids(0), BadSig: 0}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := play(config(5, x.m), x.liars, x.sends...)
			for id := range s.Correct().All() {
				if slices.Contains(set(s, id), "x") {
					t.Errorf("process %d took it in", id)
				}
			}
			same(t, x.reason, s.Stats.Refused[x.reason], 1)
		})
	}
}

// TestNoCutOrSplice: each signature covers all before it, so that of all chains
// that can be made from one chain's signatures only its prefixes are valid.
func TestNoCutOrSplice(t *testing.T) {
	c, log := config(6, 3), &trace.Log{Keep: true}
	s := sim.Run(sim.Options{
		Protocol: scripted(c, []sm.Forged{send(1, 1, 2, "x", 0, 1)}), Faulty: the(faulty.Script, 0, 1), Log: log,
	})
	var value []byte
	var links []signature // x:0:1:2:3
	heard(s, log, func(at, from parley.ID, round int, m parley.Msg) {
		if round == 3 && from == 3 {
			value, links = unpack(m.Body)
		}
	})
	same(t, "links", len(links), 4)
	verify := sim.Ideal(0).Verify
	var tried, held int
	var choose func(picked []signature)
	choose = func(picked []signature) {
		if k := len(picked); k > 0 {
			for _, v := range [][]byte{value, []byte("y"), nil} {
				tried++
				_, chain, why := sm.Judge(c, 5, picked[k-1].by, k-1, pack(v, picked), verify)
				if whole := string(v) == "x" && reflect.DeepEqual(picked, links[:k]); whole != (why == "") {
					t.Errorf("%s by %v: %q", v, chain, why)
				} else if whole {
					held++
				}
			}
		}
		for _, l := range links {
			if !slices.ContainsFunc(picked, func(p signature) bool { return p.by == l.by }) {
				choose(append(slices.Clip(picked), l))
			}
		}
	}
	choose(nil)
	same(t, "chains tried", tried, 3*(4+12+24+24))
	same(t, "chains that hold", held, 4)
}

// TestOtherInstance: a signature from one instance does not count in an instance
// that differs in anything.
func TestOtherInstance(t *testing.T) {
	c := config(4, 1)
	c.Session = []byte("one")
	for name, change := range map[string]func(*sm.Config){
		"session": func(c *sm.Config) { c.Session = []byte("two") },
		"none":    func(c *sm.Config) { c.Session = nil },
		"n":       func(c *sm.Config) { c.N = 5 },
		"m":       func(c *sm.Config) { c.M = 2 },
		"source":  func(c *sm.Config) { c.Source = 1 },
		"same":    func(*sm.Config) {},
	} {
		other := c
		change(&other)
		p := sm.Rounds(c)
		p.Lies = sm.Script(other, []sm.Forged{send(0, 0, 2, "x", 0)})
		s := sim.Run(sim.Options{Protocol: lockstep.Of(p, lockstep.Simulated), Faulty: the(faulty.Script, 0)})
		if got := s.Stats.Refused["bad-signature"]; (got == 1) == (name == "same") {
			t.Errorf("%s: %d signatures refused", name, got)
		}
	}
}

// TestScriptRemembers: the coalition can begin a chain with whatever it has received
// in the run, however long ago, and with nothing that it received in another.
func TestScriptRemembers(t *testing.T) {
	// Only process 1 gets 1, and what it signs is received in round 1 and never
	// again; what 2 and 3 then sign, in round 2; and what 1 makes of y, in round 3.
	c := config(7, 4)
	p := scripted(c, []sm.Forged{
		send(0, 0, 1, "1", 0), send(4, 6, 2, "1", 0, 1, 4, 5, 6), send(4, 6, 3, "1", 0, 1, 2, 5, 6),
		send(2, 4, 1, "y", 0, 5, 4), send(4, 6, 2, "y", 0, 5, 4, 1, 6),
		send(4, 6, 2, "x", 0, 4, 5, 1, 6), // without a correct signer
	})
	for seed := range uint64(3) { // other keys, the same script
		log := &trace.Log{Keep: true}
		s := sim.Run(sim.Options{Protocol: p, Faulty: the(faulty.Script, 0, 4, 5, 6), Seed: seed, Log: log})
		same(t, "made up", s.Stats.Refused["bad-signature"], 1)
		late := 0
		heard(s, log, func(at, from parley.ID, round int, m parley.Msg) {
			v, _, why := sm.Judge(c, at, from, round, m.Body, sim.Ideal(seed).Verify)
			if from == 6 && string(v) != "x" {
				late++
				same(t, fmt.Sprintf("seed %d: what %d is shown of %s", seed, at, v), why, "")
			}
		})
		same(t, "chains", late, 3)
	}
	for m := range 3 {
		c := config(5, m)
		lies := []sm.Forged{send(m, 1, 2, "1", 0, 1), send(m, 1, 3, "0", 0, 1)}
		run := func(p parley.Protocol, value string) string {
			log := &trace.Log{}
			sim.Run(sim.Options{Protocol: p, Faulty: the(faulty.Script, 1), Requests: propose(c, value), Log: log})
			return log.Hash()
		}
		used := scripted(c, lies)
		for i, value := range []string{"1", "0", "0", "1"} {
			same(t, fmt.Sprintf("m = %d, run %d", m, i), run(used, value), run(scripted(c, lies), value))
		}
	}
}

// TestOneEncoding: a message has one encoding, and any other is refused.
func TestOneEncoding(t *testing.T) {
	c := config(3, 1)
	log := &trace.Log{Keep: true}
	s := sim.Run(sim.Options{Protocol: sm.New(c, lockstep.Simulated), Requests: propose(c, "1"), Log: log})
	var first *parley.Msg
	heard(s, log, func(at, from parley.ID, round int, m parley.Msg) {
		if first == nil && at == 1 {
			first = &m
		}
	})
	same(t, "kind", first.Kind, sm.Signed)
	same(t, "round", first.Seq, 0)
	same(t, "body", string(first.Body[:5]), "\x011\x01\x00\x08") // 1 byte: "1"; 1 link: process 0, 8 bytes
	same(t, "length", len(first.Body), 5+8)

	judge := func(body []byte) string {
		_, _, why := sm.Judge(c, 1, 0, 0, body, sim.Ideal(0).Verify)
		return why
	}
	same(t, "as it was", judge(first.Body), "")
	for i := range first.Body {
		same(t, fmt.Sprint("cut at ", i), judge(first.Body[:i]), "malformed")
	}
	same(t, "longer", judge(append(slices.Clone(first.Body), 0)), "malformed")
	same(t, "number not shortest", judge(append([]byte("\x81\x00"), first.Body[1:]...)), "malformed")
	for name, change := range map[string]func(*parley.Msg){
		"kind":   func(m *parley.Msg) { m.Kind = 2 },
		"round":  func(m *parley.Msg) { m.Seq = 1 },
		"origin": func(m *parley.Msg) { m.Origin = 1 },
		"value":  func(m *parley.Msg) { m.Value = 1 },
	} {
		changed := *first
		change(&changed)
		p := sm.Rounds(c)
		p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			if t.Round == 0 && t.To == 1 {
				return []parley.Outgoing{{Msg: changed}}
			}
			return nil
		}
		s := sim.Run(sim.Options{Protocol: lockstep.Of(p, lockstep.Simulated), Faulty: the(faulty.Script, 0)})
		same(t, name, s.Stats.Refused["malformed"], 1)
		same(t, name, len(set(s, 1)), 0)
	}
}
