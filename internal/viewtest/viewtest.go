// Package viewtest helps to test broadcasts in views (membership/group). It makes runs in which faults of every kind
// occur for some time. Then the faults end, and it checks what must hold after them.
package viewtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

// Storm draws a run in which processes broadcast in bursts, crash and restart, links lose everything for a time or a
// few messages always, and running processes are suspected. From tick 30,000 on there are no faults, but some
// processes may be down.
func Storm(seed uint64, p parley.Protocol) sim.Options {
	r := rand.New(rand.NewPCG(seed, 99))
	id := func() parley.ID { return parley.ID(r.IntN(p.N)) }
	opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Heal: 30_000, Until: 120_000}
	when := func() parley.Tick { return 1 + parley.Tick(r.Int64N(int64(opt.Heal))) }
	for k := range 4 + r.IntN(16) {
		at, start := id(), when()
		for i := range 1 + r.IntN(3) {
			m := problem.Request(fmt.Appendf(nil, "%d.%d.%d", at, k, i))
			opt.Requests = append(opt.Requests, sim.Request{At: at, When: start, Msg: m})
		}
	}
	for range r.IntN(3) {
		crash := sim.Crash{At: id(), When: when(), Effects: r.IntN(2 * p.N)}
		if r.IntN(2) == 0 {
			crash.Back, crash.LostDisk = 1+parley.Tick(r.IntN(10_000)), r.IntN(3) == 0
		}
		opt.Crashes = append(opt.Crashes, crash)
	}
	for range r.IntN(4) {
		opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: id(), Of: id(), When: when()})
	}
	for range r.IntN(3) {
		l := sim.Link{From: parley.SetOf(id(), id()), To: parley.SetOf(id(), id()), Since: when(), Loss: 1}
		l.Until = l.Since + 1 + parley.Tick(r.IntN(4000))
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

// Storms demands of many storms that the safe properties and the promised ones hold, that also returns no error
// unless it is nil, and that the group continues in the end: see Continues.
func Storms(
	t *testing.T, p parley.Protocol, c group.Config, seeds int, safe []string, also func(*parley.History) error,
) {
	t.Helper()
	var outs, joins, deliveries, whole int
	for seed := range uint64(seeds) {
		s := sim.Run(Storm(seed, p))
		for _, name := range parleytest.Judge(t, p, s, seed) {
			if slices.Contains(safe, name) {
				t.Fatalf("n = %d, seed %d: %s does not hold", p.N, seed, name)
			}
		}
		majority, err := Continues(s, c)
		if err == nil && also != nil {
			err = also(&s.History)
		}
		if err != nil {
			t.Fatalf("n = %d, seed %d: %v", p.N, seed, err)
		}
		if majority {
			whole++
		}
		deliveries += len(s.History.Deliveries)
		outs += Count(&s.History, group.Excluded)
		joins += Count(&s.History, group.SnapshotInstalled)
	}
	if outs == 0 || deliveries == 0 || whole == 0 || c.Return && joins == 0 {
		t.Errorf("nothing happened in these storms: %d exclusions, %d joins, %d deliveries, %d times a majority in the end",
			outs, joins, deliveries, whole)
	}
}

// Count returns the number of indications of a kind in a run.
func Count(h *parley.History, kind parley.Kind) (n int) {
	for _, e := range h.Indications {
		if e.Msg.Kind == kind {
			n++
		}
	}
	return n
}

// Continues returns an error unless the group has continued in the end: if more than half of all processes are up
// with their state, all processes that are up must be in the last view, unless they were permanently excluded, must
// have the same position, and must have delivered what they submitted since their last start.
func Continues(s *sim.Sim, c group.Config) (majority bool, err error) {
	h := &s.History
	born := make([]uint64, h.N) // the order of the last start
	intact := parley.Everyone(h.N)
	for _, r := range h.Restarts {
		born[r.At] = r.Order
		if !c.Durable || r.Msg.Value == 1 {
			intact.Remove(r.At)
		}
	}
	last := uint64(0)
	for _, e := range h.Indications {
		switch e.Msg.Kind {
		case parley.View:
			last = max(last, e.Msg.Seq)
		case group.Excluded, group.SnapshotInstalled:
			born[e.At] = max(born[e.At], e.Order)
		}
	}
	var in, out parley.Set
	up, top := 0, uint64(0)
	for id := range s.Correct().All() {
		switch stage := Shown(s, id, "stage"); {
		case stage == 1 && Shown(s, id, "view") == last:
			in.Add(id)
			top = max(top, Shown(s, id, "position"))
		case stage == 2 && !c.Return:
			out.Add(id)
		}
		if in.Has(id) || intact.Has(id) && !out.Has(id) {
			up++
		}
	}
	if 2*up <= h.N {
		return false, nil
	}
	for id := range s.Correct().Minus(out).All() {
		if !in.Has(id) || Shown(s, id, "position") != top {
			return true, fmt.Errorf("%s is not where the others are in the end", h.Name(id))
		}
	}
	delivered := make(map[string]bool)
	for _, d := range h.Deliveries {
		delivered[string(d.Msg.Body)] = true
	}
	for _, q := range h.Requests {
		if _, body, _ := problem.Decode(q.Msg, h.N); in.Has(q.At) && q.Order > born[q.At] && !delivered[string(body)] {
			return true, fmt.Errorf("%s of %s, which lives on, was not delivered", body, h.Name(q.At))
		}
	}
	return true, nil
}

// Shown returns a numeric variable of a process.
func Shown(s *sim.Sim, id parley.ID, name string) (number uint64) {
	for _, v := range parley.Show(s.Machine(id), 0) {
		if v.Name == name {
			_, _ = fmt.Sscan(v.Value, &number)
		}
	}
	return number
}

// DeliveredSurvivesRestartsOfAll demands of a durable protocol of three processes that what two of them have delivered
// reaches all, although all crash and the one that missed it restarts with only one of the others, which sponsors it
// before it has delivered again what its log has.
func DeliveredSurvivesRestartsOfAll(t *testing.T, p parley.Protocol) {
	t.Helper()
	const sent = 12
	for seed := range uint64(8) {
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: 400_000}
		for k := range sent {
			opt.Requests = append(opt.Requests, sim.Request{
				At: 0, When: 20_000 + parley.Tick(k), Msg: problem.Request(fmt.Appendf(nil, "m%d", k)),
			})
		}
		opt.Crashes = []sim.Crash{
			{At: 2, When: 5_000, Back: 45_000 + 500*parley.Tick(seed)}, {At: 0, When: 50_000, Back: 100},
			{At: 1, When: 50_000, Back: 150_000}, {At: 0, When: 150_000, Back: 100_000},
		}
		got := make([]map[string]bool, p.N)
		for _, d := range sim.Run(opt).History.Deliveries {
			if got[d.At] == nil {
				got[d.At] = make(map[string]bool)
			}
			got[d.At][string(d.Msg.Body)] = true
		}
		for id, all := range got {
			if len(all) != sent {
				t.Errorf("%s, seed %d: process %d delivers %d of %d", p.Name, seed, id, len(all), sent)
			}
		}
	}
}
