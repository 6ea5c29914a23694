package timestamp_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/sim"
)

var seeds = flag.Int("seeds", 200, "runs of each size in TestStorm")

// storm draws a run in which processes crash and come back, links lose all for a
// time or a little always, and living processes are suspected. From the time heal on
// all is well, but for what is down.
func storm(seed uint64, c timestamp.Config) sim.Options {
	r := rand.New(rand.NewPCG(seed, 99))
	n := c.N
	id := func() parley.ID { return parley.ID(r.IntN(n)) }
	const heal = 30_000
	when := func() parley.Tick { return 1 + parley.Tick(r.IntN(heal)) }
	opt := sim.Options{Protocol: timestamp.New(c), Seed: seed, FIFO: true, Heal: heal, Until: 120_000}
	for k := range 4 + r.IntN(12) {
		at := id()
		opt.Requests = append(opt.Requests, sim.Request{
			At: at, When: when(), Msg: problem.Request(fmt.Appendf(nil, "%d.%d", at, k)),
		})
	}
	// Bursts, in which many are under way when something happens.
	for k := range r.IntN(8) {
		at, start := id(), when()
		for i := range 3 {
			opt.Requests = append(opt.Requests, sim.Request{
				At: at, When: start, Msg: problem.Request(fmt.Appendf(nil, "%d.b%d.%d", at, k, i)),
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
		q := sim.Suspicion{At: id(), Of: id(), When: when()}
		opt.Suspicions = append(opt.Suspicions, q)
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
var safe = []string{
	group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, timestamp.OneSequence,
	problem.Integrity, problem.UniformTotalOrder,
}

// storms runs many storms of a configuration, sums up how they ended and demands that
// all was right.
func storms(t *testing.T, c timestamp.Config) {
	t.Helper()
	var sum outcome
	stuck := 0
	properties := slices.DeleteFunc(timestamp.New(c).Properties, func(p parley.Property) bool {
		return !slices.Contains(safe, p.Name)
	})
	var s *sim.Sim
	for seed := range uint64(*seeds) {
		if opt := storm(seed, c); s == nil {
			s = sim.New(opt)
		} else {
			s.Reset(opt)
		}
		s.Run()
		for _, p := range properties {
			if err := p.Check(&s.History); err != nil {
				t.Fatalf("n = %d, seed %d: %s: %v", c.N, seed, p.Name, err)
			}
		}
		kept(t, seed, timestamp.New(c), s)
		o, err := complete(s, c.Durable)
		if err == nil && c.Durable {
			err = noneMissed(&s.History)
		}
		if err != nil {
			t.Fatalf("n = %d, seed %d: %v", c.N, seed, err)
		}
		if o.stuck {
			stuck++
		}
		sum.views += o.views
		sum.outs += o.outs
		sum.joins += o.joins
		sum.restarts += o.restarts
		sum.deliveries += o.deliveries
	}
	t.Logf("n = %d: %d runs, %d without a majority in the end; %d views, %d excluded, %d restarts, %d snapshots, "+
		"%d deliveries", c.N, *seeds, stuck, sum.views, sum.outs, sum.restarts, sum.joins, sum.deliveries)
	if *seeds >= 100 && (sum.outs == 0 || sum.restarts == 0 || 10*sum.deliveries < *seeds || c.Return && sum.joins == 0) {
		t.Error("nothing happened in these storms")
	}
}

// What anyone delivers, in whatever storm, is a beginning of one sequence, in agreed
// views; and afterwards all goes on if a majority of all processes is left.
func TestStorm(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true}})
	}
}

// So it is where not every word is believed, although nobody says what is wrong.
func TestStormDoubting(t *testing.T) {
	for _, n := range []int{4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Liars: 1}})
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Liars: 1, Durable: true}})
	}
}

// kept demands that what is promised of a run holds.
func kept(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim) (promised parley.Set) {
	t.Helper()
	for i, v := range parley.Judge(p, s.Assumptions(), &s.History) {
		if v.Violated() {
			t.Fatalf("n = %d, seed %d: %s is promised: %v", p.N, seed, v.Property.Name, v.Broken)
		}
		if v.Promise.Holds {
			promised.Add(parley.ID(i))
		}
	}
	return promised
}

// Those who are excluded and do not return: FIFO order is promised all the same.
func TestPromisesOfExclusion(t *testing.T) {
	outs, fifo := 0, 0
	for seed := range uint64(150) {
		opt := storm(seed, timestamp.Config{Config: group.Config{N: 3 + int(seed%3)}})
		for i := range opt.Crashes {
			opt.Crashes[i].Back = 0
		}
		s := sim.Run(opt)
		promised := kept(t, seed, opt.Protocol, s)
		out := slices.ContainsFunc(s.History.Indications, func(e parley.Happening) bool { return e.Msg.Kind == group.Out })
		at := slices.IndexFunc(opt.Protocol.Properties, func(p parley.Property) bool { return p.Name == problem.FIFOOrder })
		if out {
			outs++
			if promised.Has(parley.ID(at)) {
				fifo++
			}
		}
	}
	if outs < 20 || fifo < outs {
		t.Errorf("in %d runs somebody was excluded, and in %d of these FIFO order was promised", outs, fifo)
	}
}

// The same with acknowledgements in batches and few messages under way.
func TestStormInBatches(t *testing.T) {
	for _, n := range []int{3, 4} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true}, Window: 2, Hold: 400})
	}
}

// The same where a process that comes back goes on from its log.
func TestStormDurable(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Durable: true, Compact: 6}})
		storms(t, timestamp.Config{Config: group.Config{
			N: n, Return: true, Durable: true, Compact: 6, Keep: 4, KeepBytes: 1 << 10,
		}})
	}
}

// noneMissed demands that a process which comes back begins with no later position
// than the next one: what is above it remembers all that was delivered before.
func noneMissed(h *parley.History) error {
	last, restarts, told := make([]uint64, h.N), h.Restarts, h.Indications
	fresh := make([]bool, h.N)
	for _, d := range h.Deliveries {
		for ; len(restarts) > 0 && restarts[0].Order < d.Order; restarts = restarts[1:] {
			fresh[restarts[0].At] = true
		}
		for ; len(told) > 0 && told[0].Order < d.Order; told = told[1:] {
			if told[0].Msg.Kind == group.Restored {
				last[told[0].At], fresh[told[0].At] = told[0].Msg.Seq, false
			}
		}
		if fresh[d.At] && d.Msg.Seq > last[d.At]+1 {
			return fmt.Errorf("%s is back and delivers position %d after position %d", h.Name(d.At), d.Msg.Seq, last[d.At])
		}
		last[d.At], fresh[d.At] = max(last[d.At], d.Msg.Seq), false
	}
	return nil
}

// outcome is how a run ended.
type outcome struct {
	views, outs, joins, restarts, deliveries int
	stuck                                    bool // a majority of all is no more
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
	o.restarts, o.deliveries = len(h.Restarts), len(h.Deliveries)
	born := make([]uint64, h.N) // the order of the beginning of the last life
	for _, r := range h.Restarts {
		born[r.At] = r.Order
	}
	var last parley.Msg
	for _, e := range h.Indications {
		switch e.Msg.Kind {
		case parley.View:
			if o.views++; e.Msg.Seq > last.Seq {
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
	in, at := make([]uint64, h.N), make([]uint64, h.N) // which view, and at which position
	living, top := 0, uint64(0)
	for id := range s.Correct().All() {
		if m := s.Machine(id); shown(m, "stage") == 1 {
			in[id], at[id] = shown(m, "view"), shown(m, "position")
		}
		if in[id] == last.Seq {
			top = max(top, at[id])
		}
		if in[id] == last.Seq || intact(h, id, durable) {
			living++
		}
	}
	if 2*living <= h.N {
		o.stuck = true
		return o, nil
	}
	return o, alike(s, last.Seq, top, in, at, born)
}

// intact tells whether a process knows what it ever knew: it never came back, or from its
// log.
func intact(h *parley.History, id parley.ID, durable bool) bool {
	return !slices.ContainsFunc(h.Restarts, func(r parley.Happening) bool {
		return r.At == id && (!durable || r.Msg.Value == 1)
	})
}

func alike(s *sim.Sim, view, position uint64, in, at, born []uint64) error {
	h := &s.History
	delivered := make(map[string]bool)
	for _, d := range h.Deliveries {
		delivered[string(d.Msg.Body)] = true
	}
	for id := range s.Correct().All() {
		switch {
		case in[id] != view:
			return fmt.Errorf("%s is in view %d in the end, and others in view %d", h.Name(id), in[id], view)
		case at[id] != position:
			return fmt.Errorf("%s has come to position %d, and others to %d", h.Name(id), at[id], position)
		}
	}
	for _, q := range h.Requests {
		if h.Correct(q.At) && q.Order > born[q.At] && !delivered[string(q.Msg.Body)] {
			return fmt.Errorf("%s of %s, which lives on, was not delivered", q.Msg.Body, h.Name(q.At))
		}
	}
	return nil
}
