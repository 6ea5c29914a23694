package service_test

import (
	"testing"

	"parley"
	"parley/replica/service"
)

// bench is one machine without a host.
type bench struct {
	parley.Machine
	step    parley.Step
	effects []parley.Effect // of the last clause, but for what follows
	refused map[string]int
	serves  []parley.Msg // what it has told of that
	durable int          // how many of them it had told when the state replaced the log; -1: it did not
}

func newBench(p parley.Protocol, self parley.ID) *bench {
	b := &bench{Machine: p.New(self), refused: make(map[string]int), durable: -1}
	b.step = parley.Step{Self: self, N: p.N, Host: b}
	return b
}

func (*bench) Choose(int) int                        { return 0 }
func (*bench) Sign(parley.ID, []byte) []byte         { return nil }
func (*bench) Verify(parley.ID, []byte, []byte) bool { return false }
func (b *bench) Refused(_, _ parley.ID, why string)  { b.refused[why]++ }

func (b *bench) do(clause func()) {
	b.step.Effects = nil
	clause()
	b.effects = nil
	told := len(b.serves)
	for _, e := range b.step.Effects {
		switch {
		case e.Op == parley.OpIndicate && e.Msg.Kind == service.Serving:
			b.serves = append(b.serves, e.Msg)
		case e.Op == parley.OpCompact:
			b.durable = told
		default:
			b.effects = append(b.effects, e)
		}
	}
}

func (b *bench) start(t *testing.T) {
	t.Helper()
	b.do(func() { b.Start(&b.step) })
	for _, e := range b.effects {
		if e.Op != parley.OpAppend {
			t.Fatalf("it begins with %+v", e)
		}
	}
}

func (b *bench) request(m parley.Msg) { b.do(func() { b.Request(&b.step, m) }) }

func (b *bench) receive(from parley.ID, m parley.Msg) {
	b.step.Carried = m.Kind < parley.Local
	b.do(func() { b.Receive(&b.step, from, m) })
	b.step.Carried = false
}
