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
	"parley/lockstep"
	"parley/sim"
)

// TestRename: a chain is renamed signer by signer, and renaming back and forth equals
// renaming by the identity.
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

// TestCheck: what Check and the flags refuse, and their error texts.
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

// FuzzJudge: Judge does not panic, whatever arrives, and a chain that can be
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

// TestSavedWithinARound: the state includes what a process accepted and has yet to relay.
func TestSavedWithinARound(t *testing.T) {
	c := config(4, 2)
	source, one, other := sm.Rounds(c).New(0), sm.Rounds(c).New(1), sm.Rounds(c).New(1)
	step := &parley.Step{Self: 0, N: 4, Host: host{sim.Ideal(0)}}
	source.Request(step, parley.Msg{Kind: parley.Propose, Body: []byte("1")})
	source.Emit(step, 0)
	order := step.Effects[0].Msg
	step.Self, step.Effects = 1, nil
	one.Absorb(step, 0, 0, order)
	if !parley.Load(machine{Rounds: other}, 0, parley.Save(machine{Rounds: one}, 0, nil)) {
		t.Fatal("a process does not load what it saved")
	}
	other.Emit(step, 1)
	same(t, "messages", len(step.Effects), 2)
	same(t, "V", fmt.Sprintf("%s", sm.Values(other)), "[1]")
}

// machine makes it possible to save the state of one process without the rounds around it.
type machine struct {
	parley.Base
	lockstep.Rounds
}

func (m machine) Request(s *parley.Step, q parley.Msg) { m.Rounds.Request(s, q) }
func (m machine) State(v *parley.Vars)                 { m.Rounds.State(v) }

type host struct{ sim.Signer }

func (host) Choose(int) int                   { return 0 }
func (host) Refused(_, _ parley.ID, _ string) {}
