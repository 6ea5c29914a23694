package forwarding_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
	"parley/sim"
)

// One message of each kind, as it travels and as people read it.
func TestMessages(t *testing.T) {
	c := forwarding.Config{N: 4, Tree: [][]parley.ID{0: {1, 2}, 1: {3}}}
	data := sent(c, 0, "hello")[0]
	if want := []byte("\x00\x00\x00\x00\x01hello"); !bytes.Equal(data.Body, want) {
		t.Errorf("data carries %q, not %q: nothing complete, the parents of 0 to 3, the payload", data.Body, want)
	}
	p := forwarding.New(c)
	for _, x := range []struct {
		m    parley.Msg
		want string
	}{
		{data, "0#1 hello"},
		{parley.Msg{Kind: forwarding.Data, Origin: 1, Seq: 7, Value: 3, Body: []byte("\x06\x01\x01\x00\x00x")}, "1.3#7 x"},
		{parley.Msg{Kind: forwarding.Ack, Origin: 2, Seq: 7, Value: 1}, "2#7 has reached all below me"},
		{parley.Msg{Kind: forwarding.Done, Origin: 2, Seq: 7, Value: 2}, "2.2#7 is complete, and all before it"},
		{parley.Msg{Kind: forwarding.Hello, Origin: 2, Value: 2}, "2.2 is back"},
	} {
		_, m, err := parley.Decode(parley.Encode(nil, parley.Env{}, x.m))
		if err != nil {
			t.Fatal(err)
		}
		if rows := slices.Collect(p.Explain(parley.Env{}, m, parley.ID.String)); len(rows) != 1 || rows[0] != x.want {
			t.Errorf("%v: %q, not %q", m, rows, x.want)
		}
		if got := p.Size(parley.Env{}, m); got.Messages != 1 {
			t.Errorf("%v counts as %+v", m, got)
		}
	}
}

// Messages that no peer would send are refused and change nothing.
func TestRefuses(t *testing.T) {
	c := forwarding.Config{N: 3}
	good := parley.Msg{Kind: forwarding.Data, Origin: 0, Seq: 1, Value: 1, Body: []byte("\x00\x00\x00\x00m")}
	change := func(f func(m *parley.Msg)) parley.Msg {
		m := good
		f(&m)
		return m
	}
	body := func(b string) parley.Msg { return change(func(m *parley.Msg) { m.Body = []byte(b) }) }
	for name, m := range map[string]parley.Msg{
		"no body":                         body(""),
		"too few parents":                 body("\x00\x00\x00"),
		"number not in its shortest form": body("\x80\x00\x00\x00\x00m"),
		"root has a parent":               body("\x00\x01\x00\x00m"),
		"a circle":                        body("\x00\x00\x02\x01m"),
		"its own parent":                  body("\x00\x00\x01\x00m"),
		"parent out of range":             body("\x00\x00\x00\x03m"),
		"my own broadcast":                change(func(m *parley.Msg) { m.Origin, m.Body = 1, []byte("\x00\x01\x01\x01m") }),
		"sender out of range":             change(func(m *parley.Msg) { m.Origin = 3 }),
		"no number":                       change(func(m *parley.Msg) { m.Seq = 0 }),
		"no life":                         change(func(m *parley.Msg) { m.Value = 0 }),
		"no kind":                         change(func(m *parley.Msg) { m.Kind = 9 }),
		"ack with a body":                 change(func(m *parley.Msg) { m.Kind = forwarding.Ack }),
		"another's hello":                 {Kind: forwarding.Hello, Origin: 2, Value: 2},
		"hello with a number":             {Kind: forwarding.Hello, Origin: 0, Value: 2, Seq: 1},
	} {
		p := alone(c, 1)
		before := parley.Save(p.Machine, 0, nil)
		if out := p.receive(0, m); len(out) > 0 {
			t.Errorf("%s: %v", name, out)
		}
		if !bytes.Equal(before, parley.Save(p.Machine, 0, nil)) {
			t.Errorf("%s: the state has changed", name)
		}
	}
	if out := alone(c, 1).receive(0, good); len(out) != 2 {
		t.Errorf("the good one: %v", out)
	}
}

// Memory is bounded: after many broadcasts of all processes, they hold no more than what is in flight, and
// store one range of numbers for each sender.
func TestStateIsBounded(t *testing.T) {
	const n, rounds = 4, 300
	for _, notice := range []bool{false, true} {
		c := forwarding.Config{N: n, Window: 4, Notice: notice}
		opt := sim.Options{Protocol: forwarding.New(c)}
		for id := range parley.ID(n) {
			for k := range rounds {
				opt.Requests = append(opt.Requests, sim.Request{At: id, When: parley.Tick(10 * k),
					Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
			}
		}
		s := sim.Run(opt)
		check(t, 0, opt.Protocol, s)
		for id := range parley.ID(n) {
			vars := parley.Show(s.Machine(id), s.Now())
			held := 0
			for _, v := range vars {
				if len(v.Name) > 7 && v.Name[len(v.Name)-7:] == ".served" {
					held++
				}
			}
			if most := n * c.Window; held > most || notice && held > 0 || len(vars) > 20*n+held*8 {
				t.Errorf("notice %v: process %d holds %d broadcasts, %d variables", notice, id, held, len(vars))
			}
		}
	}
}

// A restarted process numbers its broadcasts from 1 in a new incarnation, which survives another crash; and
// it announces itself.
func TestIncarnation(t *testing.T) {
	s := sim.Run(sim.Options{Protocol: forwarding.New(forwarding.Config{N: 2}),
		Requests: []sim.Request{
			{At: 0, When: 10, Msg: problem.Request([]byte("a"))}, {At: 0, When: 6000, Msg: problem.Request([]byte("b"))},
			{At: 0, When: 12000, Msg: problem.Request([]byte("c"))},
		},
		Crashes: []sim.Crash{{At: 0, When: 3000, Back: 10}, {At: 0, When: 9000, Back: 10}},
	})
	var got []string
	for _, d := range s.History.Deliveries {
		if d.At == 1 {
			got = append(got, string(d.Msg.Body))
		}
	}
	if fmt.Sprint(got) != "[a b c]" {
		t.Errorf("delivered: %v", got)
	}
	if _, log := s.Durable(0); len(log) != 3 {
		t.Errorf("%d records of 3 lives", len(log))
	}
}

// Others forward a message of an ended incarnation, even if it first arrives after the process had restarted
// and was trusted again.
func TestMessageOfAnOldLife(t *testing.T) {
	c := forwarding.Config{N: 3, Tree: [][]parley.ID{0: {1, 2}}}
	m := sent(c, 0, "m")[0]
	p := alone(c, 1)
	p.receive(0, parley.Msg{Kind: forwarding.Hello, Origin: 0, Value: 2})
	expect(t, "of the old life", p.receive(0, m), "data 0.1#1 to 2", "deliver m", "ack 0.1#1 to 0")
	m.Value = 2
	expect(t, "of the new life", p.receive(0, m), "deliver m", "ack 0.2#1 to 0")
	p = alone(c, 1)
	expect(t, "first life", p.receive(0, m), "deliver m", "ack 0.2#1 to 0")
	expect(t, "hello", p.receive(0, parley.Msg{Kind: forwarding.Hello, Origin: 0, Value: 3}), "data 0.2#1 to 2")
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]forwarding.Config{
		"no processes":   {},
		"too many":       {N: 257},
		"window":         {N: 3, Window: -1},
		"fanout":         {N: 3, Fanout: -1},
		"root":           {N: 3, Root: 3},
		"root of a heap": {N: 3, Root: 1},
		"two parents":    {N: 3, Tree: [][]parley.ID{0: {1, 2}, 1: {2}}},
		"not all":        {N: 3, Tree: [][]parley.ID{0: {1}}},
		"a circle":       {N: 4, Tree: [][]parley.ID{0: {1}, 2: {3}, 3: {2}}},
		"a stranger":     {N: 3, Tree: [][]parley.ID{0: {1, 2, 3}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			forwarding.New(c)
		}()
	}
}
