package parley_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"parley"
)

// Judge returns what was promised with what happened.
func TestJudge(t *testing.T) {
	no := errors.New("it does not hold")
	property := func(name string, err error) parley.Property {
		return parley.Property{Name: name, Check: func(h *parley.History) error {
			if !h.Over || h.Correct(1) || !h.Correct(0) {
				return errors.New("another history")
			}
			return err
		}}
	}
	p := parley.Protocol{
		Properties: []parley.Property{
			property("kept", nil), property("broken", no), property("lost", no), property("lucky", nil),
			property("unknown", no),
		},
		Promises: func(a parley.RunConditions) []parley.Promise {
			return []parley.Promise{
				{Property: "lucky", Because: "beyond"}, {Property: "lost", Because: "beyond"},
				{Property: "broken", Holds: a.N == 4, Because: "theorem"}, {Property: "kept", Holds: true},
			}
		},
	}
	var violated []string
	verdicts := parley.Judge(p, parley.RunConditions{N: 4},
		&parley.History{N: 2, Faulty: parley.SetOf(1), Over: true})
	for i, v := range verdicts {
		if v.Property.Name != p.Properties[i].Name || v.Promise.Property != v.Property.Name ||
			v.Promise.Because == "" && v.Property.Name != "kept" {
			t.Errorf("%+v", v)
		}
		if v.Violated() {
			violated = append(violated, v.Property.Name)
		}
	}
	if len(verdicts) != 5 || !slices.Equal(violated, []string{"broken"}) {
		t.Error(violated)
	}
	p.Promises = nil
	for _, v := range parley.Judge(p, parley.RunConditions{N: 4},
		&parley.History{N: 2, Faulty: parley.SetOf(1), Over: true}) {
		if v.Violated() {
			t.Error("a protocol without promises broke one")
		}
	}
	h := &parley.History{}
	if h.Name(3) != "process 3" {
		t.Error(h.Name(3))
	}
	h.Naming = func(id parley.ID) string { return "P" + id.String() }
	if h.Name(3) != "P3" {
		t.Error(h.Name(3))
	}
}

// Promised promises a property for a reason, unless it gets a reason against it.
func TestPromised(t *testing.T) {
	for unless, want := range map[string]parley.Promise{
		"": {Property: "order", Holds: true, Because: "theorem"}, "a crash": {Property: "order", Because: "a crash"},
	} {
		if have := parley.Promised("order", "theorem", unless); have != want {
			t.Errorf("unless %q: %+v", unless, have)
		}
	}
}

// The reason for a promise that does not hold has one process in the singular.
func TestExcess(t *testing.T) {
	a := parley.RunConditions{M: 0, Faulty: 1}
	for _, c := range []struct{ is, want string }{
		{a.Excess(), "1 process is faulty, and m = 0"},
		{parley.RunConditions{M: 1, Faulty: 2}.Excess(), "2 processes are faulty, and m = 1"},
		{a.ExcessDown(1), "1 process is faulty or was down for a time, and m = 0"},
		{a.ExcessDown(3), "3 processes are faulty or were down for a time, and m = 0"},
	} {
		if c.is != c.want {
			t.Errorf("got %q, want %q", c.is, c.want)
		}
	}
}

// Sums and products of traffic saturate at the largest number.
func TestTraffic(t *testing.T) {
	const most = math.MaxUint64
	a := parley.Traffic{Messages: 1 << 40, Bits: most - 1, Signatures: 3}
	if sum := a.Plus(parley.Traffic{Messages: 2, Bits: 2,
		Signatures: 4}); sum != (parley.Traffic{Messages: 1<<40 + 2, Bits: most, Signatures: 7}) {
		t.Error(sum)
	}
	if product := a.Times(1 << 30); product != (parley.Traffic{Messages: most, Bits: most, Signatures: 3 << 30}) {
		t.Error(product)
	}
	if product := a.Times(0); product != (parley.Traffic{}) {
		t.Error(product)
	}
	c := parley.Cost{PerRound: []parley.Traffic{{Messages: 1}, {Messages: 2, Bits: 5}}}
	if c.Total() != (parley.Traffic{Messages: 3, Bits: 5}) {
		t.Error(c.Total())
	}
	for n, want := range map[int]uint64{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 8: 3, 9: 4, 256: 8} {
		if have := parley.IDBits(n); have != want {
			t.Errorf("%d processes are named by %d bits, not %d", n, have, want)
		}
	}
	for v, want := range map[string]uint64{"": 0, "0": 1, "1": 1, "2": 8, "10": 16} {
		if have := parley.ValueBits([]byte(v)); have != want {
			t.Errorf("%q has %d bits, not %d", v, have, want)
		}
	}
	if parley.Synchronous.String() != "synchronous" ||
		parley.OralByzantineFaults.String() == parley.CrashFaults.String() {
		t.Error("names")
	}
}

// Rounds assume that a message arrives in the round in which it is sent: a process that misses
// one and does not count as faulty voids the promises of a synchronous protocol, and of no
// other. If processes rejoin, the protocol itself says what a restart leaves of its promises.
func TestMissedRounds(t *testing.T) {
	restarted := parley.RunConditions{Away: 1, Processes: parley.ProcessFaults{Restarted: true, LostDisk: true}}
	for _, a := range []parley.RunConditions{
		{Network: parley.NetworkFaults{Lost: true}}, {Network: parley.NetworkFaults{Cut: true}},
		{Network: parley.NetworkFaults{Late: true}}, {Network: parley.NetworkFaults{Disconnected: true}},
		{Processes: parley.ProcessFaults{Paused: true}}, {Processes: parley.ProcessFaults{Restarted: true}}, restarted,
	} {
		for _, p := range []parley.Protocol{
			{Timing: parley.Synchronous}, {Timing: parley.Synchronous, Rejoins: true}, {Timing: parley.Asynchronous},
		} {
			p.Properties = []parley.Property{{Name: "x", Check: func(*parley.History) error { return nil }}}
			p.Promises = func(a parley.RunConditions) []parley.Promise {
				return []parley.Promise{{Property: "x", Holds: true}}
			}
			restart := a.Processes.Restarted
			want := p.Timing == parley.Asynchronous || p.Rejoins && restart
			if got := parley.Judge(p, a, &parley.History{})[0].Promise; got.Holds != want {
				t.Errorf("%+v, %s, rejoins %t: %+v", a, p.Timing, p.Rejoins, got)
			}
		}
	}
}

// And returns the stricter of each bound.
func TestReliance(t *testing.T) {
	a := parley.ModelAssumptions{Delay: 5, Drift: 9}
	b := parley.ModelAssumptions{Delay: 7, Offset: 3, Drift: 2, FIFO: true}
	if got := a.And(b); got != (parley.ModelAssumptions{Delay: 5, Offset: 3, Drift: 2, FIFO: true}) || got != b.And(a) {
		t.Errorf("%+v, and the other way round %+v", got, b.And(a))
	}
}

// A verdict says how near a run came to a bound.
func TestMeasured(t *testing.T) {
	p := parley.Protocol{Name: "p", N: 3, Properties: []parley.Property{
		{Name: "bound", Check: func(*parley.History) error { return nil },
			Measure: func(h *parley.History) string { return fmt.Sprintf("%d deliveries", len(h.Deliveries)) }},
		{Name: "plain", Check: func(*parley.History) error { return nil }},
	}, Promises: func(parley.RunConditions) []parley.Promise { return nil }}
	all := parley.Judge(p, parley.RunConditions{N: 3}, &parley.History{N: 3, Deliveries: make([]parley.ExternalEvent, 2)})
	if all[0].Measured != "2 deliveries" || all[1].Measured != "" {
		t.Errorf("measured %q and %q", all[0].Measured, all[1].Measured)
	}
}
