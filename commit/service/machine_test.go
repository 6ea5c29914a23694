package service

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/twophase"
	"parley/internal/committest"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// watched returns a service under participants, and its machines for inspection.
func watched(c Config) (p parley.Protocol, machines []*Machine) {
	machines = make([]*Machine, c.N)
	beneath := New(c)
	made := beneath.New
	beneath.New = func(self parley.ID) parley.Machine {
		machines[self] = made(self).(*Machine)
		return machines[self]
	}
	p = Tower(c, parley.Everyone(c.N))
	p.New = stack.New(beneath, NewParticipant(c.N, true)).New
	return p, machines
}

// order returns a request for a transaction (see NewParticipant).
func order(at parley.ID, when parley.Tick, words string) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(words)}}
}

// forgotten checks that no process has a live transaction left.
func forgotten(t *testing.T, machines []*Machine, what any) {
	t.Helper()
	for id, m := range machines {
		for x := range m.all() {
			t.Errorf("%v: process %d keeps %s of %v, %v, told %t, acked %v, given %t",
				what, id, x.spec.Name, x.spec.Members, x.outcome, x.told, slices.Collect(x.acked.All()), x.given)
		}
		if len(m.live)+len(m.names) > 0 {
			t.Fatalf("%v: process %d keeps %d transactions and %d names", what, id, len(m.live), len(m.names))
		}
	}
}

// A process crashes in any step, between any two effects, for good or with a restart: the promises hold, and
// after the restart no transaction stays live.
func TestTransactionsEveryCrash(t *testing.T) {
	for _, majority := range []bool{false, true} {
		for _, votes := range []string{"yyy", "yny", "-yy", "y--"} {
			p, machines := watched(Config{N: 3, Majority: majority})
			opt := sim.Options{Protocol: p, FIFO: true, Until: 150_000, Requests: []sim.Request{order(0, 0, votes)}}
			sim.Run(opt)
			forgotten(t, machines, votes)
			for one := range committest.Crashes(opt, 0, 1, 4000, 30_000) {
				what := fmt.Sprint(majority, votes, one.Crashes)
				parleytest.Judge(t, p, sim.Run(one), what)
				if one.Crashes[0].Back > 0 {
					forgotten(t, machines, what)
				}
			}
		}
	}
}

// Many transactions of all nodes run at a time, links break and heal, and processes restart from logs that are
// compacted in between: the promises hold, and in the end no transaction stays live.
func TestTransactionsOnBadLinks(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 3))
		const n = 4
		p, machines := watched(Config{
			N: n, Majority: seed%2 == 1, Compact: 40,
			Remember: []int{1, 64}[seed/2%2], // a coordinator that has forgotten answers abort
		})
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Loss: 0.2 * r.Float64(), Heal: 60_000, Until: 600_000}
		for i := range 40 {
			votes := []byte("yyyy")
			for range r.IntN(3) {
				votes[r.IntN(n)] = "-ny"[r.IntN(3)]
			}
			opt.Requests = append(opt.Requests,
				order(parley.ID(r.IntN(n)), parley.Tick(r.IntN(40_000)), fmt.Sprintf("t%d %s", i, votes)))
		}
		for range r.IntN(4) {
			opt.Crashes = append(opt.Crashes, sim.Crash{
				At: parley.ID(r.IntN(n)), Step: 1 + r.IntN(300), Effects: r.IntN(6), Back: 1 + parley.Tick(r.IntN(20_000)),
			})
		}
		parleytest.Judge(t, p, sim.Run(opt), seed)
		forgotten(t, machines, seed)
	}
}

// A vote that is late counts as no, at the coordinator and at other members.
func TestVoteIsLate(t *testing.T) {
	for self := range parley.ID(2) {
		s := &parley.Step{Self: self, N: 2, Host: new(committest.Host)}
		m := newMachine(Config{N: 2}.withDefaults(), self)
		of := specOf(0, "t", "yy")
		path := PathOf(0, 1)
		if self == 0 {
			m.Start(s)
			m.Request(s, parley.Msg{Kind: Commit, Body: of.Encode()})
		} else {
			s.Path = path
			m.Receive(s, 0, parley.Msg{Kind: msgBegin, Seq: 1, Body: of.Only(1).Encode()})
			m.Receive(s, 0, parley.Msg{Kind: twophase.VoteRequest})
		}
		s.Path = path
		m.Timeout(s, voteTimer)
		if e := m.history.at[path]; e == nil || e.Outcome != problem.Abort || self == 0 && e.Why.Text != "was not ready in time" {
			t.Errorf("process %d: %+v", self, e)
		}
	}
}

// rules returns the configuration of machines that a test drives by hand.
func rules(n int, majority bool) Config {
	return Config{N: n, Majority: majority, Delta: 1000, Votes: 2000, Open: 64, Remember: 64, Compact: 4096, First: 1}
}

// A peer with invented messages opens no more transactions than allowed, takes no more memory than allowed,
// decides nothing, and does not disturb the transactions of others.
func TestTransactionsAmongHostileMessages(t *testing.T) {
	for _, p := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 1))
		c := rules(3, p)
		m := newMachine(c, 2)
		h := new(committest.Host)
		s := &parley.Step{Self: 2, N: 3, Host: h}
		of := specOf(0, "honest", "y-y")
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
			case 2: // its own transaction, of the greatest size
				long.Name = fmt.Sprint("x", i)
				q = parley.Msg{Kind: msgBegin, Seq: 1, Body: long.Encode()}
				receive(1, PathOf(1, uint64(10+i)), q)
				continue
			case 3:
				q.Body = encodeNumbers([]uint64{5, 6, 7})
			}
			to := []parley.Path{0, path, PathOf(1, uint64(r.IntN(100))), PathOf(2, uint64(r.IntN(3))), parley.Path(r.Uint64())}[r.IntN(5)]
			if from == 0 && to == path {
				from = 1 // what the coordinator itself sends decides
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
		if !x.ready || len(h.Why) < 50_000 {
			t.Errorf("%v: ready %t, %d refused", p, x.ready, len(h.Why))
		}
	}
}

// A spec, numbers and the state of the machine are read as they were written. Anything else is refused.
func TestTransactionEncodings(t *testing.T) {
	b := specOf(1, "name", "yyn").Encode()
	of, ok := ReadSpec(b, 3)
	if !ok || of.Name != "name" || !slices.Equal(of.Members, []parley.ID{1, 0, 2}) || len(of.Parts) != 3 {
		t.Fatal(of, ok)
	}
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
	p, machines := watched(rules(3, true))
	sim.Run(sim.Options{Protocol: p, FIFO: true, Until: 1200, Requests: []sim.Request{order(0, 0, "a yyy"), order(1, 100, "b yyn")}})
	m := machines[0]
	saved := parley.Save(m, 7, nil)
	again := newMachine(m.c, 0)
	if len(m.live) != 2 || !parley.Load(again, 7, saved) || !bytes.Equal(parley.Save(again, 7, nil), saved) {
		t.Error("the state does not come back")
	}
}

// A damaged state that names a coordinator outside the system is refused.
func TestDamagedCoordinator(t *testing.T) {
	p, machines := watched(rules(3, true))
	sim.Run(sim.Options{Protocol: p, FIFO: true, Until: 1200, Requests: []sim.Request{order(0, 0, "a yyy"), order(1, 100, "b yyn")}})
	for _, beyond := range []parley.ID{3, 4, 255} {
		m := machines[0]
		for x := range m.all() {
			x.path = PathOf(beyond, 1)
		}
		for what, b := range map[string][]byte{"all": parley.Save(m, 7, nil), "what is durable": parley.SaveDurable(m, 7, nil)} {
			again, taken := newMachine(m.c, 0), false
			if what == "all" {
				taken = parley.Load(again, 7, b)
			} else {
				taken = parley.LoadDurable(again, 7, b)
			}
			if taken {
				t.Errorf("%s of a state with coordinator %d of 3 is taken", what, beyond)
			}
		}
	}
}

// A process that has lost its state, and its later incarnations, answer for nothing earlier: a coordinator
// does not presume abort for a transaction that it may have committed, and a participant does not say that it
// was never asked. A process that waits for such an answer is blocked.
func TestTransactionsAfterALoss(t *testing.T) {
	for _, lost := range []bool{false, true} {
		c := rules(3, false)
		c.Forgot, c.First = lost, 1000
		lives := []*Machine{newMachine(c, 2)}
		s := &parley.Step{Self: 2, N: 3, Host: new(committest.Host), Restart: true}
		lives[0].Start(s)
		c.Forgot, c.First = false, 2000
		later := newMachine(c, 2)
		if !parley.LoadDurable(later, 0, parley.SaveDurable(lives[0], 0, nil)) {
			t.Fatal("the state does not come back")
		}
		later.Start(s)
		of := specOf(0, "t", "yyy")
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

// A process that told a member that it was not asked remembers that after a crash. It does not vote yes when
// the coordinator's vote request arrives later.
func TestNoToAMemberIsDurable(t *testing.T) {
	c := rules(3, false)
	m, path := newMachine(c, 2), PathOf(0, 5)
	of := specOf(0, "t", "yyy")
	s := &parley.Step{Self: 2, N: 3, Host: new(committest.Host)}
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
