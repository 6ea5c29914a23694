package ordered

import (
	"slices"
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/internal/committest"
)

// scripted is an order that requests the same effects in every clause.
type scripted struct{ parley.Machine }

func (scripted) do(s *parley.Step) {
	for i, body := range [][]byte{
		parley.AppendMsg(nil, thisLayer, parley.Msg{Kind: Vote, Seq: 9, Body: []byte("v")}),
		parley.AppendMsg(nil, thisLayer, parley.Msg{Kind: msgSays}),
		parley.AppendMsg(nil, thisLayer+1, parley.Msg{Kind: Vote}),
		append(parley.AppendMsg(nil, thisLayer, parley.Msg{Kind: Vote}), 0),
		[]byte("?"),
	} {
		s.Deliver(2, parley.Msg{Kind: parley.Carried, Origin: 2, Seq: 50, Value: uint64(i + 1), Body: body})
	}
	for _, kind := range []parley.Kind{byzantine.Out, byzantine.Repeats, byzantine.Admitted, byzantine.Skipped} {
		s.Indicate(parley.Msg{Kind: kind, Seq: 4, Value: 6})
	}
}

func (x scripted) Start(s *parley.Step)                              { x.do(s) }
func (x scripted) Request(s *parley.Step, _ parley.Msg)              { x.do(s) }
func (x scripted) Receive(s *parley.Step, _ parley.ID, _ parley.Msg) { x.do(s) }
func (x scripted) Timeout(s *parley.Step, _ parley.Timer)            { x.do(s) }

// In every clause, each delivery of an order gets its position, even if a liar has broadcast no message, and each
// indication becomes one of this package.
func TestPositions(t *testing.T) {
	p := withPositions(parley.Protocol{New: func(parley.ID) parley.Machine { return scripted{} }})
	m, s := p.New(0), &parley.Step{N: 4, Host: new(committest.Host)}
	for what, clause := range map[string]func(){
		"start":   func() { m.Start(s) },
		"request": func() { m.Request(s, parley.Msg{}) },
		"receive": func() { m.Receive(s, 1, parley.Msg{}) },
		"timeout": func() { m.Timeout(s, 0) },
	} {
		s.Effects = s.Effects[:0]
		clause()
		var got []parley.Msg
		for _, e := range s.Effects {
			if e.Op == parley.OpIndicate {
				got = append(got, e.Msg)
				continue
			}
			path, q, rest, err := parley.ReadMsg(e.Msg.Body)
			if path != thisLayer || len(rest) > 0 || err != nil || e.To != 2 {
				t.Errorf("%s: %+v", what, e)
			}
			if q.Kind == Void && len(q.Body) == 0 {
				t.Errorf("%s: the bytes of %+v do not count", what, e)
			}
			if q.Kind == Void {
				q.Body = nil
			}
			got = append(got, q)
		}
		want := []parley.Msg{
			{Kind: Vote, Seq: 1, Body: []byte("v")}, {Kind: Void, Seq: 2}, {Kind: Void, Seq: 3}, {Kind: Void, Seq: 4},
			{Kind: Void, Seq: 5}, {Kind: From, Seq: 4}, {Kind: Live}, {Kind: From, Seq: 4},
		}
		if !slices.EqualFunc(got, want, parley.Msg.Equal) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
}
