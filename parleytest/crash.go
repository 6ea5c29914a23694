package parleytest

import (
	"bytes"
	"fmt"

	"parley"
	"parley/sim"
	"parley/trace"
)

// crashPoints crashes each process in each of its first steps: before anything is
// durable, after each of the first effects, and after all of them; for good, and
// with a restart from the log. A crash is the mildest fault of every model.
func (s *suite) crashPoints() error {
	if s.p.M == 0 && !s.o.Recovers {
		return skip("no process may crash")
	}
	budget := 8 * s.o.Seeds
	for step := 1; step <= s.stepsOf() && budget > 0; step++ {
		for id := range parley.ID(s.p.N) {
			for _, effects := range []int{0, 1, 2, s.p.N / 2, 1 << 20} {
				for _, back := range []parley.Tick{0, 1, 1500} {
					if back == 0 && s.p.M == 0 || back > 0 && s.o.NeverBack {
						continue
					}
					budget--
					r := s.honest(s.p, uint64(step))
					r.Crashes = []sim.Crash{{At: id, Step: step, Effects: effects, Back: back}}
					got, err := r.simulate()
					if err != nil {
						return err
					}
					if back > 0 && !s.o.Recovers {
						got.History.Faulty.Add(id)
					}
					if err := broken(s.p, &got.History); err != nil {
						return fmt.Errorf("%s: %w", r, err)
					}
				}
			}
		}
	}
	return nil
}

// logs restarts each process at the end of runs from all that it ever appended,
// from its log as it was, compacted or not, and from its durable state: its
// durable variables must be the same, or all of them if none is durable.
func (s *suite) logs() error {
	for seed := range uint64(s.some(20)) {
		r := s.honest(s.p, seed)
		got, log, err := r.traced(true)
		if err != nil {
			return err
		}
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
			want := s.restarted(id, got.Now(), nil, all)
			differs := func(from string, state []byte, log []parley.Record) error {
				if have := s.restarted(id, got.Now(), state, log); !bytes.Equal(want, have) {
					return fmt.Errorf("%s: process %d restarts from %s with state %x, and from all its records with %x",
						r, id, from, have, want)
				}
				return nil
			}
			state, kept := got.Durable(id)
			if err := differs("its compacted log", state, kept); err != nil {
				return err
			}
			state = parley.SaveDurable(got.Machine(id), got.Now(), nil)
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

// restarted returns what must be the same of a process that comes back with the given
// durable state and records.
func (s *suite) restarted(id parley.ID, now parley.Tick, state []byte, log []parley.Record) []byte {
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
