package byzantine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// returns runs processes that broadcast until a time.
func returns(seed uint64, c Config, until parley.Tick, change func(r *rand.Rand, opt *sim.Options)) *sim.Sim {
	r := rand.New(rand.NewPCG(seed, 31))
	opt := sim.Options{
		Protocol: New(c, lockstep.Called), Seed: seed, Faulty: make(map[parley.ID]faulty.Behavior), Steps: 1 << 20,
	}
	for id := range parley.ID(c.N) {
		k := 0
		for at := parley.Tick(r.IntN(2000)); at < until; at += parley.Tick(1 + r.IntN(4000)) {
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: at, Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
			k++
		}
	}
	change(r, &opt)
	return sim.Run(opt)
}

// places demands that what is delivered at a position of the order is the same at all correct processes, that
// positions grow by one except where a process was out, and that finally all take part, at the same position.
// It returns the last position and how often some were skipped.
func places(t *testing.T, s *sim.Sim, of string) (last uint64, gaps int) {
	t.Helper()
	if s.Stats.OutOfSteps {
		t.Fatalf("%s: it does not end: %v", of, s.Stats.Refused)
	}
	at := make(map[uint64]string)
	ended := make(map[parley.ID]uint64)
	for _, d := range s.History.Deliveries {
		if !s.History.Correct(d.At) {
			continue
		}
		place, what := d.Msg.Value, fmt.Sprintf("%d:%s", d.From, d.Msg.Body)
		if was, ok := at[place]; ok && was != what {
			t.Fatalf("%s: process %d delivers %s at %d, and another one %s: %v", of, d.At, what, place, was, s.Stats.Refused)
		}
		at[place] = what
		if place <= ended[d.At] {
			t.Fatalf("%s: process %d delivers place %d after %d", of, d.At, place, ended[d.At])
		}
		if place != ended[d.At]+1 {
			gaps++
		}
		ended[d.At] = place
		last = max(last, place)
	}
	seen := make(map[string]bool)
	for place, what := range at {
		if seen[what] {
			t.Fatalf("%s: %s is delivered twice, again at %d", of, what, place)
		}
		seen[what] = true
	}
	for id := range s.Correct().All() {
		if p := s.Machine(id).(*process); p.out || p.total != last || len(p.queue) > 0 {
			t.Fatalf("%s: process %d is out: %v, delivered %d of %d, %d requests wait, era %d: %v", of, id, p.out, p.total,
				last, len(p.queue), p.cur.number, s.Stats.Refused)
		}
	}
	return last, gaps
}

// from makes a liar honest until a time.
func from(when parley.Tick, how faulty.Behavior) faulty.Behavior {
	tell, choose, hear := how.Tell, how.Choose, how.Hear
	if choose != nil {
		how.Choose = func(s *parley.Step, t *parley.Turn, k, n int) int {
			if s.Now < when {
				return 0
			}
			return choose(s, t, k, n)
		}
	}
	if tell != nil {
		how.Tell = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			if s.Now < when {
				return t.Honest
			}
			return tell(s, t)
		}
	}
	if hear != nil {
		how.Hear = func(s *parley.Step, from parley.ID, m parley.Msg) bool { return s.Now < when || hear(s, from, m) }
	}
	return how
}

// A process that crashed, or was paused at the end of a round, rejoins, whatever liars say about eras: it
// delivers the rest at the same positions, and its own requests too.
func TestRejoins(t *testing.T) {
	for name, when := range map[string]parley.Tick{"at once": 0, "when it is back": 60_000} {
		t.Run(name, func(t *testing.T) {
			gaps := 0
			for seed := range uint64(60) {
				s := returns(seed, Config{N: 4, M: 1, Window: 4}, 100_000, func(r *rand.Rand, opt *sim.Options) {
					liar, away := parley.ID(seed%4), parley.ID((seed+1+seed/4%3)%4)
					how := ofEras
					if when > 0 {
						named := slices.DeleteFunc(faulty.Named(), func(b faulty.Behavior) bool { return b.Twin })
						how = from(when, named[r.IntN(len(named))])
					}
					opt.Faulty[liar] = how
					if at := parley.Tick(5000 + r.IntN(20_000)); seed%2 == 0 {
						opt.Crashes = []sim.Crash{{At: away, When: at, Back: parley.Tick(10 + r.IntN(8000))}}
					} else { // in the middle of a slot
						opt.Requests = append(opt.Requests, sim.Request{At: away, When: at - 100, Msg: problem.Request([]byte("slot"))})
						opt.Pauses = []sim.Pause{{At: away, From: at, For: parley.Tick(4000 + r.IntN(8000))}}
					}
				})
				last, n := places(t, s, fmt.Sprint("seed ", seed))
				gaps += n
				if last < 60 {
					t.Fatalf("seed %d: %d deliveries", seed, last)
				}
			}
			if gaps < 20 {
				t.Errorf("%d returns", gaps)
			}
		})
	}
}

// ofEras lies only about eras, and is correct in slots.
var ofEras = faulty.Behavior{Name: "lies about eras", Model: parley.OralByzantineFaults,
	Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, one := range t.Honest {
			switch one.Msg.Kind {
			case Where, Join, Ready, State:
				out = append(out, lieEra(s, one)...)
			default:
				out = append(out, one)
			}
		}
		return out
	}}

// Seven processes: one rejoins, and then another one, while one lies in all that it sends.
func TestRejoinsSeven(t *testing.T) {
	for seed := range uint64(8) {
		s := returns(seed, Config{N: 7, M: 2, Window: 8}, 250_000, func(r *rand.Rand, opt *sim.Options) {
			who := r.Perm(7)
			named := faulty.Named()
			opt.Faulty[parley.ID(who[0])] = named[r.IntN(len(named))]
			opt.Crashes = []sim.Crash{{At: parley.ID(who[1]), When: 10_000, Back: 100}, {At: parley.ID(who[2]), When: 150_000, Back: 5000}}
		})
		if _, gaps := places(t, s, fmt.Sprint("seed ", seed)); gaps != 2 {
			t.Errorf("seed %d: %d returns", seed, gaps)
		}
	}
}

// asksOn asks to join with every message that it sends.
var asksOn = faulty.Behavior{Name: "asks on", Model: parley.OralByzantineFaults,
	Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := t.Honest
		for era := range 40 {
			m := parley.Msg{Kind: Join, Value: uint64(era), Seq: uint64(s.Now/1000) + 1}
			out = append(out, parley.Outgoing{Msg: m})
		}
		return out
	}}

// A liar that asks to join without end ends an era at most once in the time in which ten slots certainly end;
// all that is broadcast is delivered.
func TestAsksOn(t *testing.T) {
	for seed := range uint64(6) {
		const end = 400_000
		s := returns(seed, Config{N: 4, M: 1, Window: 8}, end, func(_ *rand.Rand, opt *sim.Options) {
			opt.Faulty[parley.ID(seed%4)] = asksOn
		})
		if _, gaps := places(t, s, fmt.Sprint("seed ", seed)); gaps > 0 {
			t.Errorf("seed %d: %d are out", seed, gaps)
		}
		p := s.Machine(parley.ID((seed + 1) % 4)).(*process)
		if most := end/uint64(rest*3*2000) + 2; p.cur.number == 0 || p.cur.number > most {
			t.Errorf("seed %d: %d eras: at most %d", seed, p.cur.number, most)
		}
	}
}

// The wishes of m processes end no era, however often they are repeated, and whether for one incarnation or
// for many; those of m+1 for one incarnation do, after the slot in which the last one was delivered.
func TestWishes(t *testing.T) {
	p, s, _ := after(t, 4, 1)
	say := func(of parley.ID, w ...wish) {
		p.cur.SlotDone(s, p.cur.done+1, []parley.Effect{{Op: parley.OpDeliver, To: of, Msg: parley.Msg{Kind: parley.Carried, Origin: of,
			Body: encode(p.numbers[of]+1, [][]byte{[]byte("x")}, w...)}}})
		p.progress(s)
	}
	total := p.total
	say(1, wish{3, 7})
	say(1, wish{3, 7})
	say(1, wish{3, 8})
	say(2, wish{3, 9}) // another incarnation
	say(2, wish{3, 7}) // for which 1 no longer wishes
	say(2, wish{2, 8}, wish{200, 8})
	if p.cur.number != 0 || p.total != total+6 {
		t.Fatalf("era %d, %d delivered", p.cur.number, p.total-total)
	}
	s.Effects = nil
	say(0, wish{3, 8})
	if p.cur.number != 1 || p.total != total+7 || p.let[3] != 8 || p.let[2] != 0 || !p.cur.line.Paused() {
		t.Fatalf("era %d, %d delivered, let in %v", p.cur.number, p.total-total, p.let)
	}
	var said []parley.Kind
	for _, e := range s.Effects {
		if e.Op == parley.OpSend {
			said = append(said, e.Msg.Kind)
		}
	}
	if !slices.Equal(said, []parley.Kind{Ready, State}) || s.Effects[len(s.Effects)-1].To != 3 {
		t.Errorf("%+v", s.Effects)
	}
}

// An era begins when 2m+1 are ready for it, and not before: liars alone cannot begin it.
func TestReady(t *testing.T) {
	p := New(Config{N: 7, M: 2, Window: 4}, lockstep.Called).New(0).(*process)
	s := &parley.Step{Self: 0, N: 7, Now: 1, Host: &host{}}
	count := func() (n int) {
		for _, e := range s.Effects {
			if e.Op == parley.OpSend && e.Msg.Kind == Ready {
				n++
			}
		}
		return n
	}
	p.next = p.newEra(1)
	ready := func(from parley.ID, number uint64) { p.Receive(s, from, parley.Msg{Kind: Ready, Value: number}) }
	ready(5, 1<<31)
	ready(6, 9)
	ready(6, 9)
	if count() != 0 || !p.next.line.Paused() {
		t.Fatal("liars make it ready")
	}
	if ready(1, 1); count() != 0 {
		t.Fatal("one counts that is ready for quite another one")
	}
	ready(2, 1) // which shows that a correct process is
	if count() != 1 || p.ready[0] != 1 || !p.next.line.Paused() {
		t.Fatalf("it is ready for %d, said so %d times, and begins: %v", p.ready[0], count(), !p.next.line.Paused())
	}
	if ready(3, 1); p.next.line.Paused() || p.out {
		t.Error("it does not begin")
	}
	ready(1, 2)
	ready(2, 2) // behind by two eras when one correct process is ready for the second
	if !p.out {
		t.Error("it does not see that it is behind")
	}
}

// A process believes what m+1 report, to this incarnation, about the beginning of an era.
func TestState(t *testing.T) {
	p := New(Config{N: 4, M: 1, Window: 4}, lockstep.Called).New(0).(*process)
	h := &host{}
	s := &parley.Step{Self: 0, N: 4, Now: 500, Host: h, Restart: true}
	p.Start(s)
	s.Restart = false
	p.Timeout(s, seek)
	numbers := func(own uint64) []byte { return encodeState(30, []uint64{own, 5, 5, 5}) }
	say := func(from parley.ID, m parley.Msg) { p.Receive(s, from, m) }
	right := parley.Msg{Kind: State, Value: 1, Seq: p.life, Body: numbers(15)}
	for from, change := range []func(m *parley.Msg){
		func(m *parley.Msg) { m.Seq-- }, func(m *parley.Msg) { m.Value++ }, func(m *parley.Msg) { m.Body = numbers(16) }, func(*parley.Msg) {},
	} {
		m := right
		change(&m)
		say(parley.ID(max(1, from)), m)
	}
	if len(h.why) != 2 || !p.out {
		t.Fatalf("refused %q, out %v", h.why, p.out)
	}
	if say(3, right); !p.out || len(h.why) != 3 {
		t.Fatalf("one counts twice: %q", h.why)
	}
	if say(1, right); p.out || p.total != 30 || p.numbers[0] != 15 || p.cur.number != 1 {
		t.Fatalf("out %v, %d delivered, %d own, era %d", p.out, p.total, p.numbers[0], p.cur.number)
	}
}

// The bytes of kept batches are bounded, too: the batches delivered first are dropped first.
func TestKeptBytes(t *testing.T) {
	p := New(Config{N: 4, M: 1, Window: 64, Batch: 1000, Flight: 1000}, lockstep.Called).New(0).(*process)
	s := &parley.Step{Self: 0, N: 4, Now: 1, Host: &host{}}
	for k := range uint64(100) {
		body := encode(k+1, [][]byte{make([]byte, 900)})
		p.cur.SlotDone(s, k+1, []parley.Effect{{Op: parley.OpDeliver, To: 1, Msg: parley.Msg{Kind: parley.Carried, Origin: 1, Body: body}}})
		p.progress(s)
		kept := 0
		for i := range p.cur.ring {
			for _, e := range p.cur.ring[i].entries {
				kept += len(e.body)
			}
		}
		if kept > 8000 || kept != p.cur.kept || k > 20 && kept < 7000 {
			t.Fatalf("slot %d: %d bytes are kept, and %d counted", k, kept, p.cur.kept)
		}
	}
}
