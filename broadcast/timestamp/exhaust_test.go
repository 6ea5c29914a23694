package timestamp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
)

// point is a state of three members and the links between them, without the protocol
// that agrees on views: a member reports whenever it likes, the next view is any majority
// of those that have, and each hears of it at a time of its own. Who is left out goes on
// in its view until then. Who stops for ever needs no move, nor does what a link loses
// at its end: that is as if it came too late.
type point struct {
	layers  [3][]byte // states
	number  [3]uint64 // of views; 0: out
	reports [3][]byte // not nil: frozen
	links   [3][3][]sent
	done    [3][]string // deliveries
	decided []decided
	begun   [4]int // by view: with how many deliveries it was begun, and 1
	asks    []ask
	losses  int
}

type sent struct {
	view uint64
	m    parley.Msg
}

type decided struct {
	next parley.Set
	cut  []byte
}

type ask struct {
	at   parley.ID
	text string
}

// explorer goes through all that can happen from a point on.
type explorer struct {
	t     *testing.T
	layer [3]group.Layer // to work with
	views int            // changes
	seen  map[string]bool
	split int // states in which somebody has been left out and has delivered something
	most  int // deliveries
}

func (x *explorer) Refused(at, from parley.ID, why string) {
	x.t.Fatalf("%d refuses %d: %s", at, from, why)
}
func (x *explorer) Choose(int) int                        { panic("a choice") }
func (x *explorer) Sign(parley.ID, []byte) []byte         { panic("a signature") }
func (x *explorer) Verify(parley.ID, []byte, []byte) bool { panic("a signature") }

// do runs a clause of a member.
func (x *explorer) do(p *point, at parley.ID, clause func(s *parley.Step, l group.Layer)) {
	l := state{l: x.layer[at]}
	if p.layers[at] != nil && !parley.Load(l, 0, p.layers[at]) {
		x.t.Fatal("a layer is not loaded")
	}
	s := &parley.Step{Self: at, N: 3, Host: x}
	clause(s, l.l)
	p.layers[at] = parley.Save(l, 0, nil)
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpSend:
			link := &p.links[at][e.To]
			*link = append(slices.Clip(*link), sent{p.number[at], e.Msg})
		case parley.OpDeliver:
			p.done[at] = append(slices.Clip(p.done[at]), string(e.Msg.Body))
		}
	}
}

func (x *explorer) install(p *point, at parley.ID) {
	d := p.decided[p.number[at]-1]
	p.reports[at] = nil
	if !d.next.Has(at) {
		p.number[at] = 0
		return
	}
	p.number[at]++
	x.do(p, at, func(s *parley.Step, l group.Layer) {
		l.Install(s, d.cut, group.View{Number: p.number[at], Members: d.next})
	})
	switch begun := &p.begun[p.number[at]]; {
	case *begun == 0:
		*begun = len(p.done[at]) + 1
	case *begun != len(p.done[at])+1:
		x.t.Fatalf("%d begins view %d after %v, and another after %d", at, p.number[at], p.done[at], *begun-1)
	}
}

// receive lets the oldest message of a link arrive; who sent it in the next view has
// told of that view before.
func (x *explorer) receive(p *point, from, to parley.ID) {
	m := p.links[from][to][0]
	p.links[from][to] = p.links[from][to][1:]
	for p.number[to] > 0 && p.number[to] < m.view {
		x.install(p, to)
	}
	if p.reports[to] != nil || m.view != p.number[to] {
		return
	}
	gap := false
	x.do(p, to, func(s *parley.Step, l group.Layer) { gap = l.Receive(s, from, m.m) })
	if gap {
		x.freeze(p, to)
	}
}

func (x *explorer) freeze(p *point, at parley.ID) {
	x.do(p, at, func(_ *parley.Step, l group.Layer) { p.reports[at] = bytes.Clone(l.Report()) })
}

// moves are all that can happen next.
func (x *explorer) moves(p *point) (out []func(*point)) {
	for at := range parley.ID(3) {
		if p.number[at] == 0 {
			continue
		}
		for to := range parley.ID(3) {
			if link := p.links[at][to]; len(link) > 0 && p.number[to] > 0 {
				out = append(out, func(p *point) { x.receive(p, at, to) })
				if p.losses > 0 && len(link) > 1 {
					out = append(out, func(p *point) { p.losses--; p.links[at][to] = p.links[at][to][1:] })
				}
			}
		}
		if int(p.number[at]) <= len(p.decided) {
			out = append(out, func(p *point) { x.install(p, at) })
		}
		if p.reports[at] == nil && len(p.decided) < x.views {
			out = append(out, func(p *point) { x.freeze(p, at) })
		}
	}
	for i, a := range p.asks {
		if p.number[a.at] > 0 && p.reports[a.at] == nil {
			out = append(out, func(p *point) {
				p.asks = slices.Delete(slices.Clone(p.asks), i, i+1)
				x.do(p, a.at, func(s *parley.Step, l group.Layer) { l.Request(s, problem.Request([]byte(a.text))) })
			})
		}
	}
	return append(out, x.decisions(p)...)
}

// decisions are the views that may come next.
func (x *explorer) decisions(p *point) (out []func(*point)) {
	if len(p.decided) == x.views {
		return nil
	}
	now := parley.Everyone(3)
	if len(p.decided) > 0 {
		now = p.decided[len(p.decided)-1].next
	}
	for next := range 8 {
		d, reports := decided{}, [][]byte(nil)
		for id := range parley.ID(3) {
			if next>>id&1 == 1 && now.Has(id) && p.reports[id] != nil && int(p.number[id]) == len(p.decided)+1 {
				d.next.Add(id)
				reports = append(reports, p.reports[id])
			}
		}
		if d.next.Len() < (group.View{Members: now}).Majority() || d.next != subset(next) {
			continue
		}
		d.cut = x.layer[0].Cut(reports)
		out = append(out, func(p *point) { p.decided = append(slices.Clip(p.decided), d) })
	}
	return out
}

func subset(bits int) (s parley.Set) {
	for id := range parley.ID(3) {
		if bits>>id&1 == 1 {
			s.Add(id)
		}
	}
	return s
}

// explore demands at each point that what anyone has delivered, who is out and who will
// be too, is a beginning of one sequence, and the same at all that begin a view.
func (x *explorer) explore(p *point) {
	k := p.key()
	if x.seen[k] {
		return
	}
	x.seen[k] = true
	long := p.done[0]
	for _, done := range p.done[1:] {
		if len(done) > len(long) {
			long = done
		}
	}
	x.most = max(x.most, len(long))
	for at, done := range p.done {
		if !slices.Equal(done, long[:len(done)]) {
			x.t.Fatalf("%d delivers %v, and somebody %v", at, done, long)
		}
		if p.number[at] == 0 && len(done) > 0 {
			x.split++
		}
	}
	for _, move := range x.moves(p) {
		next := *p
		move(&next)
		next.prune()
		x.explore(&next)
	}
}

// prune takes off the links what would be ignored when it came.
func (p *point) prune() {
	for from := range 3 {
		for to := range 3 {
			link := p.links[from][to]
			for len(link) > 0 && (p.number[to] == 0 || link[0].view < p.number[to] ||
				link[0].view == p.number[to] && p.reports[to] != nil) {
				link = link[1:]
			}
			p.links[from][to] = link
		}
	}
}

// key stands for all that can make a difference from now on.
func (p *point) key() string {
	b := []byte{byte(p.losses), byte(len(p.decided)), byte(len(p.asks))}
	for _, a := range p.asks {
		b = append(b, a.text...)
	}
	for _, d := range p.decided {
		b = append(problem.AppendSet(b, d.next), d.cut...)
	}
	for id := range 3 {
		b = append(b, 0xff, byte(p.number[id]))
		b = append(b, p.reports[id]...)
		b = append(b, 0xff)
		b = append(b, p.layers[id]...)
		for _, done := range p.done[id] {
			b = append(b, done...)
		}
		for _, link := range p.links[id] {
			b = binary.AppendUvarint(b, uint64(len(link)))
			for _, m := range link {
				b = parley.AppendMsg(append(b, byte(m.view)), 0, m.m)
			}
		}
	}
	return string(b)
}

// All runs of three members, with views that change at any time, by false suspicion or
// not: see point. (With two senders and two changes: 68,538 states. With a and b of 0 and
// b of 1, a window of 1 and one change: 293,142. They hold as well.)
func TestExhaustive(t *testing.T) {
	a0, b0, b1 := ask{0, "a"}, ask{0, "b"}, ask{1, "b"}
	for _, c := range []struct {
		asks                  []ask
		window, views, losses int
		states, most          int
	}{
		{[]ask{a0}, 2, 2, 0, 3159, 1},
		{[]ask{a0, b1}, 2, 1, 0, 23314, 2},
		{[]ask{a0, b0}, 2, 1, 1, 26734, 2},
		{[]ask{a0, b0}, 1, 2, 0, 37140, 2}, // b waits for a
	} {
		t.Run(fmt.Sprint(c.asks, c.window, c.views, c.losses), func(t *testing.T) {
			x := &explorer{t: t, views: c.views, seen: make(map[string]bool)}
			p := &point{asks: c.asks, losses: c.losses}
			first := group.View{Number: 1, Members: parley.Everyone(3)}
			for id := range parley.ID(3) {
				p.number[id] = 1
				x.layer[id] = timestamp.Service(timestamp.Config{Config: group.Config{N: 3}, Window: c.window}).New(id, 3)
				x.do(p, id, func(s *parley.Step, l group.Layer) { l.Install(s, nil, first) })
			}
			x.explore(p)
			if len(x.seen) != c.states || x.most != c.most || c.views > 0 && x.split == 0 {
				t.Errorf("%d states, up to %d deliveries, %d with somebody left out", len(x.seen), x.most, x.split)
			}
		})
	}
}
