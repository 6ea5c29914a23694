package phaseking_test

import (
	"bytes"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
)

// FuzzAbsorb gives one process any messages from anyone, round after round, and
// saves and loads it between the rounds, into a fresh process and a used one.
// Each message is a sender, whether it begins a round, and its five fields.
func FuzzAbsorb(f *testing.F) {
	one := parley.Msg{Kind: phaseking.Value, Body: []byte("1")}
	f.Add(uint8(0), parley.AppendMsg([]byte{1}, 0, one))
	f.Add(uint8(1), append(parley.AppendMsg([]byte{1}, 0, one), parley.AppendMsg([]byte{2 | 0x80}, 0, one)...))
	f.Fuzz(func(t *testing.T, form uint8, input []byte) {
		c := config(phaseking.Form(form%2), 5, 1)
		p := phaseking.Rounds(c)
		h := newHall(p)
		me, used := h.procs[4], p.New(4)
		h.step.Self = 4
		r := 0
		closes := func() {
			me.Close(&h.step, r)
			saved := parley.Save(process{Rounds: me}, 0, nil)
			fresh := p.New(4)
			for _, other := range []process{{Rounds: fresh}, {Rounds: used}} {
				if !parley.Load(other, 0, bytes.Clone(saved)) {
					t.Fatalf("round %d: saved %x does not load", r, saved)
				}
				if again := parley.Save(other, 0, nil); !bytes.Equal(again, saved) {
					t.Fatalf("round %d: saved %x, loaded and saved again %x", r, saved, again)
				}
			}
			if len(h.held(4)) > 2*problem.MaxValue+2 {
				t.Fatalf("round %d: holds %d bytes as text", r, len(h.held(4)))
			}
			me = fresh
			h.procs[4] = me
			r++
		}
		me.Emit(&h.step, r)
		for len(input) > 0 && r <= p.Last {
			from := parley.ID(input[0] & 3)
			if input[0]&0x80 != 0 {
				closes()
				if r > p.Last {
					break
				}
				me.Emit(&h.step, r)
			}
			_, m, rest, err := parley.ReadMsg(input[1:])
			if err != nil {
				break
			}
			input = rest
			me.Absorb(&h.step, r, from, m)
		}
		for r <= p.Last {
			closes()
		}
		decided := 0
		for _, e := range h.step.Effects {
			if e.Op == parley.OpDeliver {
				decided++
			}
		}
		if decided != 1 {
			t.Fatalf("%d decisions", decided)
		}
	})
}

// FuzzLoad gives a process any bytes as its state: they fit or they do not, and
// if they fit they are what it would save.
func FuzzLoad(f *testing.F) {
	f.Add([]byte{0, 1, '0', 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := process{Rounds: phaseking.Rounds(config(phaseking.ThreeRound, 4, 1)).New(1)}
		if parley.Load(p, 0, b) && !bytes.Equal(parley.Save(p, 0, nil), b) {
			t.Fatalf("loaded %x, saved %x", b, parley.Save(p, 0, nil))
		}
	})
}
