package byzantine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// trouble is a run in which more than m processes are out at times, and all are well from time calm on.
type trouble struct {
	*sim.Sim
	how  faulty.Behavior // of m processes
	m    int
	calm parley.Tick
	of   string

	restarted parley.Set
	began     uint64 // a restarted process has forgotten everything; here all had
}

func (r *trouble) look() {
	for _, h := range r.History.Restarts {
		if r.restarted.Add(h.At); r.restarted == r.Correct() {
			r.began = h.Order
		}
	}
}

// counts reports whether anything is demanded about an event. Nothing is while a liar may send different
// things to different members.
func (r *trouble) counts(h parley.ExternalEvent) bool {
	said := h.When >= r.calm || r.restarted == r.Correct() || r.how.Model != parley.SignedByzantineFaults
	return r.History.Correct(h.At) && h.Order >= r.began && said
}

// delivery is one position of the order.
type delivery struct {
	place uint64
	what  string
}

// alive demands that positions are used once, and are the same everywhere, and that finally all take part,
// with nothing left to propose.
func (r *trouble) alive(t *testing.T) (by map[delivery]parley.Set, places map[string][]uint64, last uint64) {
	t.Helper()
	if r.Stats.OutOfSteps {
		t.Fatalf("%s: it does not end: %v", r.of, r.Stats.Refused)
	}
	at, ended := make(map[uint64]string), make(map[parley.ID]uint64)
	by, places = make(map[delivery]parley.Set), make(map[string][]uint64)
	for _, d := range r.History.Deliveries {
		if !r.counts(d) {
			continue
		}
		one := delivery{d.Msg.Value, fmt.Sprintf("%d:%s", d.From, d.Msg.Body)}
		if was, ok := at[one.place]; ok && was != one.what || one.place <= ended[d.At] {
			t.Fatalf("%s: process %d delivers %s at %d, after %d, where another one delivers %s: %v", r.of, d.At, one.what,
				one.place, ended[d.At], was, r.Stats.Refused)
		}
		at[one.place], ended[d.At], last = one.what, one.place, max(last, one.place)
		who := by[one]
		if who.Len() == 0 {
			places[one.what] = append(places[one.what], one.place)
		}
		who.Add(d.At)
		by[one] = who
	}
	for id := range r.Correct().All() {
		if p := r.Machine(id).(*process); p.out || p.total != last || len(p.queue) > 0 {
			t.Fatalf("%s: process %d is out: %v, delivered %d of %d, %d requests wait, tried %d times, era %d: %v", r.of, id,
				p.out, p.total, last, len(p.queue), p.tries, p.cur.number, r.Stats.Refused)
		}
	}
	return by, places, last
}

// valid demands that requests made when all were well are delivered once, everywhere; that requests to a
// process that did not crash are delivered; and that a request is delivered again only if at most m of the
// processes that remember had delivered it.
func (r *trouble) valid(t *testing.T, by map[delivery]parley.Set, places map[string][]uint64) {
	t.Helper()
	for _, q := range r.History.Requests {
		if !r.counts(q) || q.When < r.calm && r.restarted.Has(q.At) {
			continue
		}
		what := fmt.Sprintf("%d:%s", q.At, q.Msg.Body)
		all := places[what]
		if len(all) == 0 {
			t.Fatalf("%s: %s, asked for at %d, is not delivered: %v", r.of, what, q.When, r.Stats.Refused)
		}
		slices.Sort(all)
		final := by[delivery{all[len(all)-1], what}]
		if q.When >= r.calm && (len(all) > 1 || final != r.Correct()) {
			t.Fatalf("%s: %s, of when all were well, is delivered at %d by %v", r.of, what, all, slices.Collect(final.All()))
		}
		if r.how.Name == faulty.Silent.Name && final.Len() <= r.m {
			t.Fatalf("%s: %s is delivered by %v alone", r.of, what, slices.Collect(final.All()))
		}
		for _, place := range all[:len(all)-1] {
			if one := by[delivery{place, what}].Minus(r.restarted); one.Len() > r.m && r.Stats.Pauses == 0 {
				t.Fatalf("%s: %s is delivered at %d, and before by %v", r.of, what, all, slices.Collect(one.All()))
			}
		}
	}
}

// period is the time between the three disturbances of a run of trouble.
const period = 300_000

// troubles makes runs of n processes, for some seeds: m behave in each possible way, and something happens to
// the others. It returns the highest number of an era.
func troubles(t *testing.T, n, m, seeds int, happens func(r *rand.Rand, opt *sim.Options, at parley.Tick, correct []parley.ID)) (most uint64) {
	t.Helper()
	for i, how := range append(faulty.Named(), ofEras) {
		for k := range max(1, seeds) {
			if how.Twin || seeds == 0 && i%3 != 1 {
				continue
			}
			seed := uint64(k + i)
			s := returns(seed, Config{N: n, M: m, Window: 8}, 4*period, func(r *rand.Rand, opt *sim.Options) {
				opt.Requests = slices.DeleteFunc(opt.Requests, func(sim.Request) bool { return r.IntN(8) > 0 })
				var correct []parley.ID
				for i, id := range r.Perm(n) {
					if i < m {
						opt.Faulty[parley.ID(id)] = how
					} else {
						correct = append(correct, parley.ID(id))
					}
				}
				for k := range parley.Tick(3) {
					happens(r, opt, 20_000+k*period, correct)
				}
			})
			run := trouble{Sim: s, how: how, m: m, calm: 3 * period, of: fmt.Sprintf("(%d,%d), %s, seed %d", n, m, how.Name, seed)}
			run.look()
			by, places, _ := run.alive(t)
			run.valid(t, by, places)
			for id := range s.Correct().All() {
				most = max(most, s.Machine(id).(*process).cur.number)
			}
		}
	}
	return most
}

// With m faulty processes, silent or lying, one or two correct ones that are late now and then put all out;
// the order recovers, time after time.
func TestLateBesideFaulty(t *testing.T) {
	for _, size := range [][3]int{{4, 1, 8}, {7, 2, 0}} {
		most := troubles(t, size[0], size[1], size[2], func(r *rand.Rand, opt *sim.Options, at parley.Tick, correct []parley.ID) {
			for id, how := range opt.Faulty { // a liar that sends different things to all begins when no process is out
				if how.Model == parley.SignedByzantineFaults && at < period {
					opt.Faulty[id] = from(2*period+150_000, how)
				}
			}
			for _, id := range correct[:1+opt.Seed%2] {
				for range 1 + r.IntN(3) {
					opt.Pauses = append(opt.Pauses, sim.Pause{
						At: id, From: at + parley.Tick(r.IntN(100_000)), For: parley.Tick(1000 + r.IntN(9000)),
					})
				}
			}
		})
		if most < 2*family {
			t.Errorf("%v: era %d at most", size, most)
		}
	}
}

// All restart after a crash, at once or one after the other, or m+1 of them.
func TestAllComeBack(t *testing.T) {
	for _, size := range [][3]int{{4, 1, 8}, {7, 2, 0}} {
		most := troubles(t, size[0], size[1], size[2], func(r *rand.Rand, opt *sim.Options, at parley.Tick, correct []parley.ID) {
			if opt.Seed%2 == 0 {
				correct = correct[:size[1]+1]
			}
			at += parley.Tick(r.IntN(10_000))
			for i, id := range correct {
				if opt.Seed%3 == 0 {
					at += parley.Tick(i * r.IntN(8000))
				}
				opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: at, Back: 10 + parley.Tick(r.IntN(20_000))})
			}
		})
		if most < 2*family {
			t.Errorf("%v: era %d at most", size, most)
		}
	}
}

// When all are disconnected for so long that they give up, a request wakes one, and that one wakes the
// others.
func TestWakes(t *testing.T) {
	for _, silent := range []bool{false, true} {
		s := returns(1, Config{N: 4, M: 1, Window: 8, Tries: 3}, 60_000, func(_ *rand.Rand, opt *sim.Options) {
			if silent {
				opt.Faulty[3] = faulty.Silent
			}
			opt.Links = []sim.Link{{From: parley.Everyone(4), To: parley.Everyone(4), Since: 20_000, Until: 2_000_000, Loss: 1}}
			opt.Requests = append(opt.Requests, sim.Request{At: 1, When: 2_100_000, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("late")}})
		})
		run := trouble{Sim: s, m: 1, calm: 2_000_000, of: fmt.Sprint("silent: ", silent)}
		by, places, _ := run.alive(t)
		run.valid(t, by, places)
	}
}

// No two eras have the same successor, and no two resets lead to the same era. Each successor is greater.
func TestNumbers(t *testing.T) {
	seen := make(map[uint64]bool)
	for _, e := range []uint64{0, 1, branch - 2, branch - 1, family, family + 1, family + branch - 1, family + branch, 2 * family} {
		next := successor(e)
		if seen[next] || next <= e || fresh(next) || !fresh(anew(e)) || anew(e) <= e || anew(e) > e+family {
			t.Errorf("behind %d comes %d, or %d anew", e, next, anew(e))
		}
		seen[next] = true
	}
	if fresh(0) || anew(3) != anew(family-1) {
		t.Error("the first era began anew, or there are two ways to do so")
	}
}

// What m claim moves the base by no more than the bound; what m+1 claim counts.
func TestBase(t *testing.T) {
	lie := []uint64{1 << 60, 1 << 60, 1 << 60, 1 << 60}
	for _, c := range []struct {
		totals          []uint64
		numbers         [][]uint64
		total           uint64
		last, delivered []uint64
	}{
		{make([]uint64, 4), [][]uint64{{0, 0, 0, 0}, nil, {0, 0, 0, 0}, {0, 0, 0, 0}}, 0, make([]uint64, 4), make([]uint64, 4)},
		{[]uint64{20, 30, 25, 0}, [][]uint64{{5, 9, 5, 5}, {9, 6, 5, 5}, {4, 4, 8, 5}, nil}, 30, []uint64{5, 6, 8, 5}, []uint64{5, 6, 5, 5}},
		{[]uint64{20, 0, 25, 1 << 60}, [][]uint64{{5, 9, 5, 5}, nil, {6, 4, 8, 5}, lie}, 25 + leap, []uint64{6, 9, 8, 1 << 60}, []uint64{6, 9, 8, 5}},
		{[]uint64{0, 20, 25, 30}, [][]uint64{{0, 0, 0, 0}, {5, 6, 7, 8}, {5, 6, 7, 8}, {5, 6, 7, 8}}, 30, []uint64{5, 6, 7, 8}, []uint64{5, 6, 7, 8}},
	} {
		total, last, delivered := base(1, c.totals, c.numbers)
		if total != c.total || !slices.Equal(last, c.last) || !slices.Equal(delivered, c.delivered) {
			t.Errorf("of %v, %v comes %d, %v, %v", c.totals, c.numbers, total, last, delivered)
		}
	}
}

// Messages of m processes put no process out, however often they ask, and reset nothing; m+1 that ask again
// put all out, and n-m that are out reset the order.
func TestAsksAgain(t *testing.T) {
	p, s, _ := after(t, 4, 1)
	say := func(from parley.ID, m parley.Msg) { p.Receive(s, from, m) }
	for range 5 {
		say(3, parley.Msg{Kind: Where})
		say(3, parley.Msg{Kind: Join, Seq: 7})
	}
	say(3, parley.Msg{Kind: Ready, Value: anew(0), Seq: 1})
	say(2, parley.Msg{Kind: Where})
	if say(2, parley.Msg{Kind: Join, Seq: 8}); p.out || !p.few() {
		t.Fatalf("out: %v", p.out)
	}
	say(2, parley.Msg{Kind: Ready, Value: 0}) // it is back
	say(2, parley.Msg{Kind: Where})
	say(2, parley.Msg{Kind: Join, Seq: 8})
	if p.out {
		t.Fatal("out, for one that was let in between")
	}
	if say(2, parley.Msg{Kind: Join, Seq: 8}); !p.out || p.next != nil {
		t.Fatalf("out: %v", p.out)
	}
	s.Now += 2000
	if p.Timeout(s, seek); p.next == nil || p.next.number != anew(0) || !p.next.line.Paused() {
		t.Fatal("nothing begins anew")
	}
	p.Receive(s, 1, parley.Msg{Kind: Ready, Value: anew(0), Seq: 1})
	if p.next.line.Paused() {
		t.Error("it does not begin")
	}
}

// A frame of a reset era may arrive before the messages of those that are ready for it: it is kept, one for
// each process.
func TestEarly(t *testing.T) {
	p, s, h := after(t, 4, 1)
	frame := func(era uint64, body []byte) {
		s.Epoch = uint32(era)
		p.Receive(s, 2, parley.Msg{Kind: lockstep.Frame, Value: 1, Body: body})
		s.Epoch = 0
	}
	body := parley.AppendMsg(nil, 0, parley.Msg{Kind: Batch, Body: claim(7, make([]uint64, 4))})
	frame(anew(0), body)
	if len(h.why) != 0 {
		t.Fatalf("%q", h.why)
	}
	frame(anew(0)+1, body)
	frame(anew(0), make([]byte, p.c.longest(0)+1))
	if len(h.why) != 2 {
		t.Fatalf("%q", h.why)
	}
	for id := range parley.ID(3) {
		p.Receive(s, id+1, parley.Msg{Kind: Ready, Value: anew(0), Seq: 1})
	}
	if !p.out || p.next == nil || p.next.number != anew(0) || p.next.line.Paused() || p.early[2].number != 0 {
		t.Fatal("it takes no part")
	}
	h.why = nil
	frame(anew(0), body)
	if len(h.why) != 1 || h.why[0] != "second frame of a round" {
		t.Errorf("%q", h.why)
	}
}

// Fewer than n-m processes reset nothing, and neither do claims of fewer than n-m.
func TestTooFew(t *testing.T) {
	p, s, h := after(t, 4, 1)
	p.cur.lost = true
	p.progress(s)
	for range 4 {
		p.Receive(s, 3, parley.Msg{Kind: Where})
		s.Now += 100_000
		if p.Timeout(s, seek); p.next.number != 1 {
			t.Fatalf("era %d begins with two that are out", p.next.number)
		}
	}
	p.Receive(s, 2, parley.Msg{Kind: Where})
	s.Now += 100_000
	if p.Timeout(s, seek); p.next.number != anew(0) {
		t.Fatalf("era %d", p.next.number)
	}
	said := func(of parley.ID, total uint64) parley.Effect {
		return parley.Effect{Op: parley.OpDeliver, To: of, Msg: parley.Msg{Kind: parley.Carried, Origin: of, Body: claim(total, p.numbers)}}
	}
	p.next.SlotDone(s, 1, []parley.Effect{said(0, 4), said(2, 7)})
	if h.why = nil; !p.out || p.next.bad() {
		t.Fatal("in, or out, before there was time")
	}
	if p.progress(s); !p.out || !p.next.bad() || !slices.Equal(h.why, []string{"too few claims"}) {
		t.Fatalf("out: %v, %q", p.out, h.why)
	}
	p.attend(s, 2*family)
	p.next.SlotDone(s, 1, []parley.Effect{said(0, 4), said(2, 7), said(3, 5)})
	if p.progress(s); p.out || p.total != 7 || p.cur.number != 2*family || p.cur.delivered != 1 {
		t.Errorf("out: %v, %d delivered, era %d", p.out, p.total, p.cur.number)
	}
}

// A request whose number is not the next one is left out, because a late one may be in flight; a process that
// was late with some proposes them again, which it need not know.
func TestLateBatch(t *testing.T) {
	p, s, _ := after(t, 4, 1)
	total, own := p.total, p.numbers[0]
	p.Request(s, parley.Msg{Kind: parley.Carried, Body: []byte("late")})
	slot := p.cur.line.Opened()
	if p.sent != 1 || len(p.said) != 1 || p.said[0].last != own+1 || p.said[0].slot != slot {
		t.Fatalf("%d sent, %v", p.sent, p.said)
	}
	over := func(slot uint64, of parley.ID, first uint64) {
		p.cur.SlotDone(s, slot, []parley.Effect{{Op: parley.OpDeliver, To: of, Msg: parley.Msg{Kind: parley.Carried, Origin: of,
			Body: encode(first, [][]byte{[]byte("x")})}}})
		p.deliver(s)
	}
	if over(slot, 1, p.numbers[1]+2); p.total != total || p.sent != 0 || len(p.queue) != 1 {
		t.Fatalf("%d delivered, %d of %d sent", p.total-total, p.sent, len(p.queue))
	}
	p.call(s)
	if next := p.cur.line.Opened(); next != slot+1 || len(p.said) != 1 || p.said[0].last != own+1 || p.said[0].slot != next {
		t.Fatalf("slot %d, %v", next, p.said)
	}
	if over(slot+1, 0, own+1); p.total != total+1 || len(p.queue) != 0 || p.sent != 0 || len(p.said) != 0 {
		t.Errorf("%d delivered, %d wait, %d sent, %v", p.total-total, len(p.queue), p.sent, p.said)
	}
}

// A process that knows a late era, which most have forgotten in a crash, follows them to an early one.
func TestComesDown(t *testing.T) {
	p, s, _ := after(t, 4, 1)
	for i := range p.ready {
		p.ready[i] = 3 * family
	}
	for _, id := range []parley.ID{1, 2} {
		p.Receive(s, id, parley.Msg{Kind: Where})
	}
	p.tries, s.Now = 1, s.Now+2000
	if p.Timeout(s, seek); !p.out || p.ready[0] != anew(0) || p.next == nil || p.next.number != anew(0) {
		t.Errorf("out: %v, it is ready for %d", p.out, p.ready[0])
	}
}

// Where a branch of eras ends, the next one is far: a liar that names one in between is not believed together
// with a correct process that has moved on, and puts no process out.
func TestLiarBetweenBranches(t *testing.T) {
	p, s, _ := after(t, 8, 1)
	p.cur.number = branch - 1
	for id := range p.ready {
		p.ready[id] = p.cur.number
	}
	next := successor(p.cur.number)
	p.hear(s, 3, parley.Msg{Kind: Ready, Value: (p.cur.number + next) / 2})
	p.hear(s, 1, parley.Msg{Kind: Ready, Value: next})
	p.progress(s)
	if p.out || p.cur.lost || p.known() != p.cur.number {
		t.Errorf("out: %v, lost: %v, era %d is known", p.out, p.cur.lost, p.known())
	}
}
