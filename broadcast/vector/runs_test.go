package vector_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/vector"
	"parley/membership/group"
	"parley/sim"
)

// storm draws a run in which processes crash and come back, links lose all for a time or a
// little always, and living processes are suspected. From the time heal on all is well,
// but for what is down.
func storm(seed uint64, c vector.Config) sim.Options {
	r := rand.New(rand.NewPCG(seed, 99))
	n := c.N
	id := func() parley.ID { return parley.ID(r.IntN(n)) }
	const heal = 30_000
	when := func() parley.Tick { return 1 + parley.Tick(r.IntN(heal)) }
	opt := sim.Options{Protocol: vector.New(c), Seed: seed, FIFO: true, Heal: heal, Until: 120_000}
	for k := range 4 + r.IntN(12) {
		at, start := id(), when()
		for i := range 1 + r.IntN(3) {
			opt.Requests = append(opt.Requests, sim.Request{
				At: at, When: start, Msg: problem.Request(fmt.Appendf(nil, "%d.%d.%d", at, k, i)),
			})
		}
	}
	for range r.IntN(3) {
		crash := sim.Crash{At: id(), When: when(), Effects: r.IntN(2 * n)}
		if r.IntN(2) == 0 {
			crash.Back = 1 + parley.Tick(r.IntN(10_000))
			crash.LostDisk = r.IntN(3) == 0
		}
		opt.Crashes = append(opt.Crashes, crash)
	}
	for range r.IntN(4) {
		opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: id(), Of: id(), When: when()})
	}
	for range r.IntN(3) {
		since := when()
		l := sim.Link{
			From: parley.SetOf(id(), id()), To: parley.SetOf(id(), id()),
			Since: since, Until: since + 1 + parley.Tick(r.IntN(4000)), Loss: 1,
		}
		if r.IntN(3) == 0 {
			l.Loss, l.Delay = 0, sim.Delay{Least: 1000, Most: 4000}
		}
		opt.Links = append(opt.Links, l)
	}
	if r.IntN(4) == 0 {
		opt.Loss = 0.02
	}
	return opt
}

// safe are the properties that hold whatever happens.
var safe = []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.Integrity}

// storms demands of many storms that all that is safe or promised holds, and that afterwards
// all go on together.
func storms(t *testing.T, c vector.Config, seeds uint64) {
	t.Helper()
	p := vector.New(c)
	var sum outcome
	for seed := range seeds {
		s := sim.Run(storm(seed, c))
		for _, v := range parley.Judge(p, s.Assumptions(), &s.History) {
			if v.Violated() || slices.Contains(safe, v.Property.Name) && v.Broken != nil {
				t.Fatalf("n = %d, %s, seed %d: %s: %v", c.N, c.Level, seed, v.Property.Name, v.Broken)
			}
		}
		o, err := complete(s, c.Durable)
		if err != nil {
			t.Fatalf("n = %d, %s, seed %d: %v", c.N, c.Level, seed, err)
		}
		sum.outs += o.outs
		sum.joins += o.joins
		sum.deliveries += o.deliveries
		sum.whole += o.whole
	}
	if sum.outs == 0 || sum.deliveries == 0 || sum.whole == 0 || c.Return && sum.joins == 0 {
		t.Errorf("nothing happened in these storms: %+v", sum)
	}
}

// Whatever happens, those who go on from one view to the next have delivered the same; and
// afterwards all goes on if a majority of the last view is left.
func TestStorm(t *testing.T) {
	for _, level := range levels {
		for _, n := range []int{3, 4, 5} {
			storms(t, vector.Config{Config: group.Config{N: n, Return: true}, Level: level}, 40)
		}
	}
}

// Those who are excluded and do not return.
func TestStormWithoutReturn(t *testing.T) {
	for _, level := range levels {
		storms(t, vector.Config{Config: group.Config{N: 4}, Level: level, Window: 2}, 40)
	}
}

// Acknowledgements that wait, and a small window.
func TestStormWithHold(t *testing.T) {
	for _, level := range levels {
		storms(t, vector.Config{Config: group.Config{N: 4, Return: true}, Level: level, Window: 2, Hold: 1500}, 40)
	}
}

// With a log a process goes on from where it crashed, and delivers again, in the same
// places, what it may have delivered before.
func TestStormDurable(t *testing.T) {
	for _, level := range levels {
		for _, compact := range []int{1, 8, 0} {
			c := vector.Config{Config: group.Config{N: 3, Durable: true, Return: true, Compact: compact}, Level: level}
			storms(t, c, 30)
			for seed := range uint64(20) {
				opt := storm(seed, c)
				for i := range opt.Crashes {
					opt.Crashes[i].Back = 500
				}
				if s := sim.Run(opt); samePlaces(&s.History) != nil {
					t.Fatalf("%s, seed %d: %v", level, seed, samePlaces(&s.History))
				}
			}
		}
	}
}

// samePlaces demands that a process delivers one message at each of its positions, unless
// it has joined in between.
func samePlaces(h *parley.History) error {
	at := make([]map[uint64]string, h.N)
	told := h.Indications
	for _, d := range h.Deliveries {
		for ; len(told) > 0 && told[0].Order < d.Order; told = told[1:] {
			if told[0].Msg.Kind == group.Restored {
				at[told[0].At] = nil
			}
		}
		if at[d.At] == nil {
			at[d.At] = make(map[uint64]string)
		}
		what := fmt.Sprintf("%d:%s", d.From, d.Msg.Body)
		if before, again := at[d.At][d.Msg.Seq]; again && before != what {
			return fmt.Errorf("%s delivers %s at position %d, where it delivered %s", h.Name(d.At), what, d.Msg.Seq, before)
		}
		at[d.At][d.Msg.Seq] = what
	}
	return nil
}

// Messages of all levels in one group: each comes after what its level says, and one of
// level Reliable waits for nothing.
func TestMixedLevels(t *testing.T) {
	overtook := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		opt := sim.Options{
			Protocol: vector.New(vector.Config{Config: group.Config{N: 4}}), Seed: seed, FIFO: true, Until: 60_000,
		}
		level := make(map[string]vector.Level)
		for k := range 12 {
			m := problem.Request(fmt.Appendf(nil, "m%d", k))
			m.Value = uint64(1 + r.IntN(4))
			level[string(m.Body)] = vector.Level(m.Value)
			opt.Requests = append(opt.Requests, sim.Request{
				At: parley.ID(r.IntN(4)), When: parley.Tick(r.IntN(6000)), Msg: m,
			})
		}
		s := sim.Run(opt)
		past := pasts(&s.History, level)
		done := make([][]string, 4)
		for _, d := range s.History.Deliveries {
			what := string(d.Msg.Body)
			for _, before := range past[what] {
				if slices.Contains(done[d.At], before) {
					continue
				}
				if level[what] >= vector.FIFO {
					t.Fatalf("seed %d: %d delivers %s (%s) before %s (%s)", seed, d.At, what, level[what], before, level[before])
				}
				overtook++
			}
			done[d.At] = append(done[d.At], what)
		}
		for id, all := range done {
			if len(all) != len(opt.Requests) {
				t.Fatalf("seed %d: %d delivers %v", seed, id, all)
			}
		}
	}
	if overtook == 0 {
		t.Error("no message overtook another one")
	}
}

// pasts are what must be delivered before each message by its level: of FIFO what its
// sender broadcast before, and of Causal moreover what it had delivered. For the others
// it is the same as for FIFO, and may be passed over.
func pasts(h *parley.History, level map[string]vector.Level) map[string][]string {
	past, sofar, got := make(map[string][]string), make([][]string, h.N), make([][]string, h.N)
	deliveries := h.Deliveries
	for _, q := range h.Requests {
		for ; len(deliveries) > 0 && deliveries[0].Order < q.Order; deliveries = deliveries[1:] {
			got[deliveries[0].At] = append(got[deliveries[0].At], string(deliveries[0].Msg.Body))
		}
		what := string(q.Msg.Body)
		past[what] = slices.Clone(sofar[q.At])
		if level[what] == vector.Causal {
			past[what] = append(past[what], got[q.At]...)
		}
		sofar[q.At] = append(sofar[q.At], what)
	}
	return past
}

// What a member of level Uniform has delivered all who stay deliver, although its sender
// and it are gone; with level Reliable there are runs in which they do not.
func TestUniformOrNot(t *testing.T) {
	for _, level := range []vector.Level{vector.Reliable, vector.Uniform} {
		lost := 0
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 3))
			opt := sim.Options{
				Protocol: vector.New(vector.Config{Config: group.Config{N: 5}, Level: level}),
				Seed:     seed, FIFO: true, Until: 60_000,
				Requests: []sim.Request{{At: 0, When: 2000, Msg: problem.Request([]byte("m"))}},
				Crashes: []sim.Crash{
					{At: 0, When: 2000, Effects: 1 + r.IntN(3)}, {At: 1, When: 2100 + parley.Tick(r.IntN(1200)), Effects: r.IntN(6)},
				},
			}
			s := sim.Run(opt)
			at := 0
			for _, d := range s.History.Deliveries {
				if s.History.Correct(d.At) {
					at++
				}
			}
			if len(s.History.Deliveries) > 0 && at != 3 {
				lost++
			}
		}
		if (level == vector.Uniform) != (lost == 0) {
			t.Errorf("%s: in %d runs what a member delivered was not delivered by all who stay", level, lost)
		}
	}
}

// intact tells whether a process knows what it ever knew: it never came back, or from its
// log.
func intact(h *parley.History, id parley.ID, durable bool) bool {
	return !slices.ContainsFunc(h.Restarts, func(r parley.Happening) bool {
		return r.At == id && (!durable || r.Msg.Value == 1)
	})
}

// outcome is how a run ended.
type outcome struct {
	outs, joins, deliveries int
	whole                   int // a majority of all lives on
}

// shown returns a variable of a machine as people see it, as a number.
func shown(m parley.Machine, name string) (number uint64) {
	for _, v := range parley.Show(m, 0) {
		if v.Name == name {
			_, _ = fmt.Sscan(v.Value, &number)
			return number
		}
	}
	panic("no variable " + name)
}

// complete demands, if more than half of all processes are up with what they knew, that all
// that are up are in the last view in the end, have come to the same position, and that what
// they asked for in their last life has been delivered.
func complete(s *sim.Sim, durable bool) (o outcome, err error) {
	h := &s.History
	o.deliveries = len(h.Deliveries)
	born := make([]uint64, h.N) // the order of the beginning of the last life
	for _, r := range h.Restarts {
		born[r.At] = r.Order
	}
	var last parley.Msg
	for _, e := range h.Indications {
		switch e.Msg.Kind {
		case parley.View:
			if e.Msg.Seq > last.Seq {
				last = e.Msg
			}
		case group.Out:
			o.outs++
			born[e.At] = max(born[e.At], e.Order)
		case group.Restored:
			o.joins++
			born[e.At] = max(born[e.At], e.Order)
		}
	}
	living, top := 0, uint64(0)
	in := func(id parley.ID) bool {
		m := s.Machine(id)
		return shown(m, "stage") == 1 && shown(m, "view") == last.Seq
	}
	for id := range s.Correct().All() {
		if in(id) {
			top = max(top, shown(s.Machine(id), "position"))
		}
		if in(id) || intact(h, id, durable) && shown(s.Machine(id), "stage") != 2 {
			living++
		}
	}
	if 2*living <= h.N {
		return o, nil
	}
	o.whole = 1
	delivered := make(map[string]bool)
	for _, d := range h.Deliveries {
		delivered[string(d.Msg.Body)] = true
	}
	for id := range s.Correct().All() {
		if !in(id) && shown(s.Machine(id), "stage") == 2 {
			continue // out for good
		}
		if !in(id) || shown(s.Machine(id), "position") != top {
			return o, fmt.Errorf("%s is not where the others are in the end", h.Name(id))
		}
	}
	for _, q := range h.Requests {
		if h.Correct(q.At) && q.Order > born[q.At] && in(q.At) && !delivered[string(q.Msg.Body)] {
			return o, fmt.Errorf("%s of %s, which lives on, was not delivered", q.Msg.Body, h.Name(q.At))
		}
	}
	return o, nil
}
