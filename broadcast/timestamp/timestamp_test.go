package timestamp_test

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

func casts(at parley.ID, when parley.Tick, texts ...string) (out []sim.Request) {
	for _, text := range texts {
		out = append(out, sim.Request{At: at, When: when, Msg: problem.Request([]byte(text))})
	}
	return out
}

// "Two when no smaller key is in flight": alone, a message is delivered everywhere
// two delays after it was broadcast.
func TestTwoDelays(t *testing.T) {
	for _, n := range []int{2, 3, 5, 7} {
		s := sim.Run(sim.Options{
			Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: n}}), FIFO: true,
			Delay: sim.Delay{Least: 100, Most: 100}, Until: 5000, Requests: casts(1, 1000, "a"),
		})
		if len(s.History.Deliveries) != n {
			t.Fatalf("n = %d: %d deliveries", n, len(s.History.Deliveries))
		}
		for _, d := range s.History.Deliveries {
			if d.When != 1200 && !(n == 2 && d.At == 0 && d.When == 1100) {
				t.Errorf("n = %d: process %d delivers at %d", n, d.At, d.When)
			}
		}
	}
}

// "Up to three when a sender with a lagging clock sends concurrently": its message has
// the smaller key, and must be held by all too.
func TestThreeDelays(t *testing.T) {
	s := sim.Run(sim.Options{
		Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: 3}}), FIFO: true,
		Delay: sim.Delay{Least: 100, Most: 100}, Until: 5000,
		Requests: append(casts(0, 1000, "a", "b", "c"), casts(2, 1099, "d")...),
	})
	var last parley.Tick
	var order []string
	for _, d := range s.History.Deliveries {
		if d.At == 1 {
			order = append(order, string(d.Msg.Body))
		}
		last = max(last, d.When)
	}
	if got := strings.Join(order, ""); got != "adbc" || last != 1299 {
		t.Errorf("delivered in the order %s, the last at %d", got, last)
	}
}

// "A batch shares them": with acknowledgements held back, one is for all that came.
func TestBatch(t *testing.T) {
	count := func(hold parley.Tick) (acks int) {
		log := &trace.Log{Keep: true}
		s := sim.Run(sim.Options{
			Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: 4}, Hold: hold}), FIFO: true,
			Until: 8000, Requests: casts(0, 1000, "a", "b", "c", "d", "e", "f"), Log: log,
		})
		if len(s.History.Deliveries) != 24 {
			t.Fatalf("%d deliveries", len(s.History.Deliveries))
		}
		for _, e := range log.Events {
			if e.Op == trace.Receive && e.Path == 1 && e.Msg.Kind == timestamp.Ack {
				acks++
			}
		}
		return acks
	}
	if one, batch := count(0), count(1000); one != 54 || batch != 9 {
		t.Errorf("%d acknowledgements one by one and %d in a batch, expected 54 and 9", one, batch)
	}
}

// "Fewer than W own messages undelivered (else queue)": so many of one sender, and no
// more, are held anywhere; and all are delivered.
func TestWindow(t *testing.T) {
	const n, window, each = 3, 3, 20
	opt := sim.Options{
		Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: n}, Window: window}), FIFO: true, Until: 40_000,
	}
	for id := range parley.ID(n) {
		for k := range each {
			opt.Requests = append(opt.Requests, casts(id, 1000, fmt.Sprintf("%d.%d", id, k))...)
		}
	}
	most := 0
	opt.Between = func(s *sim.Sim) {
		for id := range parley.ID(n) {
			held := make(map[string]int)
			for _, v := range parley.Show(s.Machine(id), 0) {
				if strings.Contains(v.Name, "pending[") && strings.HasSuffix(v.Name, "sender") {
					held[v.Value]++
					most = max(most, held[v.Value])
				}
			}
		}
	}
	s := sim.Run(opt)
	if most != window || len(s.History.Deliveries) != n*n*each {
		t.Errorf("at most %d messages of a sender were held, and %d delivered", most, len(s.History.Deliveries))
	}
}

// "One silent member stops delivery until the view excludes it."
func TestSilentMember(t *testing.T) {
	s := sim.Run(sim.Options{
		Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: 4}}), FIFO: true, Until: 40_000,
		Requests: casts(0, 5000, "a"), Crashes: []sim.Crash{{At: 3, When: 4900}},
	})
	installed := make(map[parley.ID]parley.Tick)
	for _, e := range s.History.Indications {
		if e.Msg.Kind == parley.View && e.Msg.Seq == 2 {
			installed[e.At] = e.When
		}
	}
	if len(s.History.Deliveries) != 3 || len(installed) != 3 {
		t.Fatalf("%d deliveries, %d in view 2", len(s.History.Deliveries), len(installed))
	}
	for _, d := range s.History.Deliveries {
		if d.When != installed[d.At] {
			t.Errorf("process %d delivers at %d and installs the view at %d", d.At, d.When, installed[d.At])
		}
	}
}

// A link that loses a message shows it by the next one, whatever that is, and the view
// change brings what was lost.
func TestGap(t *testing.T) {
	for _, lost := range []sim.Link{
		{From: parley.SetOf(0), To: parley.SetOf(2), Since: 1000, Until: 1001, Loss: 1}, // DATA
		{From: parley.SetOf(1), To: parley.SetOf(2), Since: 1001, Until: 2001, Loss: 1}, // ACK, the last one of the link
	} {
		s := sim.Run(sim.Options{
			Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: 3}}), FIFO: true, Until: 40_000,
			Delay: sim.Delay{Least: 100, Most: 100}, Requests: casts(0, 1000, "a", "b"), Links: []sim.Link{lost},
		})
		if len(s.History.Deliveries) != 6 {
			t.Errorf("%d deliveries", len(s.History.Deliveries))
		}
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, timestamp.New(timestamp.Config{Config: group.Config{N: 3}}), parleytest.Options{
		Sim: sim.Options{FIFO: true},
	})
}
