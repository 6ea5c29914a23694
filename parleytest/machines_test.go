package parleytest_test

import (
	"errors"
	"fmt"

	"parley"
	"parley/lockstep"
	"parley/parleytest"
)

// deaf refuses every message.
type deaf struct{ parley.Machine }

func (d deaf) Receive(s *parley.Step, from parley.ID, _ parley.Msg) { s.Refuse(from, "not listening") }

// revenant announces its restart, and the others decide again when they receive that.
type revenant struct{ parley.Machine }

func (r revenant) Start(s *parley.Step) {
	r.Machine.Start(s)
	if s.Restart {
		s.SendAll(parley.Msg{Kind: 100})
	}
}

func (r revenant) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != 100 {
		r.Machine.Receive(s, from, m)
		return
	}
	for range 2 {
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: []byte("0")})
	}
}

// beats is a protocol of heartbeats that never ends, one in each given number of ticks.
func beats(every parley.Tick) parley.Protocol {
	return parley.Protocol{
		Name: "beats", N: 3, M: 1, Faults: parley.CrashFaults,
		New: func(parley.ID) parley.Machine { return &beating{every: every} },
		Properties: []parley.Property{{Name: "silence", Says: "nothing is delivered", Check: func(h *parley.History) error {
			if len(h.Deliveries) > 0 {
				return errors.New("something is delivered")
			}
			return nil
		}}},
	}
}

type beating struct {
	parley.Base
	every parley.Tick
}

func (b *beating) Start(s *parley.Step) { b.Timeout(s, 0) }
func (b *beating) Timeout(s *parley.Step, _ parley.Timer) {
	s.SendAll(parley.Msg{Kind: 1})
	s.SetTimer(0, b.every)
}
func (b *beating) State(*parley.Vars) {}

// distances is a protocol in which each process sends each other one their distance around the ring of
// processes. Nothing can rename these messages without knowing sender and receiver. A process forgets what
// it received.
func distances(n int) parley.Protocol {
	p := floodSet(n, 1)
	p.Size, p.Cost = nil, nil
	around := func(from, to parley.ID) uint64 { return uint64((int(to) - int(from) + n) % n) }
	p.New = func(parley.ID) lockstep.Rounds {
		m := &flawed{emit: func(p *flawed, s *parley.Step, r int) {
			for id := range parley.ID(s.N) {
				if id != s.Self {
					s.Send(id, parley.Msg{Kind: 2, Value: around(s.Self, id)})
				}
			}
			p.flooding.Emit(s, r)
		}, absorb: func(p *flawed, s *parley.Step, r int, from parley.ID, m parley.Msg) {
			if m.Kind != 2 {
				p.flooding.Absorb(s, r, from, m)
			} else if m.Value != around(from, s.Self) {
				s.Refuse(from, "too far")
			}
		}}
		m.last = 1
		return m
	}
	p.Rename = func(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
		if m.Kind == 2 {
			m.Value = around(perm[e.From], perm[e.To])
		}
		return m
	}
	return lockstep.Of(p, lockstep.Simulated)
}

var mails = parleytest.Options{Recovers: true}

// mail delivers to all, exactly once, what process 0 is requested to send, despite crashes and restarts:
// process 0 sends it again and again, and the others durably record what they have delivered before they
// deliver it.
func mail(n int, notes, durable bool) parley.Protocol {
	return parley.Protocol{
		Name: "mail", N: n, M: 0, Faults: parley.CrashFaults, Proposers: parley.SetOf(0),
		New: func(parley.ID) parley.Machine { return &post{notes: notes, durable: durable} },
		Properties: []parley.Property{{Name: "integrity", Says: "nothing is delivered twice",
			Check: func(h *parley.History) error {
				var once parley.Set
				for _, d := range h.Deliveries {
					if !once.Add(d.At) {
						return fmt.Errorf("%d delivers it twice", d.At)
					}
				}
				return nil
			}}},
	}
}

type post struct {
	parley.Base
	notes, durable bool
	letter         []byte
	again          int
	done           bool
}

func (p *post) Start(s *parley.Step) { p.done = p.done || len(s.Log) > 0 }

func (p *post) Request(s *parley.Step, m parley.Msg) {
	p.letter = m.Body
	p.Timeout(s, 0)
}

func (p *post) Timeout(s *parley.Step, _ parley.Timer) {
	if p.again++; p.again < 5 {
		s.SendAll(parley.Msg{Kind: 1, Body: p.letter})
		s.SetTimer(0, 1000)
	}
}

func (p *post) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != 1 || p.done {
		return
	}
	p.done = true
	if p.notes {
		s.Append([]byte("done"))
		s.Compact()
	}
	s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: m.Body})
}

func (p *post) State(v *parley.Vars) {
	v.Bytes("letter", &p.letter)
	parley.Num(v, "again", &p.again)
	if p.durable {
		v.Durable(func() { v.Bool("done", &p.done) })
	} else {
		v.Bool("done", &p.done)
	}
}
