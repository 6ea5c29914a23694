package sim_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

// Observe gets everything that the history would have, in order, and then the history is empty. Requests from
// More equal those of a list.
func TestObserve(t *testing.T) {
	p := scripted(3, nil, func(s *parley.Step, event string) {
		switch event {
		case "request 1":
			s.Indicate(parley.Msg{Kind: parley.View, Seq: 1})
			s.Deliver(2, say(1))
		case "restart":
			s.Deliver(s.Self, say(9))
		}
	})
	opt := sim.Options{
		Protocol: p, Crashes: []sim.Crash{{At: 1, When: 55, Back: 50}}, Pauses: []sim.Pause{{At: 2, From: 66, For: 100}},
	}
	for k := range 20 {
		opt.Requests = append(opt.Requests, sim.Request{At: parley.ID(k % 3), When: parley.Tick(10 * k), Msg: say(uint64(k % 2))})
	}
	listed := sim.Run(opt).History
	want := make([]string, 0)
	for op, list := range map[trace.Op][]parley.ExternalEvent{
		trace.Request: listed.Requests, trace.Deliver: listed.Deliveries,
		trace.Indicate: listed.Indications, trace.Restart: listed.Restarts,
	} {
		if len(list) == 0 {
			t.Fatal("no", op)
		}
		for _, h := range list {
			want = append(want, fmt.Sprintf("%05d %s %+v", h.Order, op, h))
		}
	}
	slices.Sort(want)

	left := opt.Requests
	opt.Requests = nil
	opt.More = func() (sim.Request, bool) {
		if len(left) == 0 {
			return sim.Request{}, false
		}
		next := left[0]
		left = left[1:]
		return next, true
	}
	var have []string
	opt.Observe = func(op trace.Op, h parley.ExternalEvent) {
		have = append(have, fmt.Sprintf("%05d %s %+v", h.Order, op, h))
	}
	s := sim.Run(opt)
	if !slices.Equal(have, want) {
		t.Errorf("\nhave %s\nwant %s", have, want)
	}
	if h := s.History; len(h.Requests)+len(h.Deliveries)+len(h.Indications)+len(h.Restarts) > 0 || !h.Over {
		t.Errorf("%+v", h)
	}
}

// castAll is the simplest broadcast: it sends a request to all and delivers what it receives.
type castAll struct{ parley.Base }

func (castAll) Request(s *parley.Step, m parley.Msg) {
	s.SendAll(parley.Msg{Kind: 1, Origin: s.Self, Body: m.Body})
	s.Deliver(s.Self, parley.Msg{Kind: parley.Carried, Origin: s.Self, Body: m.Body})
}

func (castAll) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: m.Body})
}

func (castAll) State(*parley.Vars) {}

func casting(n int) parley.Protocol {
	return parley.Protocol{Name: "casting", N: n, New: func(parley.ID) parley.Machine { return castAll{} }}
}

// casts returns many broadcasts one by one, one tick apart, without memory for each.
func casts(n, many int) func() (sim.Request, bool) {
	body := []byte("something")
	k := 0
	return func() (sim.Request, bool) {
		k++
		r := sim.Request{At: parley.ID(k % n), When: parley.Tick(k), Msg: parley.Msg{Kind: parley.Carried, Body: body}}
		return r, k <= many
	}
}

// An observed run takes no more memory if it is longer.
func TestFlat(t *testing.T) {
	const n = 4
	run := func(many int) uint64 {
		delivered := 0
		opt := sim.Options{
			Protocol: casting(n), More: casts(n, many), Loss: 0.1, Twice: 0.1,
			Observe: func(op trace.Op, _ parley.ExternalEvent) {
				if op == trace.Deliver {
					delivered++
				}
			},
			Clocks: []sim.Clock{{At: 1, Drift: 100}}, Pauses: []sim.Pause{{At: 1, From: 100, For: 300}},
			Log: &trace.Log{},
		}
		s := sim.New(opt)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.Run()
		runtime.ReadMemStats(&after)
		if uint64(delivered) != s.Stats.Deliveries+uint64(many) || delivered < 3*many {
			t.Fatalf("%d delivered: %+v", delivered, s.Stats)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	short, long := run(10_000), run(100_000)
	if long > short+short/4+100_000 {
		t.Errorf("%d bytes for 10,000 broadcasts, and %d for 100,000", short, long)
	}
}

// Requests from More must not go back in time, and must be for existing processes.
func TestMore(t *testing.T) {
	for name, second := range map[string]sim.Request{"back in time": {When: 4}, "nobody": {At: 3, When: 6}} {
		first := true
		more := func() (sim.Request, bool) {
			if first {
				first = false
				return sim.Request{When: 5, Msg: say(1)}, true
			}
			return second, true
		}
		if !parleytest.Panics(func() { sim.Run(sim.Options{Protocol: casting(3), More: more}) }) {
			t.Errorf("%s: it runs", name)
		}
	}
}

// A run in the memory of another one, with every fault, of more processes or ended with much in flight, is the
// same as in its own memory.
func TestReset(t *testing.T) {
	used := new(sim.Sim)
	for seed := range uint64(40) {
		opt := sim.Options{Protocol: flooding(3+int(seed)%4, 20), Seed: seed, Log: &trace.Log{}, Loss: 0.1}
		switch seed % 4 {
		case 0, 2:
			opt = allFaults(seed)
			opt.Log, opt.Until = &trace.Log{}, parley.Tick(200*seed) // ended in the middle
		case 1:
			opt.Faulty = map[parley.ID]faulty.Behavior{1: faulty.ReceiveOmission}
			opt.Steps = 40
		}
		fresh := sim.Run(opt)
		hash := opt.Log.Hash()
		opt.Log = &trace.Log{}
		used.Reset(opt)
		used.Run()
		if opt.Log.Hash() != hash || !reflect.DeepEqual(used.Stats, fresh.Stats) ||
			used.RunConditions() != fresh.RunConditions() || len(used.History.Deliveries) != len(fresh.History.Deliveries) {
			t.Fatalf("seed %d: another run\n%+v\n%+v", seed, used.Stats, fresh.Stats)
		}
	}
}
