package timestamp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

// "Two when no smaller key is in flight": alone, a message is delivered everywhere two delays after its
// broadcast.
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
			when := parley.Tick(1200)
			if n == 2 && d.At == 0 {
				when = 1100 // it holds the message, and knows that the sender did
			}
			if d.When != when {
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

// Never more than three, if no process must wait for the window: a process that may still send a message with
// a smaller key does so before the message has reached it.
func TestNeverMoreThanThreeDelays(t *testing.T) {
	three := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		n, asked := 2+r.IntN(5), make(map[string]parley.Tick)
		opt := sim.Options{
			Protocol: timestamp.New(timestamp.Config{Config: group.Config{N: n}}), Seed: seed, FIFO: true,
			Delay: sim.Delay{Least: 100, Most: 100}, Until: 5000,
		}
		for k := range 40 {
			text, when := fmt.Sprint(k), 1000+parley.Tick(r.IntN(600))
			asked[text] = when
			opt.Requests = append(opt.Requests, casts(parley.ID(r.IntN(n)), when, text)...)
		}
		s := sim.Run(opt)
		if len(s.History.Deliveries) != 40*n {
			t.Fatalf("seed %d: %d deliveries", seed, len(s.History.Deliveries))
		}
		for _, d := range s.History.Deliveries {
			switch took := d.When - asked[string(d.Msg.Body)]; {
			case took > 300:
				t.Fatalf("seed %d: %s takes %d ticks to %d", seed, d.Msg.Body, took, d.At)
			case took > 200:
				three++
			}
		}
	}
	if three < 1000 {
		t.Errorf("%d deliveries took more than two delays", three)
	}
}

// "A batch shares them": with delayed acknowledgements, one acknowledges all messages that arrived.
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

// "Fewer than W own messages undelivered (else queue)": no process holds more of one sender, and all are
// delivered.
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

var many = flag.Int("broadcasts", 12_000, "broadcasts in TestFlat")

// A member holds no more than the window of each member and its queue, whatever the number of broadcasts, and
// although members are silent until the view excludes them, and rejoin. It refuses what is beyond that.
// Memory does not grow with the run.
func TestFlat(t *testing.T) {
	const n, window, queue, every = 4, 12, 20, 12
	c := timestamp.Config{Config: group.Config{N: n, Return: true, Queue: queue}, Window: window, Hold: 60}
	delivered, events, outs := 0, 0, 0
	opt := busy(c, *many, every, &delivered)
	var heap []uint64
	observe := opt.Observe
	opt.Observe = func(op trace.Op, h parley.ExternalEvent) {
		observe(op, h)
		if op == trace.Indicate && h.Msg.Kind == group.Excluded {
			outs++
		}
		if op == trace.Deliver && delivered%(*many/4) == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = append(heap, m.HeapAlloc)
		}
	}
	for k := range parley.Tick(3) {
		from := (1+4*k)*parley.Tick(*many)*every/12 - 5000
		opt.Pauses = append(opt.Pauses, sim.Pause{At: parley.ID(k + 1), From: from, For: 10_000})
	}
	held, waiting, before := 0, 0, 0
	opt.Between = func(s *sim.Sim) {
		if events++; events%100 != 0 || delivered > before { // not during normal operation
			before = delivered
			return
		}
		for id := range parley.ID(n) {
			pending, queued := 0, 0
			for _, v := range parley.Show(s.Machine(id), 0) {
				switch {
				case strings.Contains(v.Name, "pending[") && strings.HasSuffix(v.Name, "sender"):
					pending++
				case strings.Contains(v.Name, "timestamp.queue[") && strings.HasSuffix(v.Name, "body"):
					queued++
				}
			}
			held, waiting = max(held, pending), max(waiting, queued)
		}
	}
	s := sim.Run(opt)
	if held > n*window || held <= window || waiting != queue || outs != 3 {
		t.Errorf("%d are held, %d wait, and %d times a member is out", held, waiting, outs)
	}
	refused := int(s.Stats.Refused["too many requests for the window"] +
		s.Stats.Refused["too many requests for the next view"])
	if refused == 0 || delivered < 3*(*many-refused) {
		t.Errorf("%d deliveries, and %d of %d requests were refused", delivered, refused, *many)
	}
	t.Logf("%d deliveries, %d refused; up to %d held and %d waiting; heap %v",
		delivered, refused, held, waiting, heap)
	if first, last := heap[1], slices.Max(heap); last > first+200_000 {
		t.Errorf("%d bytes are in use first and %d later: %v", first, last, heap)
	}
}

// The next message of a link, of any kind, reveals a loss on it, and the view change brings what was lost.
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
