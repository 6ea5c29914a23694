package rsm_test

import (
	"testing"

	"parley"
	"parley/replica/rsm"
)

// bench drives one machine without a host.
type bench struct {
	parley.Machine
	parley.Host
	step    parley.Step
	effects []parley.Effect // of the last clause, except for the following
	refused map[string]int
	serves  []parley.Msg // the Serving indications
	durable int          // how many of them came before the log was replaced; -1: it was not replaced
}

// newBench starts a replica.
func newBench(t *testing.T, c rsm.Config, self parley.ID) *bench {
	t.Helper()
	b := &bench{Machine: rsm.New(c).New(self), refused: make(map[string]int), durable: -1}
	b.step = parley.Step{Self: self, N: c.N, Host: b}
	b.do(func() { b.Start(&b.step) })
	for _, e := range b.effects {
		if e.Op != parley.OpAppend {
			t.Fatalf("it begins with %+v", e)
		}
	}
	return b
}

func (b *bench) Refused(_, _ parley.ID, why string) { b.refused[why]++ }

func (b *bench) do(clause func()) {
	b.step.Effects = nil
	clause()
	b.effects = nil
	told := len(b.serves)
	for _, e := range b.step.Effects {
		switch {
		case e.Op == parley.OpIndicate && e.Msg.Kind == rsm.Serving:
			b.serves = append(b.serves, e.Msg)
		case e.Op == parley.OpCompact:
			b.durable = told
		default:
			b.effects = append(b.effects, e)
		}
	}
}

func (b *bench) request(m parley.Msg) { b.do(func() { b.Request(&b.step, m) }) }

func (b *bench) receive(from parley.ID, m parley.Msg) {
	b.step.Carried = m.Kind < parley.Local
	b.do(func() { b.Receive(&b.step, from, m) })
	b.step.Carried = false
}

// hear delivers the same broadcast of several processes.
func (b *bench) hear(m parley.Msg, from ...parley.ID) {
	for _, id := range from {
		b.receive(id, m)
	}
}
