package problem_test

import (
	"bytes"
	"testing"

	"parley"
	"parley/broadcast/problem"
)

// diary is a machine that consists only of incarnations.
type diary struct {
	parley.Base
	me    problem.Incarnation
	heard problem.Lives[int]
}

func (d *diary) Start(s *parley.Step) { d.me.Begin(s) }

func (d *diary) State(v *parley.Vars) {
	d.me.State(v)
	d.heard.State(v, func(n *int) { parley.Num(v, "heard", n) })
}

// Every start begins another incarnation, whether the number comes from the log, from the durable variables
// or from both.
func TestIncarnation(t *testing.T) {
	var log []parley.Record
	var state []byte
	for life := uint64(1); life < 400; life++ {
		d := &diary{}
		if state != nil && !parley.LoadDurable(d, 0, state) {
			t.Fatal("durable state")
		}
		s := &parley.Step{N: 1, Log: log, Restart: life > 1}
		d.Start(s)
		if uint64(d.me) != life {
			t.Fatalf("life %d after %d records: %d", life, len(log), d.me)
		}
		if len(s.Effects) != 1 || s.Effects[0].Op != parley.OpAppend {
			t.Fatal(s.Effects)
		}
		log = append(log, parley.Record{Body: s.Effects[0].Msg.Body})
		if life%7 == 0 { // compacted
			state, log = parley.SaveDurable(d, 0, nil), nil
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a strange record is taken")
		}
	}()
	(&diary{}).Start(&parley.Step{N: 1, Log: []parley.Record{{Body: []byte{0x80}}}})
}

// The latest few incarnations are remembered, in order, whatever order they arrive in.
func TestLives(t *testing.T) {
	d := &diary{}
	numbers := func() (out []uint64) {
		for number := range d.heard.All() {
			out = append(out, number)
		}
		return out
	}
	for _, c := range []struct {
		number uint64
		lives  []byte
		known  bool
	}{
		{0, nil, false}, // no incarnation has number 0
		{5, []byte{5}, true}, {3, []byte{3, 5}, true}, {9, []byte{3, 5, 9}, true}, {5, []byte{3, 5, 9}, true},
		{10, []byte{3, 5, 9, 10}, true}, {11, []byte{3, 5, 9, 10, 11}, true}, {4, []byte{3, 4, 5, 9, 10, 11}, true},
		{20, []byte{3, 4, 5, 9, 10, 11, 20}, true}, {21, []byte{3, 4, 5, 9, 10, 11, 20, 21}, true},
		{2, []byte{3, 4, 5, 9, 10, 11, 20, 21}, false},
		{22, []byte{4, 5, 9, 10, 11, 20, 21, 22}, true}, // the oldest is forgotten
		{3, []byte{4, 5, 9, 10, 11, 20, 21, 22}, false},
		{8, []byte{5, 8, 9, 10, 11, 20, 21, 22}, true},
	} {
		x := d.heard.At(c.number)
		if (x != nil) != c.known {
			t.Errorf("life %d: %v", c.number, x)
		}
		if x != nil {
			if *x != 0 && *x != int(c.number) {
				t.Errorf("life %d has what is of %d", c.number, *x)
			}
			*x = int(c.number)
		}
		var have []byte
		for _, n := range numbers() {
			have = append(have, byte(n))
		}
		if !bytes.Equal(have, c.lives) {
			t.Errorf("after %d: %v", c.number, have)
		}
	}
	for number, x := range d.heard.All() {
		if *x != int(number) {
			t.Errorf("life %d has what is of %d", number, *x)
		}
	}
	if !d.heard.Forgotten(4) || d.heard.Forgotten(5) || d.heard.Known(4) != nil {
		t.Error("what is forgotten")
	}
	saved := parley.Save(d, 0, nil)
	fresh := &diary{}
	if !parley.Load(fresh, 0, saved) || !bytes.Equal(saved, parley.Save(fresh, 0, nil)) {
		t.Error("state")
	}
}

// The reasons why promises do not hold.
func TestPromise(t *testing.T) {
	all := parley.RunConditions{N: 3, M: 2, Faulty: 2}
	with := func(f func(a *parley.RunConditions)) parley.RunConditions {
		a := all
		f(&a)
		return a
	}
	lost := with(func(a *parley.RunConditions) { a.Network.Lost = true })
	cut := with(func(a *parley.RunConditions) { a.Network.Cut = true })
	apart := with(func(a *parley.RunConditions) { a.Network.Disconnected = true })
	back := with(func(a *parley.RunConditions) { a.Processes.Restarted = true })
	disk := with(func(a *parley.RunConditions) { a.Processes.LostDisk = true })
	odd := with(func(a *parley.RunConditions) {
		a.Network.Doubled, a.Network.Reordered, a.Network.Late, a.Processes.Paused = true, true, true, true
	})
	type run struct {
		a     parley.RunConditions
		holds bool
	}
	for property, runs := range map[string][]run{
		problem.Validity:    {{all, true}, {odd, true}, {lost, false}, {cut, false}, {apart, false}, {back, false}, {disk, false}},
		problem.Agreement:   {{all, true}, {odd, true}, {lost, false}, {cut, false}, {apart, false}, {back, false}, {disk, false}},
		problem.Integrity:   {{all, true}, {odd, true}, {lost, true}, {cut, true}, {apart, true}, {back, true}, {disk, true}},
		problem.FIFOOrder:   {{all, true}, {odd, true}, {lost, true}, {cut, true}, {apart, true}, {back, true}, {disk, false}},
		problem.CausalOrder: {{all, true}, {odd, true}, {lost, true}, {cut, true}, {apart, true}, {back, true}, {disk, false}},
		problem.Delivery:    {{all, false}},
	} {
		for _, r := range runs {
			p := problem.Promise(r.a, property, "theory")
			if p.Property != property || p.Holds != r.holds || (p.Because == "theory") != r.holds {
				t.Errorf("%s under %+v: %+v", property, r.a, p)
			}
		}
	}
}
