package service

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/twophase"
	"parley/parleytest"
	"parley/sim"
)

// party is a node of a run: the machine, and a participant that answers after a while. A
// part "no" is voted down, "late" is not answered.
type party struct {
	*Machine
	work []parley.Msg // what it still has to answer
	busy bool
}

const workTimer parley.Timer = 0x200

// thinks is how long it takes to answer.
const thinks = 50

// carries is how long it takes to carry out, or take back, what was decided.
var carries parley.Tick = thinks

func (p *party) Start(s *parley.Step) {
	p.Machine.Start(s)
	p.hear(s)
}

func (p *party) Request(s *parley.Step, m parley.Msg) {
	p.Machine.Request(s, m)
	p.hear(s)
}

func (p *party) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	p.Machine.Receive(s, from, m)
	p.hear(s)
}

func (p *party) Timeout(s *parley.Step, t parley.Timer) {
	if t != workTimer {
		p.Machine.Timeout(s, t)
	} else if len(p.work) > 0 {
		m := p.work[0]
		p.work = p.work[1:]
		p.busy = false
		p.Machine.Request(s, m)
	}
	p.hear(s)
}

// hear takes what the machine wants of the participant.
func (p *party) hear(s *parley.Step) {
	for _, e := range s.Effects {
		switch m := e.Msg; {
		case e.Op == parley.OpDeliver && m.Kind == Prepare && m.Seq == 0:
			t, ok := ReadSpec(m.Body, p.c.N)
			if !ok {
				panic("a spec that cannot be read")
			}
			switch body, _ := t.Part(p.self); string(body) {
			case "late":
			case "no":
				p.work = append(p.work, parley.Msg{Kind: Voted, Value: m.Value, Body: []byte("no")})
			default:
				p.work = append(p.work, parley.Msg{Kind: Voted, Value: m.Value, Seq: 1})
			}
		case e.Op == parley.OpDeliver && m.Kind == Ended && m.Origin == 1:
			p.work = append(p.work, parley.Msg{Kind: Applied, Value: m.Value})
		}
	}
	if len(p.work) > 0 && !p.busy {
		p.busy = true
		after := parley.Tick(thinks)
		if p.work[0].Kind == Applied {
			after = carries
		}
		s.SetTimer(workTimer, after)
	}
}

// rules are those of runs.
func rules(n int, majority bool) Config {
	return Config{N: n, Majority: majority, Delta: 1000, Votes: 2000, Open: 64, Remember: 64, Compact: 4096, First: 1}
}

// parties is a system as a protocol. Each life begins with larger numbers.
func parties(c Config) parley.Protocol {
	made := func(self parley.ID) parley.Machine {
		c.First += 1 << 24
		return &party{Machine: newMachine(c, self)}
	}
	return parley.Protocol{
		Name: "transactions", N: c.N, M: c.N - 1, Relies: parley.Reliance{FIFO: true}, Kinds: slices.Repeat([]string{"x"}, 0x24),
		New:      made,
		Promises: func(parley.Assumptions) []parley.Promise { return nil },
		Size:     func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
	}
}

// begins is the request for a transaction with a part at each of the nodes, a letter each: y, n, l
// (late), or - for none.
func begins(at parley.ID, when parley.Tick, name, votes string) sim.Request {
	t := Spec{Name: name, Digest: 7, Members: []parley.ID{at}}
	for i, v := range votes {
		if v == '-' {
			continue
		}
		if parley.ID(i) != at {
			t.Members = append(t.Members, parley.ID(i))
		}
		t.Parts = append(t.Parts, Part{parley.ID(i), []byte(map[rune]string{'y': "do", 'n': "no", 'l': "late"}[v])})
	}
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: Commit, Body: t.Encode()}}
}

// outcomesOf are the outcomes, by transaction and node: c, a, b for blocked, - for none.
func outcomesOf(s *sim.Sim, n int) map[string]string {
	out := make(map[string][]byte)
	note := func(name string, at parley.ID, what byte) {
		if out[name] == nil {
			out[name] = []byte(strings.Repeat("-", n))
		}
		if was := out[name][at]; what == 'b' && was != '-' {
			return
		} else if was == 'c' && what == 'a' || was == 'a' && what == 'c' {
			what = 'X'
		}
		out[name][at] = what
	}
	for _, d := range s.History.Deliveries {
		if d.Msg.Kind == Ended {
			name, why := ReadEnded(d.Msg.Body)
			if why.Claim != Free {
				name += "'"
			}
			note(name, d.At, map[problem.Outcome]byte{problem.Commit: 'c', problem.Abort: 'a'}[problem.Outcome(d.Msg.Seq)])
		}
	}
	for _, d := range s.History.Indications {
		if d.Msg.Kind == Blocked {
			_, name := ReadBlocked(d.Msg.Body, n)
			note(name, d.At, 'b')
		}
	}
	text := make(map[string]string)
	for name, x := range out {
		text[name] = string(x)
	}
	return text
}

// sound demands that all who know an outcome know the same, and that it is commit only if all said yes.
func sound(t *testing.T, s *sim.Sim, n int, votes map[string]string, what any) map[string]string {
	t.Helper()
	got := outcomesOf(s, n)
	for name, all := range got {
		switch {
		case strings.Contains(all, "X"), strings.Contains(all, "c") && strings.Contains(all, "a"),
			strings.Contains(all, "c") && strings.ContainsAny(votes[name], "nl"):
			t.Fatalf("%v: %s %s ends in %s", what, name, votes[name], all)
		}
	}
	return got
}

// remaining is how many Machine nodes still know of.
func remaining(s *sim.Sim, n int) (live int) {
	for id := range parley.ID(n) {
		m := s.Machine(id).(*party).Machine
		live += len(m.live)
		if len(m.names) > len(m.live) {
			panic("names of no transaction")
		}
	}
	return live
}

// stay describes them.
func stay(s *sim.Sim, n int) (text []string) {
	for id := range parley.ID(n) {
		for _, t := range s.Machine(id).(*party).live {
			text = append(text, fmt.Sprintf("at %d: %s of %v, %v, told %t, acked %v, given %t",
				id, t.spec.Name, t.spec.Members, t.outcome, t.told, slices.Collect(t.acked.All()), t.given))
		}
	}
	return text
}

// Without faults all commit if all say yes, and else all abort, also those without others
// or without a part of the coordinator's, and in the end nobody keeps any.
func TestTransactionsWithoutFaults(t *testing.T) {
	for _, p := range []bool{false, true} {
		votes := map[string]string{
			"all": "yyyy", "some": "y-y-", "one": "y---", "other": "--y-", "no": "yyny", "own": "nyyy", "late": "ylyy", "lone": "n---",
		}
		for seed := range uint64(20) {
			opt := sim.Options{Protocol: parties(rules(4, p)), Seed: seed, FIFO: true, Until: 100_000}
			for i, name := range slices.Sorted(maps.Keys(votes)) {
				opt.Requests = append(opt.Requests, begins(0, parley.Tick(10*i), name, votes[name]))
			}
			s := sim.Run(opt)
			got := sound(t, s, 4, votes, seed)
			for name, v := range votes {
				want := byte('c')
				if strings.ContainsAny(v, "nl") {
					want = 'a'
				}
				for i := range v {
					if (v[i] != '-' || i == 0) && got[name][i] != want {
						t.Errorf("%v, seed %d: %s %s ends in %s", p, seed, name, v, got[name])
					}
				}
			}
			if n := remaining(s, 4); n > 0 {
				t.Errorf("%v, seed %d: %d are kept", p, seed, n)
			}
		}
	}
}

// Every crash of every node, in all steps and between all effects, for good and with a
// restart from its log: nobody commits what another aborts, those that stay decide unless they
// say that they are blocked, and when the node is back all decide and nothing is kept.
func TestTransactionsEveryCrash(t *testing.T) {
	for _, c := range []struct {
		majority bool
		votes    string
	}{{false, "yyy"}, {false, "yny"}, {false, "-yy"}, {true, "yyy"}, {true, "yny"}, {true, "-yy"}} {
		runs, blocked, committed := 0, 0, 0
		for seed := range uint64(2) {
			carries = []parley.Tick{thinks, 5000}[seed]
			opt := sim.Options{Protocol: parties(rules(3, c.majority)), Seed: seed, FIFO: true, Until: 150_000,
				Requests: []sim.Request{begins(0, 0, "t", c.votes)}}
			for _, crash := range parleytest.CrashPoints(opt) {
				for _, crash.Back = range []parley.Tick{0, 1, 4000, 30_000} {
					one := opt
					one.Crashes = []sim.Crash{crash}
					s := sim.Run(one)
					what := fmt.Sprint(c.majority, c.votes, seed, crash)
					got := sound(t, s, 3, map[string]string{"t": c.votes}, what)["t"]
					runs++
					if strings.Contains(got, "c") {
						committed++
					}
					if crash.Back == 0 {
						if strings.Contains(got, "b") {
							blocked++
							if c.majority {
								t.Errorf("%s: with a majority there, %s", what, got)
							}
						}
						continue
					}
					if strings.Contains(got, "b") || remaining(s, 3) > 0 {
						t.Fatalf("%s: in the end %s, %d are kept", what, got, remaining(s, 3))
					}
				}
			}
		}
		carries = thinks
		t.Logf("%v %s: %d runs, %d committed, %d blocked", c.majority, c.votes, runs, committed, blocked)
		if c.majority == false && c.votes == "yyy" && (blocked == 0 || committed == 0) {
			t.Errorf("of %d runs %d committed and %d were blocked", runs, committed, blocked)
		}
	}
}

// Many Machine of all nodes at a time, links that break and come back, and crashes
// with restarts from logs that are compacted now and then: outcomes agree, and in the end
// all are over everywhere.
func TestTransactionsOnBadLinks(t *testing.T) {
	for seed := range uint64(120) {
		p := seed%2 == 1
		r := rand.New(rand.NewPCG(seed, 3))
		const n = 4
		c := rules(n, p)
		c.Compact = 40
		c.Remember = []int{1, 64}[seed/2%2] // who has forgotten it says that it was aborted
		opt := sim.Options{Protocol: parties(c), Seed: seed, FIFO: true, Loss: 0.2 * r.Float64(), Heal: 60_000, Until: 600_000}
		votes := make(map[string]string)
		for i := range 40 {
			v := []byte("yyyy")
			for range r.IntN(3) {
				v[r.IntN(n)] = "-nly"[r.IntN(4)]
			}
			name := fmt.Sprint("t", i)
			votes[name] = string(v)
			opt.Requests = append(opt.Requests, begins(parley.ID(r.IntN(n)), parley.Tick(r.IntN(40_000)), name, string(v)))
		}
		for range r.IntN(4) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: parley.ID(r.IntN(n)), Step: 1 + r.IntN(300), Effects: r.IntN(6), Back: 1 + parley.Tick(r.IntN(20_000)),
			})
		}
		s := sim.Run(opt)
		for name, got := range sound(t, s, n, votes, seed) {
			if strings.Contains(got, "b") {
				t.Errorf("seed %d: %s %s: %s", seed, name, votes[name], got)
			}
		}
		if k := remaining(s, n); k > 0 {
			t.Fatalf("seed %d, %v: %d are kept: %s", seed, p, k, stay(s, n))
		}
	}
}

// What peers make up is refused: it opens no more than it may, takes no more memory than it
// may, decides nothing, and the Machine of others go on.
func TestTransactionsAmongHostileMessages(t *testing.T) {
	for _, p := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 1))
		c := rules(3, p)
		m := newMachine(c, 2)
		h := &counting{}
		s := &parley.Step{Self: 2, N: 3, Host: h}
		honest := begins(0, 0, "honest", "y-y").Msg.Body
		of, _ := ReadSpec(honest, 3)
		path := PathOf(0, 5)
		begin := parley.Msg{Kind: msgBegin, Seq: 1, Value: 5, Body: of.Only(2).Encode()}
		receive := func(from parley.ID, path parley.Path, q parley.Msg) {
			s.Path = path
			m.Receive(s, from, q)
			s.Effects = s.Effects[:0]
		}
		receive(0, path, begin)
		long := Spec{Name: "x", Members: []parley.ID{1, 2}, Parts: []Part{{2, make([]byte, MaxPart)}}}
		for i := range 200_000 {
			from := parley.ID(r.IntN(2))
			q := parley.Msg{
				Kind: parley.Kind(r.IntN(0x28)), Origin: parley.ID(r.IntN(4) / 3), Seq: uint64(r.IntN(3)), Value: uint64(r.IntN(3)),
			}
			switch r.IntN(6) {
			case 0:
				q.Body = make([]byte, r.IntN(40))
				for k := range q.Body {
					q.Body[k] = byte(r.IntN(256))
				}
			case 1:
				q.Body = slices.Clone(begin.Body)
				q.Body[r.IntN(len(q.Body))] ^= byte(1 + r.IntN(255))
			case 2: // a transaction of its own, as large as may be
				long.Name = fmt.Sprint("x", i)
				q = parley.Msg{Kind: msgBegin, Seq: 1, Body: long.Encode()}
				receive(1, PathOf(1, uint64(10+i)), q)
				continue
			case 3:
				q.Body = encodeNumbers([]uint64{5, 6, 7})
			}
			to := []parley.Path{0, path, PathOf(1, uint64(r.IntN(100))), PathOf(2, uint64(r.IntN(3))), parley.Path(r.Uint64())}[r.IntN(5)]
			if from == 0 && to == path {
				from = 1 // what the coordinator itself says decides
			}
			receive(from, to, q)
		}
		for id := range m.of {
			if k := len(m.of[id].list); k > 4*c.Open {
				t.Errorf("%v: %d Machine of node %d", p, k, id)
			}
			if m.of[id].bytes > MaxParts {
				t.Errorf("%v: %d bytes of node %d", p, m.of[id].bytes, id)
			}
		}
		x := m.live[path]
		if x == nil || x.outcome != problem.Undecided || x.spec.Name != "honest" {
			t.Fatalf("%v: the honest one is %+v", p, x)
		}
		m.Request(s, parley.Msg{Kind: Voted, Value: uint64(path), Seq: 1})
		if !x.ready || h.refused < 50_000 {
			t.Errorf("%v: ready %t, %d refused", p, x.ready, h.refused)
		}
	}
}

// counting is a host that counts what is refused.
type counting struct{ refused int }

func (*counting) Choose(int) int                         { return 0 }
func (*counting) Sign(parley.ID, []byte) []byte          { return nil }
func (*counting) Verify(parley.ID, []byte, []byte) bool  { return false }
func (h *counting) Refused(parley.ID, parley.ID, string) { h.refused++ }

// A spec, numbers and the state of the machine are read as they were written, and nothing
// else is.
func TestTransactionEncodings(t *testing.T) {
	of, ok := ReadSpec(begins(1, 0, "name", "yyn").Msg.Body, 3)
	if !ok || of.Name != "name" || !slices.Equal(of.Members, []parley.ID{1, 0, 2}) || len(of.Parts) != 3 {
		t.Fatal(of, ok)
	}
	b := of.Encode()
	for i := range b {
		if _, ok := ReadSpec(b[:i], 3); ok {
			t.Errorf("%d of %d bytes are taken", i, len(b))
		}
	}
	if _, ok := ReadSpec(append(b, 0), 3); ok {
		t.Error("one byte more is taken")
	}
	if _, ok := ReadSpec(b, 2); ok {
		t.Error("a member that there is not")
	}
	list := []uint64{3, 4, 1 << 50}
	if got, ok := readNumbers(encodeNumbers(list), 3); !ok || !slices.Equal(got, list) {
		t.Error(got, ok)
	}
	for _, bad := range [][]byte{encodeNumbers([]uint64{1, 1}), encodeNumbers([]uint64{1 << 56}), {0x80}, encodeNumbers([]uint64{1, 2, 3, 4})} {
		if got, ok := readNumbers(bad, 3); ok {
			t.Errorf("%x is %v", bad, got)
		}
	}
	opt := sim.Options{Protocol: parties(rules(3, true)), FIFO: true, Until: 1200,
		Requests: []sim.Request{begins(0, 0, "a", "yyy"), begins(1, 100, "b", "yyn")}}
	s := sim.Run(opt)
	m := s.Machine(0).(*party).Machine
	saved := parley.Save(m, 7, nil)
	again := newMachine(m.c, 0)
	if len(m.live) != 2 || !parley.Load(again, 7, saved) || !bytes.Equal(parley.Save(again, 7, nil), saved) {
		t.Error("the state does not come back")
	}
}

// Who has lost what it knew, and its later lives, answer for nothing of before: neither does a
// coordinator presume an abort of what it may have committed, nor a participant say that it
// was never asked. Who waits for that is blocked.
func TestTransactionsAfterALoss(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c := rules(3, false)
		c.Forgot, c.First = lost, 1000
		lives := []*Machine{newMachine(c, 2)}
		s := &parley.Step{Self: 2, N: 3, Host: new(counting), Restart: true}
		lives[0].Start(s)
		c.Forgot, c.First = false, 2000
		later := newMachine(c, 2)
		if !parley.LoadDurable(later, 0, parley.SaveDurable(lives[0], 0, nil)) {
			t.Fatal("the state does not come back")
		}
		later.Start(s)
		of, _ := ReadSpec(begins(0, 0, "t", "yyy").Msg.Body, 3)
		for life, m := range append(lives, later) {
			answers := func(path parley.Path, list ...parley.Msg) (n int) {
				s.Effects, s.Restart = nil, false
				for _, q := range list {
					s.Path = path
					m.Receive(s, 1, q)
				}
				for _, e := range s.Effects {
					if e.Op == parley.OpSend && e.To == 1 {
						n++
					}
				}
				return n
			}
			own := answers(PathOf(2, 900), parley.Msg{Kind: twophase.Ask})
			others := answers(PathOf(0, 5), parley.Msg{Kind: msgBegin, Body: of.Only(parley.All).Encode()}, parley.Msg{Kind: twophase.Ask})
			if own != others || own > 0 == lost {
				t.Errorf("lost %t, life %d: %d answers as coordinator, %d as participant", lost, life, own, others)
			}
		}
	}
}

// Who has told a member that it was not asked knows that after a crash, and does not say yes to the
// coordinator, whose question was under way for longer.
func TestNoToAMemberIsDurable(t *testing.T) {
	c := rules(3, false)
	m, path := newMachine(c, 2), PathOf(0, 5)
	of, _ := ReadSpec(begins(0, 0, "t", "yyy").Msg.Body, 3)
	s := &parley.Step{Self: 2, N: 3, Host: new(counting)}
	for _, q := range []parley.Msg{{Kind: msgBegin, Body: of.Only(parley.All).Encode()}, {Kind: twophase.Ask}} {
		s.Path = path
		m.Receive(s, 1, q)
	}
	for _, e := range s.Effects {
		if e.Op == parley.OpAppend {
			s.Log = append(s.Log, parley.Record{Path: e.Path, Body: e.Msg.Body})
		}
	}
	m, s.Path, s.Effects, s.Restart = newMachine(c, 2), 0, nil, true
	m.Start(s)
	for _, q := range []parley.Msg{{Kind: msgBegin, Seq: 1, Body: of.Only(2).Encode()}, {Kind: twophase.VoteRequest}} {
		s.Path = path
		m.Receive(s, 0, q)
	}
	m.Request(s, parley.Msg{Kind: Voted, Value: uint64(path), Seq: 1})
	for _, e := range s.Effects {
		if e.Op == parley.OpDeliver && e.Msg.Kind == Prepare || e.Op == parley.OpSend && e.Msg.Kind == twophase.Vote && e.Msg.Value == 1 {
			t.Errorf("it said no to a member before a crash, and then %+v", e)
		}
	}
}
