package stream

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// Evidence is decoded as it was encoded, and has only one encoding.
func FuzzAccount(f *testing.F) {
	whole := Evidence{
		Cut:      true,
		Received: []ReceivedValue{{1, 2, "{attack,node2.node3}"}, {0, 0, ""}},
		Tree:     []Branch{{Path: []parley.ID{0}, In: []byte("attack"), Out: []byte{}}, {Path: []parley.ID{0, 3}, In: nil}},
	}
	f.Add(whole.encode())
	f.Add([]byte{0})
	f.Add(append([]byte{0}, bytes.Repeat([]byte{1, 0, 0, 0}, 20000)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := DecodeEvidence(5, b)
		if !ok {
			return
		}
		if a.Node != 5 {
			t.Errorf("it is node %d's", a.Node)
		}
		if again := a.encode(); !bytes.Equal(again, b) {
			t.Errorf("%x is written %x", b, again)
		}
		if len(a.Received)*receivedCost+len(a.Tree)*branchCost > maxEvidence {
			t.Errorf("%d things heard and %d branches of %d bytes", len(a.Received), len(a.Tree), len(b))
		}
	})
	a, ok := DecodeEvidence(0, whole.encode())
	if !ok || !reflect.DeepEqual(a, whole) {
		f.Errorf("%+v, not %+v", a, whole)
	}
}

// A faulty process's evidence may be large: decoding takes no more memory than a correct node's may.
func TestLargeAccounts(t *testing.T) {
	for what, b := range map[string][]byte{
		"many things heard": append([]byte{0}, make([]byte, 4*(maxEvidence/receivedCost+1))...),
		"many branches":     append([]byte{0}, bytes.Repeat([]byte{1, 0, 0, 0}, maxEvidence/branchCost+1)...),
		"a long text":       Evidence{Received: []ReceivedValue{{0, 0, strings.Repeat("x", maxEvidence)}}}.encode(),
		"nothing":           nil,
		"another byte":      {2},
		"branch, then text": append([]byte{0, 1, 0, 0, 0}, 0, 0, 0, 0),
		"node 13":           {0, 0, 0, 13, 0},
		"a path of seven":   {0, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"cut off":           {0, 1, 1, 0, 3, 'x'},
		"what follows it":   {0, 0, 0, 0, 0, 7},
	} {
		if _, ok := DecodeEvidence(1, b); ok {
			t.Errorf("%s: it is taken", what)
		}
	}
}

// The source can decode the largest evidence that correct nodes send.
func TestAccountsOfCorrectNodes(t *testing.T) {
	for _, c := range []struct {
		t Key
		n int
	}{{Key{EIG, 1, 0}, 4}, {Key{OM, 2, 0}, 7}, {Key{SM, 2, 0}, 4}, {Key{PhaseKing, 1, 0}, 4}, {Key{EIG, 4, 0}, 13}} {
		ask := question(0, 0, 1, strings.Repeat("x", c.t.Limit()))
		ask.Msg.Seq = wantEvidence
		s := sim.Run(sim.Options{
			Protocol: simulated(c.t, c.n), Requests: []sim.Request{ask}, Faulty: map[parley.ID]faulty.Behavior{1: faulty.Random},
		})
		told := 0
		for _, d := range s.History.Deliveries {
			if d.Msg.Kind != parley.Carried || d.At != 0 {
				continue
			}
			a, ok := DecodeEvidence(d.From, d.Msg.Body)
			if !ok || len(a.Received) == 0 && d.From != 0 { // with some algorithms a source receives nothing
				t.Errorf("%s among %d: the account of %d is not read", c.t, c.n, d.From)
			}
			told++
		}
		if told < c.n-1 || s.Stats.Refused["what is no account"] > 0 {
			t.Errorf("%s among %d: %d accounts, %v", c.t, c.n, told, s.Stats.Refused)
		}
	}
}

// A source that requests evidence for more agreements than are recorded at a time gets an answer to
// each: those beyond the limit without evidence.
func TestEvidenceOfMany(t *testing.T) {
	opt := sim.Options{Protocol: simulated(Key{EIG, 1, 0}, 4)}
	const count = maxRecorded + 8
	for k := range uint64(count) {
		ask := question(0, 0, k+1, fmt.Sprint(k))
		ask.Msg.Seq = wantEvidence
		opt.Requests = append(opt.Requests, ask)
	}
	s := sim.Run(opt)
	all, missing := outcomes(s)
	if len(all[0]) != count || len(missing) > 0 || len(s.Stats.Refused) > 0 {
		t.Errorf("%d decided, %v missing, refused %v", len(all[0]), missing, s.Stats.Refused)
	}
}

// Whatever a faulty process sends can be recorded.
func FuzzHeard(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint64(1), uint16(2), uint64(3), []byte("attack"))
	f.Add(uint8(2), uint8(1), uint64(0), uint16(60000), uint64(1<<63), []byte{1, 2, 3, 0xFF, 0xFF})
	var protocols []*lockstep.Protocol
	for _, t := range []Key{{EIG, 2, 0}, {OM, 2, 0}, {SM, 2, 0}, {PhaseKing, 2, 0}} {
		p := t.Rounds(7)
		protocols = append(protocols, &p)
	}
	f.Fuzz(func(t *testing.T, which, kind uint8, seq uint64, origin uint16, value uint64, body []byte) {
		one := evidenceRecorder{name: func(id parley.ID) string { return id.String() }}
		p := protocols[int(which)%len(protocols)]
		for round := range p.Last + 1 {
			m := parley.Msg{Kind: parley.Kind(kind), Seq: seq, Origin: parley.ID(origin), Value: value, Body: body}
			one.hear(p, parley.Env{From: 1, To: 2, Round: round, Path: parley.Path(seq)}, m)
		}
		if a, ok := DecodeEvidence(0, one.evidence.encode()); !ok || len(a.Received) != len(one.evidence.Received) {
			t.Error("what was evidenceRecorder cannot be read")
		}
	})
}
