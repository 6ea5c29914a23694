package sm_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"parley"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// TestSaveLoad: a run goes on alike if every process moves into a new body, by
// what State visits, after each of its clauses.
func TestSaveLoad(t *testing.T) {
	c := config(6, 3, "0", "1", "2")
	two := c
	two.Relay = sm.RelayTwo
	bad := sm.Forged{Round: 1, From: 2, To: 1, Value: []byte("x"), Chain: ids(0, 2), BadSig: 1}
	script := []sm.Forged{send(0, 0, 1, "1", 0), bad, bad, send(1, 2, 1, "y", 0, 2), send(2, 2, 1, "z", 0, 3, 2)}
	for name, x := range map[string]struct {
		c    sm.Config
		how  faulty.Behaviour
		lies []sm.Forged
	}{
		"at random": {c, faulty.Random, nil},
		"scripted":  {two, faulty.Script, script},
	} {
		run := func(moving bool) string {
			log := &trace.Log{}
			p := sm.Rounds(x.c)
			if x.lies != nil {
				p.Lies = sm.Script(x.c, x.lies)
			}
			if fresh := p.New; moving {
				p.New = func(self parley.ID) lockstep.Rounds { return &mover{fresh(self), self, fresh} }
			}
			s := sim.Run(sim.Options{
				Protocol: lockstep.Of(p, lockstep.Simulated), Faulty: the(x.how, 0, 2, 3), Seed: 5,
				Requests: propose(x.c, "1"), Log: log,
			})
			return fmt.Sprint(log.Hash(), s.Stats.Refused)
		}
		same(t, name, run(true), run(false))
	}
}

// mover is a process that moves into a new body after each clause.
type mover struct {
	lockstep.Rounds
	self  parley.ID
	fresh func(parley.ID) lockstep.Rounds
}

func (x *mover) move() {
	state := parley.Save(machine{Rounds: x.Rounds}, 0, nil)
	next := machine{Rounds: x.fresh(x.self)}
	if !parley.Load(next, 0, bytes.Clone(state)) {
		panic("a process does not load what it saved")
	}
	x.Rounds = next.Rounds
}

func (x *mover) Request(s *parley.Step, m parley.Msg) { x.Rounds.Request(s, m); x.move() }
func (x *mover) Emit(s *parley.Step, r int)           { x.Rounds.Emit(s, r); x.move() }
func (x *mover) Close(s *parley.Step, r int)          { x.Rounds.Close(s, r); x.move() }
func (x *mover) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	x.Rounds.Absorb(s, r, from, m)
	x.move()
}

// TestRename: a chain is renamed signer by signer, and twice back and forth is
// as renamed by nothing.
func TestRename(t *testing.T) {
	p := sm.Rounds(config(4, 2))
	m := parley.Msg{Kind: sm.Signed, Seq: 1, Body: pack([]byte("v"), []signature{{0, "aaaa"}, {2, "bb"}})}
	name := func(id parley.ID) string { return fmt.Sprint("p", id) }
	row := func(m parley.Msg) string {
		for row := range p.Explain(parley.Env{}, m, name) {
			return row
		}
		return ""
	}
	same(t, "as it is", row(m), "v:p0:p2")
	there := p.Rename(parley.Env{}, m, []parley.ID{0, 2, 3, 1})
	same(t, "renamed", row(there), "v:p0:p3")
	back := p.Rename(parley.Env{}, there, []parley.ID{0, 3, 1, 2})
	nothing := p.Rename(parley.Env{}, m, []parley.ID{0, 1, 2, 3})
	same(t, "there and back", string(back.Body), string(nothing.Body))
	junk := parley.Msg{Kind: sm.Signed, Body: []byte("junk")}
	same(t, "junk", string(p.Rename(parley.Env{}, junk, []parley.ID{0, 1, 2, 3}).Body), "junk")
	same(t, "junk in words", row(junk), "")
	same(t, "size of junk", p.Size(parley.Env{}, junk), parley.Traffic{})
}

// TestCheck: what Check and the flags refuse, and in which words.
func TestCheck(t *testing.T) {
	for args, want := range map[string]string{
		"-n 5":                            "",
		"-n 5 -m 3":                       "",
		"-n 2 -m 0 -relay two":            "",
		"-n 5 -choice minimum":            "",
		"-n 5 -m 4":                       "-m",
		"-n 1":                            "-n",
		"-n 5 -relay some":                "--relay: \"some\": allowed are all and two",
		"-n 5 -choice most":               "--choice: \"most\": allowed are only and minimum",
		"-n 5 -relay two -choice minimum": "--relay: two goes with --choice only",
	} {
		fs := flag.NewFlagSet("sm", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		made := sm.New(config(4, 1), lockstep.Simulated).Flags(fs)
		if err := fs.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		p, err := made(nil)
		if err == nil && want == "" {
			if p.N < 2 || p.N-p.M < 2 || p.New == nil || p.Bound(p.N, p.M) != nil {
				t.Errorf("%s: n=%d, m=%d", args, p.N, p.M)
			}
			continue
		}
		if got := fmt.Sprint(err); want == "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	in := config(4, 1).Instance
	for _, c := range []sm.Config{{Instance: in, Relay: 2}, {Instance: in, Choice: 2}} {
		if c.Check() == nil {
			t.Errorf("Check lets %d, %d pass", c.Relay, c.Choice)
		}
	}
	if sm.Rounds(config(4, 3)).Bound(4, 3) == nil {
		t.Error("n = m+1 is within the bound")
	}
}

// FuzzJudge: whatever arrives, judging it does not fail, and a chain that can be
// read has one encoding.
func FuzzJudge(f *testing.F) {
	c := config(5, 3)
	signer := sim.Ideal(0)
	f.Add(uint8(1), uint8(2), uint8(1), pack([]byte("1"), []signature{{0, "12345678"}, {2, "12345678"}}))
	f.Add(uint8(4), uint8(0), uint8(0), pack(nil, []signature{{0, ""}}))
	f.Add(uint8(4), uint8(0), uint8(0), pack([]byte("v"), []signature{{0xFFFF, strings.Repeat("s", 128)}}))
	f.Add(uint8(4), uint8(0), uint8(0), []byte("\x01v\x01\x80\x00\x00"))
	f.Fuzz(func(t *testing.T, self, from, round uint8, body []byte) {
		value, chain, why := sm.Judge(c, parley.ID(self), parley.ID(from), int(round), body, signer.Verify)
		if why == "malformed" || why == "oversized-value" {
			return
		}
		again, links := unpack(body)
		if !bytes.Equal(pack(value, links), body) || !bytes.Equal(again, value) || len(links) != len(chain) {
			t.Fatalf("%x has another encoding", body)
		}
		if why == "" && (len(chain) != int(round)+1 || chain[0] != 0 || chain[round] != parley.ID(from)) {
			t.Fatalf("%v accepted in round %d from %d", chain, round, from)
		}
	})
}

// FuzzAbsorb: whatever a frame brings in a round, the process can be saved and
// loaded after every message, into a fresh one or a used one, and decides in the
// end.
func FuzzAbsorb(f *testing.F) {
	c := config(4, 2)
	c.Relay = sm.RelayTwo
	log := &trace.Log{Keep: true}
	sim.Run(sim.Options{Protocol: scripted(c, []sm.Forged{
		send(0, 0, 1, "1", 0), send(0, 0, 1, "2", 0), send(0, 0, 3, "3", 0), send(1, 2, 1, "4", 0, 2),
	}), Faulty: the(faulty.Script, 0, 2), Log: log})
	frames := 0
	for _, e := range log.Events {
		if e.Op == trace.Receive && e.At == 1 && len(e.Msg.Body) > 0 {
			f.Add(uint8(e.Peer), uint8(e.Msg.Seq), e.Msg.Body)
			frames++
		}
	}
	same(f, "frames to begin with", frames, 3)
	f.Add(uint8(0), uint8(0), parley.AppendMsg(nil, 0, parley.Msg{Kind: sm.Signed, Body: []byte("junk")}))
	fresh := func() machine { return machine{Rounds: sm.Rounds(c).New(1)} }
	f.Fuzz(func(t *testing.T, from, round uint8, body []byte) {
		from, round = from%4, round%3
		if from == 1 {
			return
		}
		step := &parley.Step{Self: 1, N: 4, Host: host{sim.Ideal(0)}}
		m, used := fresh(), fresh()
		move := func() {
			state := parley.Save(m, 0, nil)
			for _, next := range []machine{used, fresh()} {
				if !parley.Load(next, 0, bytes.Clone(state)) || !bytes.Equal(parley.Save(next, 0, nil), state) {
					t.Fatalf("%v is not loaded as it was saved", parley.Show(m, 0))
				}
				m, used = next, m
			}
		}
		for r := range c.M + 1 {
			m.Emit(step, r)
			for rest := body; r == int(round) && len(rest) > 0; {
				_, q, after, err := parley.ReadMsg(rest)
				if err != nil {
					break
				}
				m.Absorb(step, r, parley.ID(from), q)
				move()
				rest = after
			}
			m.Close(step, r)
			move()
		}
		last := step.Effects[len(step.Effects)-1]
		if last.Op != parley.OpDeliver || last.Msg.Kind != parley.Decide {
			t.Fatalf("no decision: %v", last)
		}
	})
}

// host is a host for a machine that runs alone.
type host struct{ sim.Signer }

func (host) Choose(int) int                   { return 0 }
func (host) Refused(_, _ parley.ID, _ string) {}
