package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
)

// listed is an event of the oracle: a list sorted by time and order of insertion.
type listed struct {
	at    parley.Tick
	order int
	event event
}

// The ring and the heap return what a sorted list returns, for times near and far, at their border and all at
// once, and after a reset.
func TestSchedule(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	var q schedule
	far := 0
	for range 300 {
		q.reset()
		var oracle []listed
		put, now := 0, parley.Tick(0)
		spread := []int64{1, 3, 70, ringSize - 1, ringSize + 1, 3 * ringSize, 1 << 40}[r.IntN(7)]
		add := func() {
			after := parley.Tick(r.Int64N(spread))
			switch r.IntN(12) {
			case 0:
				after = ringSize - 1
			case 1:
				after = ringSize
			case 2:
				after = 0
			}
			if after >= ringSize {
				far++
			}
			e := event{ref: int32(put), to: parley.ID(r.IntN(9)), what: eventKind(r.IntN(4))}
			q.at(now+after, e)
			oracle = append(oracle, listed{now + after, put, e})
			put++
		}
		for range r.IntN(40) {
			add()
		}
		for {
			at, ok := q.next()
			slices.SortFunc(oracle, func(a, b listed) int {
				return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
			})
			if ok != (len(oracle) > 0) || ok && at != oracle[0].at {
				t.Fatalf("next is %d, %v, and should be %+v", at, ok, oracle)
			}
			if !ok {
				break
			}
			now = at
			for {
				e, ok := q.pop()
				if due := len(oracle) > 0 && oracle[0].at == now; ok != due || ok && e != oracle[0].event {
					t.Fatalf("at %d: %+v, %v, and should be %+v", now, e, ok, oracle)
				}
				if !ok {
					break
				}
				oracle = oracle[1:]
				for put < 400 && r.IntN(3) == 0 {
					add() // some for the present time
					slices.SortStableFunc(oracle, func(a, b listed) int { return cmp.Compare(a.at, b.at) })
				}
			}
			if put > 300 && r.IntN(50) == 0 {
				break // end the run in the middle
			}
		}
	}
	if far < 1000 {
		t.Error(far, "events beyond the ring")
	}
}

// While the time does not change, any number of events come in order, and returned events take no memory. Time
// continues after that.
func TestLongSlot(t *testing.T) {
	for _, open := range []int{1, 2, 300} { // events due at a time
		var q schedule
		q.at(7, event{})
		if at, ok := q.next(); at != 7 || !ok {
			t.Fatal(at, ok)
		}
		for i := 1; i < open; i++ {
			q.at(7, event{ref: int32(i)})
		}
		const many = 50 * longSlot
		for i := range many {
			if e, ok := q.pop(); !ok || e.ref != int32(i) {
				t.Fatalf("%d due: %+v, %v, and should be event %d", open, e, ok, i)
			}
			if i < many-open {
				q.at(7, event{ref: int32(i + open)})
			}
		}
		if _, ok := q.pop(); ok || cap(q.slots[7]) > 4*longSlot {
			t.Errorf("%d due: more is due: %v, and there is room for %d", open, ok, cap(q.slots[7]))
		}
		q.at(8, event{ref: 1})
		if at, ok := q.next(); at != 8 || !ok || q.slots[7] != nil {
			t.Errorf("%d due: then comes %d, %v", open, at, ok)
		}
	}
}

// Events beyond the ring use the memory of earlier slots: a long run with few events takes no more memory over
// time.
func TestFarEventsTakeNoMemory(t *testing.T) {
	var q schedule
	q.at(1, event{})
	for range 1000 {
		at, ok := q.next()
		if _, there := q.pop(); !ok || !there {
			t.Fatal("nothing is due")
		}
		q.at(at+3*ringSize+1, event{})
	}
	if len(q.spare) > 2 {
		t.Errorf("the memory of %d slots lies about", len(q.spare))
	}
	for range 30 { // some more, due at any time
		q.at(q.now+3*ringSize, event{})
	}
	allocs := testing.AllocsPerRun(1000, func() {
		at, _ := q.next()
		for _, there := q.pop(); there; _, there = q.pop() {
			q.at(at+2*ringSize+at%1000, event{})
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations for each time", allocs)
	}
}

// A message is kept while a receiver is left, and its place is reused.
func TestStore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 2))
	var w messageStore
	for range 3 {
		w.reset()
		holds := make(map[int32]int)
		content := make(map[int32]uint64)
		most := 0
		for i := range uint64(3000) {
			if r.IntN(2) == 0 {
				k := 1 + r.IntN(3)
				ref := w.put(storedMessage{msg: parley.Msg{Value: i, Body: []byte{1}}, refs: int32(k)})
				if holds[ref] > 0 {
					t.Fatal("a place is used twice")
				}
				holds[ref], content[ref] = k, i
				most = max(most, len(holds))
				continue
			}
			for ref := range holds {
				if w.slots[ref].msg.Value != content[ref] {
					t.Fatal("another message")
				}
				w.drop(ref)
				if holds[ref]--; holds[ref] == 0 {
					delete(holds, ref)
					if w.slots[ref].msg.Body != nil {
						t.Fatal("the body is held on to")
					}
				}
				break
			}
		}
		if len(w.slots) != most {
			t.Errorf("%d places for at most %d messages", len(w.slots), most)
		}
	}
}

// A timer replaces one with the same number and path. One that would expire after the end of time never does,
// and takes no place in the schedule.
func TestArm(t *testing.T) {
	s := New(Options{Protocol: parley.Protocol{N: 1, New: func(parley.ID) parley.Machine { return idle{} }}})
	set := func(path parley.Path, number parley.Timer, after parley.Tick) {
		s.perform(0, []parley.Effect{{Op: parley.OpSetTimer, Path: path, Timer: number, After: after}})
	}
	s.now = 5
	s.due.now = 5
	set(0, 1, 10)
	set(1, 1, 10)
	set(0, 2, 10)
	set(0, 1, 20)
	set(0, 3, math.MaxInt64)
	set(0, 4, math.MaxInt64-5)
	set(0, 5, math.MaxInt64-6)
	s.procs[0].disarm(0, 2)
	if len(s.procs[0].timers) != 5 || len(s.due.later) != 1 {
		t.Errorf("%+v, %d far ahead", s.procs[0].timers, len(s.due.later))
	}
	var at []parley.Tick
	for {
		now, ok := s.due.next()
		if !ok {
			break
		}
		for e, ok := s.due.pop(); ok; e, ok = s.due.pop() {
			if s.procs[0].find(e.ref) >= 0 {
				at = append(at, now)
			}
		}
	}
	if !slices.Equal(at, []parley.Tick{15, 25, math.MaxInt64 - 1}) {
		t.Error(at)
	}
}

type idle struct{ parley.Base }

func (idle) State(*parley.Vars) {}

// A delay is what the library would draw.
func TestBelow(t *testing.T) {
	a, b := rand.NewPCG(3, 1), rand.NewPCG(3, 1)
	oracle, sizes := rand.New(b), rand.New(rand.NewPCG(3, 2))
	for range 100_000 {
		n := sizes.Uint64()>>sizes.IntN(64) | 1<<63>>sizes.IntN(64)
		if have, want := below(a, n), oracle.Uint64N(n); have != want {
			t.Fatalf("below %d: %d, and the library draws %d", n, have, want)
		}
	}
}

// A timer expires at the first true time at which the clock shows its time. Before time 0 no clock drifts.
func TestClock(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 100_000 {
		c := Clock{Offset: parley.Tick(r.Int64N(2001) - 1000), Drift: r.Int64N(2*million) - million + 1}
		now := parley.Tick(r.Int64N(1 << r.IntN(45)))
		if slow := now + now*parley.Tick(c.Drift)/million; now < 1<<40 {
			if at := c.Shows(now) - c.Offset; at > slow || at < slow-1 {
				t.Fatalf("%+v shows %d at %d", c, at, now)
			}
		}
		target := c.Shows(now) + parley.Tick(r.Int64N(5000))
		when := c.When(target)
		if c.Shows(when) < target || when > 0 && c.Shows(when-1) >= target {
			t.Fatalf("%+v shows %d at %d, and %d one before", c, c.Shows(when), when, c.Shows(when-1))
		}
	}
	for _, c := range []Clock{{}, {Drift: 1}, {Drift: 1 - million}, {Drift: million, Offset: -5}} {
		if c.When(math.MaxInt64) != math.MaxInt64 || c.When(math.MaxInt64-10) < math.MaxInt64/3 ||
			c.Drift > -2 && c.Shows(math.MaxInt64-10) < math.MaxInt64-20 || c.Shows(math.MaxInt64-10) < 0 {
			t.Errorf("%+v: %d %d", c, c.When(math.MaxInt64-10), c.Shows(math.MaxInt64-10))
		}
		if shown := c.Shows(-200); shown != c.Offset-200 || c.When(shown) != -200 {
			t.Errorf("%+v shows %d at -200, and that at %d", c, shown, c.When(shown))
		}
	}
}
