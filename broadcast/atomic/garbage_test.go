package atomic_test

import (
	"bytes"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// member3 is a member of a view of three, 1, and what it has asked for.
type member3 struct {
	quiet
	layer group.Layer
	s     parley.Step
}

func newMember3() *member3 {
	m := &member3{layer: atomic.Layer(1, 3)}
	m.s = parley.Step{Self: 1, N: 3, Host: m}
	m.layer.Install(&m.s, nil, group.View{Number: 1, Members: parley.Everyone(3)})
	return m
}

// last is the priority 2^56, the greatest that is taken from a peer.
const lastNumber = 1 << 56

// overflown is a member that has taken the greatest priority there is: that of a
// message to itself alone, of 0.
func overflown(t *testing.T) *member3 {
	x := newMember3()
	to := problem.AppendSet(nil, parley.SetOf(1))
	x.layer.Receive(&x.s, 0, parley.Msg{Kind: atomic.Req, Origin: 0, Seq: 1, Body: append([]byte{1}, append(to, 'a')...)})
	x.layer.Receive(&x.s, 0, parley.Msg{Kind: atomic.Final, Origin: 0, Seq: 1, Value: lastNumber, Body: []byte{2, 0}})
	if e := x.s.Effects[len(x.s.Effects)-1]; e.Op != parley.OpDeliver {
		t.Fatalf("%+v", x.s.Effects)
	}
	x.s.Effects = nil
	return x
}

// A member that has come to the last priority proposes none: it holds nothing more in
// this view, and senders wait, so that there will be another one, where priorities begin again.
func TestLastPriority(t *testing.T) {
	x := overflown(t)
	x.layer.Request(&x.s, problem.Request([]byte("b")))
	to := problem.AppendSet(nil, parley.Everyone(3))
	m := parley.Msg{Kind: atomic.Req, Origin: 0, Seq: 2, Body: append([]byte{3}, append(to, 'c')...)}
	x.layer.Receive(&x.s, 0, m)
	for _, e := range x.s.Effects {
		if e.Msg.Kind != atomic.Req {
			t.Errorf("it sends %v", e.Msg)
		}
	}
	if x.layer.(group.Sender).Oldest() == 0 {
		t.Error("it waits for nothing")
	}
	cut := x.layer.Cut([][]byte{x.layer.Report()})
	if !x.layer.(group.Reader).Reads(cut) {
		t.Fatalf("the cut %x cannot be read", cut)
	}
	x.s.Effects = nil
	x.layer.Install(&x.s, cut, group.View{Number: 2, Members: parley.Everyone(3)})
	if len(x.s.Effects) != 1 || string(x.s.Effects[0].Msg.Body) != "b" {
		t.Errorf("%+v", x.s.Effects)
	}
}

// A cut, a record or a report of processes that there are not is none.
func TestProcessesOfNowhere(t *testing.T) {
	five := atomic.DurableLayer(1, 5)
	s := parley.Step{Self: 1, N: 5, Host: quiet{}}
	five.Install(&s, nil, group.View{Number: 1, Members: parley.Everyone(5)})
	for _, c := range []struct {
		from parley.ID
		to   parley.Set
	}{{0, parley.SetOf(1, 4)}, {4, parley.SetOf(1)}} {
		s.Effects = nil
		to := problem.AppendSet(nil, c.to)
		m := parley.Msg{Kind: atomic.Req, Origin: c.from, Seq: 1, Body: append([]byte{1}, append(to, 'a')...)}
		five.Receive(&s, c.from, m)
		var rec []byte
		for _, e := range s.Effects {
			if e.Op == parley.OpAppend {
				rec = bytes.Clone(e.Msg.Body)
			}
		}
		if rec == nil {
			t.Fatalf("%+v", s.Effects)
		}
		three := atomic.DurableLayer(1, 3)
		if three.Replay(rec) || three.(group.Reader).Reads(rec) {
			t.Errorf("%x is taken", rec)
		}
		if report := append([]byte{0, 0}, rec...); !bytes.Equal(three.Cut([][]byte{report}), []byte{0}) {
			t.Errorf("the report %x is taken", report)
		}
	}
}
