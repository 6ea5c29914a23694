package sim_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// onLinks returns, for each link in the order of the sends, when each message arrived: never, once or several
// times. It uses only the trace.
func onLinks(log *trace.Log, n int) map[[2]parley.ID][]sending {
	out := make(map[[2]parley.ID][]sending)
	place := make(map[uint64]map[parley.ID]int)
	for _, e := range log.Events {
		switch e.Op {
		case trace.Send:
			place[e.ID] = make(map[parley.ID]int)
			for to := range parley.ID(n) {
				if to == e.Peer || e.Peer == parley.All && to != e.At {
					link := [2]parley.ID{e.At, to}
					place[e.ID][to] = len(out[link])
					out[link] = append(out[link], sending{sent: e.Time})
				}
			}
		case trace.Receive:
			one := &out[[2]parley.ID{e.Peer, e.At}][place[e.Cause][e.At]]
			one.arrived = append(one.arrived, e.Time)
		case trace.Lose:
			out[[2]parley.ID{e.Peer, e.At}][place[e.Cause][e.At]].lost = true
		}
	}
	return out
}

type sending struct {
	sent    parley.Tick
	arrived []parley.Tick
	lost    bool
}

// FIFO links deliver in order and duplicate nothing; they may lose. Other links do not keep the order, and the
// messages that overtake are counted.
func TestFIFO(t *testing.T) {
	for seed := range uint64(10) {
		for _, fifo := range []bool{false, true} {
			log := &trace.Log{Keep: true}
			s := sim.Run(sim.Options{
				Protocol: flooding(4, 60), Seed: seed, Log: log, FIFO: fifo, Loss: 0.1, Twice: 0.3,
				Links: []sim.Link{{From: parley.SetOf(1), Delay: sim.Delay{Least: 1, Most: 5000}, Twice: 1, Until: 3000}},
			})
			overtaken, doubled := uint64(0), uint64(0)
			for _, all := range onLinks(log, 4) {
				last := parley.Tick(0)
				for _, one := range all {
					doubled += uint64(max(0, len(one.arrived)-1))
					for _, at := range one.arrived {
						if at < last {
							overtaken++
						}
					}
					for _, at := range one.arrived {
						last = max(last, at)
					}
				}
			}
			if fifo && overtaken+doubled+s.Stats.Overtaken+s.Stats.Doubled > 0 {
				t.Fatalf("seed %d: %d overtaken, %d doubled, %+v", seed, overtaken, doubled, s.Stats)
			}
			if !fifo && (s.Stats.Doubled != doubled || doubled < 100 || s.Stats.Overtaken != overtaken ||
				overtaken < 100) {
				t.Fatalf("seed %d: %d overtaken, %d doubled, %+v", seed, overtaken, doubled, s.Stats)
			}
			if s.Stats.Lost == 0 {
				t.Fatalf("seed %d: nothing is lost", seed)
			}
		}
	}
}

// Of the rules that match a message by its ends and sending time, the last one decides everything. A rule
// holds from Since until before Until. The empty set means every process. If no rule matches, the options
// apply.
func TestRules(t *testing.T) {
	log := &trace.Log{Keep: true}
	slow := sim.Delay{Least: 1000, Most: 2000}
	s := sim.Run(sim.Options{
		Protocol: flooding(4, 40), Delay: sim.Delay{Least: 1, Most: 9}, Log: log,
		Links: []sim.Link{
			{From: parley.SetOf(0), Since: 500, Until: 1500, Loss: 1},
			{From: parley.SetOf(0), To: parley.SetOf(2), Since: 1000, Until: 2000, Delay: slow},
			{To: parley.SetOf(3), Since: 3000, Twice: 1},
		},
	})
	cut, late, doubled := uint64(0), uint64(0), uint64(0)
	for link, all := range onLinks(log, 4) {
		from, to := link[0], link[1]
		for _, one := range all {
			at := one.sent
			switch {
			case at >= 3000 && to == 3:
				doubled++
				if len(one.arrived) != 2 {
					t.Fatalf("%v: %+v", link, one)
				}
			case from == 0 && to == 2 && at >= 1000 && at < 2000:
				late++
				if took := one.arrived[0] - at; len(one.arrived) != 1 || took < 1000 || took > 2000 {
					t.Fatalf("%v: %+v", link, one)
				}
			case from == 0 && at >= 500 && at < 1500:
				cut++
				if len(one.arrived) > 0 || !one.lost {
					t.Fatalf("%v: %+v", link, one)
				}
			default:
				if took := one.arrived[0] - at; len(one.arrived) != 1 || took < 1 || took > 9 {
					t.Fatalf("%v: %+v", link, one)
				}
			}
		}
	}
	if st := s.Stats; st.Cut != cut || st.Late != late || st.Doubled != doubled || st.Lost != 0 ||
		cut < 20 || late < 10 || doubled < 20 {
		t.Errorf("cut %d, late %d, doubled %d: %+v", cut, late, doubled, st)
	}
}

// After Heal the network has no faults, and what a slow link held until then arrives soon.
func TestHeal(t *testing.T) {
	log := &trace.Log{Keep: true}
	sim.Run(sim.Options{
		Protocol: flooding(4, 40), Delay: sim.Delay{Least: 1, Most: 9}, Log: log, Heal: 2000, Loss: 0.5, Twice: 0.5,
		Links: []sim.Link{
			{From: parley.SetOf(0), Loss: 1},
			{From: parley.SetOf(1), Delay: sim.Delay{Least: 10_000, Most: 20_000}},
		},
	})
	before, held := 0, 0
	for link, all := range onLinks(log, 4) {
		for _, one := range all {
			switch {
			case one.sent >= 2000:
				if took := one.arrived[0] - one.sent; len(one.arrived) != 1 || took > 9 {
					t.Fatalf("%v: %+v", link, one)
				}
			case link[0] == 1:
				held++
				if len(one.arrived) != 1 || one.arrived[0] > 2009 || one.arrived[0] < 2000 {
					t.Fatalf("%v: %+v", link, one)
				}
			case len(one.arrived) != 1:
				before++
			}
		}
	}
	if before < 50 || held < 50 {
		t.Error(before, held)
	}
}

// Without an edge nothing arrives, and that is counted separately. Edges have a direction.
func TestGraph(t *testing.T) {
	ring := []parley.Set{parley.SetOf(1), parley.SetOf(2), parley.SetOf(3), parley.SetOf(0)}
	log := &trace.Log{Keep: true}
	s := sim.Run(sim.Options{Protocol: flooding(4, 10), Graph: ring, Log: log, Delay: unit})
	lost := uint64(0)
	for link, all := range onLinks(log, 4) {
		for _, one := range all {
			if edge := link[1] == (link[0]+1)%4; edge != (len(one.arrived) == 1) || edge == one.lost {
				t.Fatalf("%v: %+v", link, one)
			} else if !edge {
				lost++
			}
		}
	}
	if s.Stats.NoEdge != lost || lost < 80 || s.Stats.Lost+s.Stats.Cut > 0 || s.Stats.Deliveries < 40 {
		t.Errorf("%+v", s.Stats)
	}
}

// A message sent in an epoch arrives in it, from a process or a coalition. Everything else has no epoch.
func TestEpoch(t *testing.T) {
	for _, liars := range []map[parley.ID]faulty.Behavior{nil, {0: faulty.Honest}} {
		var got []string
		p := scripted(2, nil, func(s *parley.Step, event string) {
			switch {
			case event == "start" && s.Self == 0:
				s.Send(1, say(1))
				s.Send(1, say(2))
				s.Effects[len(s.Effects)-1].Epoch = 7
				s.Keep(say(3))
				s.Effects[len(s.Effects)-1].Epoch = 8
			case event == "receive 2 from 0":
				s.SetTimer(0, 1)
			}
			got = append(got, fmt.Sprintf("%d %s in %d", s.Self, event, s.Epoch))
		})
		log := &trace.Log{Keep: true}
		sim.Run(sim.Options{Protocol: p, Delay: unit, Log: log, Faulty: liars})
		want(t, got, "0 start in 0", "1 start in 0", "1 receive 1 from 0 in 0", "1 receive 2 from 0 in 7",
			"1 timeout 0 in 0")
		var epochs []uint32
		for _, e := range log.Events {
			if e.Op == trace.Send || e.Op == trace.Receive || e.Op == trace.Keep {
				epochs = append(epochs, e.Epoch)
			}
		}
		slices.Sort(epochs)
		if !slices.Equal(epochs, []uint32{0, 0, 7, 7, 8}) {
			t.Error(epochs)
		}
	}
}

// Whatever the faults, every copy of a message is received, lost for a counted reason, or missed by a process
// that is down.
func TestAllAccountedFor(t *testing.T) {
	for seed := range uint64(30) {
		st := sim.Run(allFaults(seed)).Stats
		if st.Sends+st.Doubled != st.Deliveries+st.Lost+st.Cut+st.NoEdge+st.Missed {
			t.Fatalf("seed %d: %+v", seed, st)
		}
	}
}

// allFaults returns a run with every fault of the simulator.
func allFaults(seed uint64) sim.Options {
	ring := make([]parley.Set, 6)
	for id := range parley.ID(6) {
		ring[id] = parley.Everyone(6).Minus(parley.SetOf((id + 3) % 6))
	}
	return sim.Options{
		Protocol: flooding(6, 60), Seed: seed, Loss: 0.1, Twice: 0.1, Graph: ring, Heal: 5000,
		Links: []sim.Link{
			{From: parley.SetOf(0), To: parley.SetOf(1, 2), Since: 1000, Until: 2000, Loss: 1},
			{From: parley.SetOf(4), Since: 2000, Delay: sim.Delay{Least: 500, Most: 3000}, Loss: 0.2, Twice: 0.2},
		},
		Clocks: []sim.Clock{{At: 1, Offset: -300, Drift: 5000}, {At: 2, Drift: -5000}},
		Pauses: []sim.Pause{{At: 2, From: 700, For: 900}, {At: 3, From: 1400, For: 50}, {At: 3, From: 1410, For: 200}},
		Crashes: []sim.Crash{
			{At: 0, Step: 20, Effects: 2, Back: 500}, {At: 0, When: 3000, Effects: 3, Back: 100, LostDisk: true},
			{At: 3, When: 1500, Back: 700}, {At: 4, When: 4000, Effects: 1},
		},
		Suspicions: []sim.Suspicion{{At: 1, Of: 0, When: 900}, {At: 2, Of: 4, When: 4500}, {At: 0, Of: 1, When: 2500}},
		Requests:   []sim.Request{{At: 2, When: 800, Msg: say(1)}, {At: 1, Msg: say(2)}},
		Faulty:     map[parley.ID]faulty.Behavior{5: faulty.SendOmission},
	}
}

// With every fault the same seed gives the same run, traced or not.
func TestDeterministicFaults(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(10) {
		opt := allFaults(seed)
		opt.Log = &trace.Log{}
		one := sim.Run(opt)
		hash := opt.Log.Hash()
		opt.Log = &trace.Log{}
		before := sequentially(func() { sim.Run(opt) })
		opt2 := opt
		opt2.Log = nil
		plain := sim.Run(opt2)
		if opt.Log.Hash() != hash || !reflect.DeepEqual(one.Stats, plain.Stats) {
			t.Fatalf("seed %d: another run with GOMAXPROCS %d or without a trace", seed, before)
		}
		seen[hash] = true
		for kind, count := range one.Stats.Faults() {
			if count == 0 && kind != "messages of faulty processes" {
				t.Errorf("seed %d: no %s", seed, kind)
			}
		}
	}
	if len(seen) != 10 {
		t.Error(len(seen), "different runs")
	}
}
