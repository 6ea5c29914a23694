package parleytest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/sim"
	"parley/trace"
)

// crashPoints crashes each process in any of its steps: before anything is durable, after each of the
// effects, and after all of them; for good, and with a restart from the log. Every fault model includes
// crashes. It takes an even share of all such points of a few runs.
func crashPoints(s suite) error {
	var backs []parley.Tick
	if s.p.M > 0 {
		backs = append(backs, 0)
	}
	if !s.o.NeverBack && (s.p.M > 0 || s.o.Recovers) {
		backs = append(backs, 1, 1500)
	}
	if len(backs) == 0 {
		return skip("no process may crash")
	}
	const seeds = 6
	budget := max(1, 8*s.o.Seeds/seeds)
	for seed := range uint64(seeds) {
		r := s.honest(s.p, seed)
		points := CrashPoints(r.Options)
		all := len(points) * len(backs)
		draw := rand.New(rand.NewPCG(seed, 7))
		for k := range min(all, budget) {
			i := k
			if all > budget { // one point of each equal part of all
				i = (k*all + draw.IntN(all)) / budget
			}
			c := points[i/len(backs)]
			c.Back = backs[i%len(backs)]
			if err := runWithCrash(s, r, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// runWithCrash makes a run with one more crash.
func runWithCrash(s suite, r run, c sim.Crash) error {
	r.Crashes = append(slices.Clone(r.Crashes), c)
	got := r.simulate()
	if c.Back > 0 && !s.o.Recovers {
		got.History.Faulty.Add(c.At)
	}
	if err := broken(s.p, got); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	return nil
}

// logs restarts each process at the end of runs in three ways: from everything that it ever appended, from
// its log as it was, compacted or not, and from its durable state. Its durable variables must be the same
// each time, or all variables if none is durable.
func logs(s suite) error {
	if s.o.LogKeepsMore != "" {
		return skip(s.o.LogKeepsMore)
	}
	for seed := range uint64(s.share(20)) {
		r := s.honest(s.p, seed)
		got, log := r.traced(true)
		for id := range parley.ID(s.p.N) {
			var all []parley.Record
			for _, e := range log.Events {
				if e.Op == trace.Append && e.At == id {
					all = append(all, parley.Record{Path: e.Path, Body: e.Msg.Body})
				}
			}
			if len(all) == 0 {
				continue
			}
			want := restoredState(s, id, got.Clock(id), nil, all)
			differs := func(from string, state []byte, log []parley.Record) error {
				if have := restoredState(s, id, got.Clock(id), state, log); !bytes.Equal(want, have) {
					return fmt.Errorf("%s: process %d restarts from %s with state %x, and from all its records with %x",
						r, id, from, have, want)
				}
				return nil
			}
			state, kept := got.Durable(id)
			if err := differs("its compacted log", state, kept); err != nil {
				return err
			}
			state = parley.SaveDurable(got.Machine(id), got.Clock(id), nil)
			if len(state) == 0 {
				continue
			}
			if err := differs("its durable variables", state, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// restoredState returns the state, as far as it must be equal, of a process that restarts with the given
// durable state and records.
func restoredState(s suite, id parley.ID, now parley.Tick, state []byte, log []parley.Record) []byte {
	m := s.p.New(id)
	if len(state) > 0 && !parley.LoadDurable(m, now, state) {
		panic(fmt.Sprintf("parleytest: process %d does not load its durable state", id))
	}
	b := newBench(s.p, id, func(int) int { return 0 })
	b.machine = m
	b.step.Now, b.step.Restart, b.step.Log = now, true, log
	m.Start(&b.step)
	if durable := parley.SaveDurable(m, now, nil); len(durable) > 0 {
		return durable
	}
	return parley.Save(m, now, nil)
}
