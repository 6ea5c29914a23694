package rsm_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/replica/rsm"
	"parley/sim"
	"parley/stack"
)

var slips = flag.Int("slips", 600, "runs of TestSlips")

// slip is a correct process, except that a few of its messages go out with one wrong bit.
type slip struct {
	parley.Machine
	r    *rand.Rand
	in   int // messages until the next wrong one
	told []string
}

func (g *slip) spoil(s *parley.Step, clause func()) {
	mark := s.Mark()
	clause()
	for i := mark; i < s.Mark(); i++ {
		e := &s.Effects[i]
		if e.Op != parley.OpSend || s.Now > 90_000 { // the last requests are sent correctly
			continue
		}
		if g.in--; g.in != 0 {
			continue
		}
		before := *e
		switch body := bytes.Clone(e.Msg.Body); g.r.IntN(5) {
		case 0:
			e.Msg.Seq ^= 1 << g.r.IntN(8)
		case 1:
			e.Msg.Value ^= 1 << g.r.IntN(8)
		case 2:
			e.Epoch ^= 1 << g.r.IntN(4)
		default:
			if len(body) > 0 {
				body[g.r.IntN(len(body))] ^= 1 << g.r.IntN(8)
			}
			e.Msg.Body = body
		}
		g.told = append(g.told, fmt.Sprintf("at %d, to %v: %v %d as %v %d", s.Now, e.To, before.Msg, before.Epoch, e.Msg, e.Epoch))
	}
}

func (g *slip) Start(s *parley.Step) { g.spoil(s, func() { g.Machine.Start(s) }) }

func (g *slip) Request(s *parley.Step, m parley.Msg) { g.spoil(s, func() { g.Machine.Request(s, m) }) }

func (g *slip) Timeout(s *parley.Step, t parley.Timer) {
	g.spoil(s, func() { g.Machine.Timeout(s, t) })
}

func (g *slip) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	g.spoil(s, func() { g.Machine.Receive(s, from, m) })
}

// One message of any kind with a wrong bit prevents no process from answering, although its sender stays a
// member and no view need end: in quiet runs, and in runs with crashes.
func TestSlips(t *testing.T) {
	slipped := 0
	for seed := range uint64(*slips) {
		n, r := 4+int(seed%2), rand.New(rand.NewPCG(seed, 3))
		views := group.Config{N: n, State: true, Return: true, Liars: 1}
		c := rsm.Config{
			N: n, Liars: 1, Every: 1 + seed%3, Retry: 3000, Order: []string{timestamp.OneSequence}, Transfer: true,
			Piece: []int{16, 1 << 16}[seed/3%2], New: func() rsm.Application { return new(echo) },
		}
		if seed/2%2 == 0 {
			views.Durable, views.Compact, c.Durable = true, 6, true
		}
		p := stack.New(timestamp.New(timestamp.Config{Config: views}), rsm.New(c))
		opt := storm(seed, p, false, 100_000)
		wrong := &slip{r: r, in: 1 + r.IntN(800)}
		if seed%5 > 0 {
			opt.Crashes = nil
			opt.Suspicions = []sim.Suspicion{{At: parley.ID(r.IntN(n)), Of: parley.ID(r.IntN(n)), When: 5000}}
			wrong.in = 1 + r.IntN(200)
		}
		whole, who := p.New, parley.ID(r.IntN(n))
		opt.Protocol.New = func(self parley.ID) parley.Machine {
			if self != who {
				return whole(self)
			}
			wrong.Machine = whole(self)
			return wrong
		}
		s := sim.Run(opt)
		slipped += len(wrong.told)
		answered := make(map[parley.ID]int)
		for _, d := range s.History.Deliveries {
			if d.Msg.Kind == rsm.Answer && strings.HasPrefix(string(d.Msg.Body), "last") {
				answered[d.At]++
			}
		}
		for q := range parley.ID(n) {
			if answered[q] < n {
				t.Errorf("seed %d: in the end %v answer; process %d says %q\n%v", seed, answered, who, wrong.told,
					s.Stats.Refused)
				break
			}
		}
	}
	if slipped < *slips*8/10 {
		t.Errorf("in %d runs %d messages were wrong", *slips, slipped)
	}
}
