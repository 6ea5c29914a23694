package parleytest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// reload runs seeds once as they are and then with every machine saved and
// loaded again and again: nothing must be different.
func (s *suite) reload() error {
	for seed := range uint64(s.some(20)) {
		r := s.draw(s.p, seed, s.p.M)
		_, plain := r.traced(false)
		for _, every := range []uint64{1, 7} {
			again := r
			x := exchange{every: every}
			again.Between = x.between
			_, log := again.traced(false)
			if x.err != nil {
				return fmt.Errorf("%s: %w", r, x.err)
			}
			if log.Hash() != plain.Hash() {
				return fmt.Errorf("%s: a run with machines saved and loaded after every %d steps differs: "+
					"State misses a variable", r, every)
			}
		}
	}
	return nil
}

// exchange puts saved and loaded machines in the place of those of a run.
type exchange struct {
	every, last uint64
	used        []parley.Machine // by seat: machines that were in use before
	saved, kept [][]byte         // by seat: the last snapshot, and a copy of it
	err         error
}

func (x *exchange) between(s *sim.Sim) {
	if x.err != nil || s.Stats.Steps < x.last+x.every {
		return
	}
	x.last = s.Stats.Steps
	seats := s.Seats()
	if x.used == nil {
		x.used, x.saved, x.kept = make([]parley.Machine, len(seats)), make([][]byte, len(seats)),
			make([][]byte, len(seats))
	}
	for i := range seats {
		if x.err = x.seat(s, i); x.err != nil {
			x.err = fmt.Errorf("processes %v at tick %d: %w", seats[i].IDs, s.Now(), x.err)
			return
		}
	}
}

// seat saves the machine of one seat and goes on with the one before it, loaded;
// a fresh one is loaded to compare.
func (x *exchange) seat(s *sim.Sim, i int) error {
	if !bytes.Equal(x.saved[i], x.kept[i]) {
		return errors.New("a machine changes the bytes that it was loaded from: visit them as a Buffer")
	}
	seat := &s.Seats()[i]
	x.saved[i] = parley.Save(seat.Machine, s.Now(), nil)
	x.kept[i] = slices.Clone(x.saved[i])
	fresh := s.Fresh(i)
	if err := loads(fresh, s.Now(), x.saved[i]); err != nil {
		return err
	}
	used := x.used[i]
	x.used[i] = seat.Machine
	seat.Machine = fresh
	if used == nil {
		return nil
	}
	if err := loads(used, s.Now(), x.saved[i]); err != nil {
		return fmt.Errorf("into a machine that was in use: %w", err)
	}
	seat.Machine = used
	return nil
}

// loads loads a machine and demands that it saves the same.
func loads(m parley.Machine, now parley.Tick, b []byte) error {
	if !parley.Load(m, now, b) {
		return errors.New("a machine does not load the state that one like it saved")
	}
	if again := parley.Save(m, now, nil); !bytes.Equal(again, b) {
		return fmt.Errorf("a loaded machine saves another state: %x, and was loaded from %x", again, b)
	}
	return nil
}

// rename runs with processes under other names. Delays are fixed, rounds make
// the order of arrival irrelevant, and so machines end as they would with the
// names changed in their states. Proposers stay among themselves.
func (s *suite) rename() error {
	if s.p.Rename == nil || s.p.Timing != parley.Synchronous {
		return skip("no Rename, or no rounds")
	}
	for seed := range uint64(s.some(20)) {
		r := s.honest(s.p, seed)
		r.Delay, r.Loss, r.Twice = sim.Delay{Least: 1, Most: 1}, 0, 0
		perm := s.permutation(rand.New(rand.NewPCG(seed, 3)))
		other := r
		other.Requests = nil
		for _, q := range r.Requests {
			q.At = perm[q.At]
			other.Requests = append(other.Requests, q)
		}
		if seed%2 == 1 && s.p.M > 0 {
			silent := parley.ID(seed) % parley.ID(s.p.N)
			r.Faulty = map[parley.ID]faulty.Behaviour{silent: faulty.Silent}
			other.Faulty = map[parley.ID]faulty.Behaviour{perm[silent]: faulty.Silent}
		}
		one, log := r.traced(true)
		two, _ := other.traced(false)
		for id := range one.Correct().All() {
			before := parley.Save(one.Machine(id), one.Now(), nil)
			renamed := parley.SaveRenamed(one.Machine(id), one.Now(),
				parley.Renaming{Perm: perm, Self: id, Msg: s.p.Rename}, nil)
			if !bytes.Equal(renamed, parley.Save(two.Machine(perm[id]), two.Now(), nil)) {
				return fmt.Errorf("%s: process %d is %d after renaming %v, and has another state: %v", r, id, perm[id],
					perm,
					parley.Show(one.Machine(id), one.Now()))
			}
			if !bytes.Equal(before, parley.Save(one.Machine(id), one.Now(), nil)) {
				return fmt.Errorf("%s: process %d is changed by a look at it", r, id)
			}
		}
		if err := s.thereAndBack(log, perm); err != nil {
			return err
		}
	}
	return nil
}

// thereAndBack renames what was sent, and renames it back.
func (s *suite) thereAndBack(log *trace.Log, perm []parley.ID) error {
	back := make([]parley.ID, len(perm))
	for old, id := range perm {
		back[id] = parley.ID(old)
	}
	for _, e := range log.Events {
		if e.Op != trace.Send {
			continue
		}
		env := parley.Env{From: e.At, To: e.Peer, Path: e.Path}
		there := s.p.Rename(env, e.Msg, perm)
		env.From = perm[env.From]
		if env.To != parley.All {
			env.To = perm[env.To]
		}
		if again := s.p.Rename(env, there, back); !same(again, e.Msg) {
			return fmt.Errorf("message %v of process %d is %v if renamed by %v and back", e.Msg, e.At, again, perm)
		}
	}
	return nil
}

func same(a, b parley.Msg) bool {
	return a.Kind == b.Kind && a.Origin == b.Origin && a.Seq == b.Seq && a.Value == b.Value &&
		bytes.Equal(a.Body, b.Body)
}

// permutation draws new names: proposers among themselves, and the others.
func (s *suite) permutation(r *rand.Rand) []parley.ID {
	perm := make([]parley.ID, s.p.N)
	for _, group := range []parley.Set{s.p.Proposers, parley.Everyone(s.p.N).Minus(s.p.Proposers)} {
		ids := slices.Collect(group.All())
		for i, j := range r.Perm(len(ids)) {
			perm[ids[i]] = ids[j]
		}
	}
	return perm
}
