package sm_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// config is an instance with source 0 and default 0.
func config(n, m int, alphabet ...string) sm.Config {
	c := sm.Config{Instance: problem.Instance{N: n, M: m, Default: []byte("0")}}
	for _, v := range alphabet {
		c.Alphabet = append(c.Alphabet, []byte(v))
	}
	return c
}

func propose(c sm.Config, v string) []sim.Request {
	return []sim.Request{{At: c.Source, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}}}
}

func ids(list ...parley.ID) []parley.ID { return list }

func the(b faulty.Behavior, who ...parley.ID) map[parley.ID]faulty.Behavior {
	out := make(map[parley.ID]faulty.Behavior)
	for _, id := range who {
		out[id] = b
	}
	return out
}

func scripted(c sm.Config, sends []sm.Forged) parley.Protocol {
	p := sm.Rounds(c)
	p.Lies = sm.Script(c, sends)
	return lockstep.Of(p, lockstep.Simulated)
}

// send returns one forged message without a corrupted signature.
func send(round int, from, to parley.ID, value string, chain ...parley.ID) sm.Forged {
	return sm.Forged{Round: round, From: from, To: to, Value: []byte(value), Chain: chain, BadSig: -1}
}

// play runs a script with a correct or faulty source whose value is "1".
func play(c sm.Config, liars []parley.ID, sends ...sm.Forged) *sim.Sim {
	return sim.Run(sim.Options{
		Protocol: scripted(c, sends), Faulty: the(faulty.Script, liars...),
		Requests: propose(c, "1"), Measure: true,
	})
}

// set returns V of a process, from its shown state.
func set(s *sim.Sim, id parley.ID) []string {
	v := []string{}
	for _, x := range parley.Show(s.Machine(id), s.Now()) {
		if strings.HasPrefix(x.Name, "rounds.V[") {
			v = append(v, x.Value)
		}
	}
	return v
}

func decisions(c sm.Config, s *sim.Sim) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for id, v := range problem.Decisions(&s.History) {
		if id != c.Source {
			out[id] = string(v)
		}
	}
	return out
}

func agree(d map[parley.ID]string) bool {
	return len(slices.Compact(slices.Sorted(maps.Values(d)))) <= 1
}

func violated(p parley.Protocol, s *sim.Sim) error {
	a := parley.RunConditions{N: p.N, M: p.M, Faulty: s.History.Faulty.Len()}
	for _, v := range parley.Judge(p, a, &s.History) {
		if v.Violated() {
			return fmt.Errorf("%s: %w", v.Property.Name, v.Broken)
		}
	}
	return nil
}

func broken(p parley.Protocol, s *sim.Sim, property string) bool {
	for _, v := range parley.Judge(p, parley.RunConditions{N: p.N, M: p.M}, &s.History) {
		if v.Property.Name == property {
			return v.Broken != nil
		}
	}
	panic("no such property")
}

// heard iterates over the chains that reached a correct process.
func heard(s *sim.Sim, log *trace.Log, f func(at, from parley.ID, round int, m parley.Msg)) {
	for _, e := range log.Events {
		if e.Op != trace.Receive || !s.Correct().Has(e.At) {
			continue
		}
		for rest := e.Msg.Body; len(rest) > 0; {
			_, m, after, err := parley.ReadMsg(rest)
			if err != nil {
				break
			}
			f(e.At, e.Peer, int(e.Msg.Seq), m)
			rest = after
		}
	}
}

func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

type signature struct {
	by  parley.ID
	sig string
}

func pack(value []byte, links []signature) []byte {
	b := binary.AppendUvarint(nil, uint64(len(value)))
	b = binary.AppendUvarint(append(b, value...), uint64(len(links)))
	for _, l := range links {
		b = binary.AppendUvarint(b, uint64(l.by))
		b = binary.AppendUvarint(b, uint64(len(l.sig)))
		b = append(b, l.sig...)
	}
	return b
}

// unpack reads a body that is known to be well-formed.
func unpack(b []byte) (value []byte, links []signature) {
	number := func() int {
		x, n := binary.Uvarint(b)
		b = b[n:]
		return int(x)
	}
	part := func(n int) []byte {
		p := b[:n]
		b = b[n:]
		return p
	}
	value = part(number())
	for range number() {
		by := parley.ID(number())
		links = append(links, signature{by, string(part(number()))})
	}
	return value, links
}
