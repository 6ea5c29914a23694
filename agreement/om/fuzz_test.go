package om_test

import (
	"bytes"
	"slices"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/lockstep"
)

// table is a host without links: what one process sends is handed to the others
// by hand, round by round. It keeps what was refused.
type table struct {
	c       om.Config
	p       lockstep.Protocol
	seats   []lockstep.Rounds
	step    parley.Step
	refused []string
	answers []int // to Choose, in order
	asked   []int
	decided map[parley.ID]string
}

func newTable(c om.Config) *table {
	tb := &table{c: c, p: om.Rounds(c), decided: make(map[parley.ID]string)}
	for id := range parley.ID(c.N) {
		tb.seats = append(tb.seats, tb.p.New(id))
	}
	tb.step = parley.Step{N: c.N, Host: tb}
	return tb
}

func (tb *table) Choose(n int) int {
	tb.asked = append(tb.asked, n)
	a := tb.answers[0]
	tb.answers = tb.answers[1:]
	return a
}
func (tb *table) Sign(parley.ID, []byte) []byte         { panic("oral messages are not signed") }
func (tb *table) Verify(parley.ID, []byte, []byte) bool { panic("oral messages are not signed") }
func (tb *table) Refused(_, _ parley.ID, why string)    { tb.refused = append(tb.refused, why) }

// at readies the step for a clause of one process.
func (tb *table) at(id parley.ID) (lockstep.Rounds, *parley.Step) {
	tb.step.Self, tb.step.Effects = id, tb.step.Effects[:0]
	return tb.seats[id], &tb.step
}

func (tb *table) absorb(id parley.ID, r int, from parley.ID, m parley.Msg) {
	p, s := tb.at(id)
	p.Absorb(s, r, from, m)
}

func (tb *table) propose(value string) {
	p, s := tb.at(tb.c.Source)
	p.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte(value)})
}

// sends returns what a process sends in a round.
func (tb *table) sends(id parley.ID, r int) []parley.Effect {
	p, s := tb.at(id)
	p.Emit(s, r)
	return slices.Clone(s.Effects)
}

// round plays round r; between is called with every process before it closes.
func (tb *table) round(r int, between func(id parley.ID)) {
	for from := range parley.ID(tb.c.N) {
		for _, e := range tb.sends(from, r) {
			for to := range parley.ID(tb.c.N) {
				if to != from && (e.To == to || e.To == parley.All) {
					tb.absorb(to, r, from, e.Msg)
				}
			}
		}
	}
	for id := range parley.ID(tb.c.N) {
		between(id)
		p, s := tb.at(id)
		p.Close(s, r)
		for _, e := range s.Effects {
			if _, again := tb.decided[id]; e.Op != parley.OpDeliver || e.Msg.Kind != parley.Decide || again {
				panic("Close does something other than decide once")
			}
			tb.decided[id] = string(e.Msg.Body)
		}
	}
}

// stateful lets the functions that save and load machines see a process.
type stateful struct {
	parley.Base
	r lockstep.Rounds
}

func (m stateful) State(v *parley.Vars) { m.r.State(v) }

func save(r lockstep.Rounds) []byte { return parley.Save(stateful{r: r}, 0, nil) }

func message(path []byte, value string) parley.Msg {
	return parley.Msg{Kind: om.Value, Seq: uint64(len(path)), Body: append(slices.Clone(path), value...)}
}

// FuzzAbsorb hands arbitrary messages to a lieutenant, round by round: 4 bytes
// say round, sender, Seq and length of the body, which follows.
func FuzzAbsorb(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, '1', 1, 2, 1, 2, 2, '1', 2, 3, 2, 3, 2, 3, '0'})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, '1', 1, 2, 1, 1, 2, 2, 2, 2, 1, 2, 2, 9, 2, 4})
	f.Add([]byte{2, 4, 2, 3, 2, 4, 'x', 2, 4, 2, 3, 2, 4, 'y', 2, 4, 2, 3, 4, 4, 'x', 2, 4, 255, 0, 3, 3, 3, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		tb := newTable(om.Config{N: 5, M: 2, Default: []byte("0")})
		var rounds [3][][]byte
		for len(script) >= 4 {
			end := min(4+int(script[3]), len(script))
			rounds[script[0]%3] = append(rounds[script[0]%3], script[:end])
			script = script[end:]
		}
		p, s := tb.at(1)
		for r, messages := range rounds {
			p.Emit(s, r)
			for _, b := range messages {
				p.Absorb(s, r, parley.ID(b[1]), parley.Msg{Kind: om.Value, Seq: uint64(b[2]), Body: b[4:]})
				was, fresh := save(p), tb.p.New(1)
				if !parley.Load(stateful{r: fresh}, 0, was) || !bytes.Equal(save(fresh), was) {
					t.Fatalf("round %d: state %x does not come back", r, was)
				}
			}
			p.Close(s, r)
		}
		decided := 0
		for _, e := range s.Effects {
			if e.Op == parley.OpDeliver {
				decided++
			}
		}
		if decided != 1 {
			t.Errorf("%d decisions", decided)
		}
	})
}
