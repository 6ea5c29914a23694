package sim_test

import (
	"testing"

	"parley"
	"parley/sim"
)

// The messages of echoing. Origin is the process whose broadcast it is about.
const (
	bSend parley.Kind = iota + 1
	bEcho
	bReady
)

// echoing is reliable broadcast by echo and ready messages, every process being
// the source of one broadcast: an all-to-all load without timers. It is as small
// as it can be, and for benchmarks only.
type echoing struct {
	parley.Base
	of []echoed // by source
}

type echoed struct {
	echo, ready          parley.Set
	echoed, readied, has bool
}

func newEchoing(n int) parley.Protocol {
	return parley.Protocol{
		Name: "echoing", N: n, M: (n - 1) / 3,
		New: func(parley.ID) parley.Machine { return &echoing{of: make([]echoed, n)} },
	}
}

func (p *echoing) Start(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: bSend, Origin: s.Self})
	p.got(s, s.Self, parley.Msg{Kind: bSend, Origin: s.Self})
}

func (p *echoing) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if int(m.Origin) < len(p.of) {
		p.got(s, from, m)
	}
}

func (p *echoing) got(s *parley.Step, from parley.ID, m parley.Msg) {
	b := &p.of[m.Origin]
	n, f := s.N, (s.N-1)/3
	switch m.Kind {
	case bSend:
		if from == m.Origin && !b.echoed {
			b.echoed = true
			s.SendAll(parley.Msg{Kind: bEcho, Origin: m.Origin})
			p.got(s, s.Self, parley.Msg{Kind: bEcho, Origin: m.Origin})
		}
	case bEcho:
		if b.echo.Add(from) && 2*b.echo.Len() > n+f {
			p.vouch(s, b, m.Origin)
		}
	case bReady:
		if !b.ready.Add(from) {
			return
		}
		if b.ready.Len() > f {
			p.vouch(s, b, m.Origin)
		}
		if b.ready.Len() > 2*f && !b.has {
			b.has = true
			s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin})
		}
	}
}

func (p *echoing) vouch(s *parley.Step, b *echoed, source parley.ID) {
	if !b.readied {
		b.readied = true
		s.SendAll(parley.Msg{Kind: bReady, Origin: source})
		p.got(s, s.Self, parley.Msg{Kind: bReady, Origin: source})
	}
}

func (p *echoing) State(v *parley.Vars) {
	parley.PerProcess(v, "of", p.of, func(_ parley.ID, b *echoed) {
		v.Set("echo", &b.echo)
		v.Set("ready", &b.ready)
		v.Bool("echoed", &b.echoed)
		v.Bool("readied", &b.readied)
		v.Bool("has", &b.has)
	})
}

// reused makes each machine once and empties it for the next run.
func reused(p parley.Protocol) parley.Protocol {
	made := make([]*echoing, p.N)
	inner := p.New
	p.New = func(self parley.ID) parley.Machine {
		if made[self] == nil {
			made[self] = inner(self).(*echoing)
		}
		clear(made[self].of)
		return made[self]
	}
	return p
}

func benchmark(b *testing.B, delay sim.Delay) {
	const n = 31
	opt := sim.Options{Protocol: reused(newEchoing(n)), Delay: delay}
	s := sim.New(opt)
	b.ReportAllocs()
	var deliveries uint64
	for b.Loop() {
		s.Reset(opt)
		s.Run()
		opt.Seed++
		deliveries += s.Stats.Deliveries
		if s.Stats.Deliveries != n*(n-1)*(1+2*n) || len(s.History.Deliveries) != n*n {
			b.Fatal(s.Stats.Deliveries, len(s.History.Deliveries))
		}
	}
	b.ReportMetric(float64(deliveries)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkDeliveries is 58,590 deliveries a run.
func BenchmarkDeliveries(b *testing.B) {
	b.Run("unit", func(b *testing.B) { benchmark(b, sim.Delay{Least: 1, Most: 1}) })
	b.Run("random", func(b *testing.B) { benchmark(b, sim.Delay{Least: 1, Most: 64}) })
}
