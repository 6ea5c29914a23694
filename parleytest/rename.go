package parleytest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// rename runs with processes under other names. Delays are fixed, and rounds make the order of arrival
// irrelevant, so at any time the machines are the same up to the names in their states, also within rounds,
// while they hold messages. Proposers are renamed among themselves.
//
// Rename may drop what only its maker can produce, a signature. Therefore both sides of each comparison are
// renamed, one of them by the identity.
func rename(s suite) error {
	if s.p.Rename == nil || s.p.Timing != parley.Synchronous {
		return skip("no Rename, or no rounds")
	}
	for seed := range uint64(s.share(20)) {
		perm := permutation(s, rand.New(rand.NewPCG(seed, 3)))
		one, two := renaming(s, seed, perm)
		_, log := one.traced(true)
		for _, until := range append(receiveTimes(log), one.Until) {
			one.Until, two.Until = until, until
			if err := compareRenamed(s, one, two, perm); err != nil {
				return err
			}
		}
		if err := renameTwice(s, log, perm); err != nil {
			return err
		}
	}
	return nil
}

// renaming draws a run and the same run under other names.
func renaming(s suite, seed uint64, perm []parley.ID) (one, two run) {
	one = s.honest(s.p, seed)
	one.Delay, one.Loss, one.Twice = sim.Delay{Least: 1, Most: 1}, 0, 0
	two = one
	two.Requests = nil
	for _, q := range one.Requests {
		q.At = perm[q.At]
		two.Requests = append(two.Requests, q)
	}
	if seed%2 == 1 && s.p.M > 0 {
		silent := parley.ID(seed) % parley.ID(s.p.N)
		one.Faulty = map[parley.ID]faulty.Behavior{silent: faulty.Silent}
		two.Faulty = map[parley.ID]faulty.Behavior{perm[silent]: faulty.Silent}
	}
	return one, two
}

// receiveTimes returns a few of the times at which a message was received.
func receiveTimes(log *trace.Log) []parley.Tick {
	const few = 8
	var all []parley.Tick
	for _, e := range log.Events {
		if e.Op == trace.Receive && e.Time > 0 && (len(all) == 0 || e.Time != all[len(all)-1]) {
			all = append(all, e.Time)
		}
	}
	if len(all) <= few {
		return all
	}
	var out []parley.Tick
	for i := range few {
		out = append(out, all[i*(len(all)-1)/(few-1)])
	}
	return out
}

// compareRenamed makes a run and the same run under other names and compares their results.
func compareRenamed(s suite, r, other run, perm []parley.ID) error {
	one, two := r.simulate(), other.simulate()
	for id := range one.Correct().All() {
		before := parley.Save(one.Machine(id), one.Now(), nil)
		have, want := renamed(s, one, id, perm), renamed(s, two, perm[id], identity(s.p.N))
		if !bytes.Equal(have, want) {
			return fmt.Errorf("%s: process %d is %d after renaming %v, and has another state at tick %d: %v",
				r, id, perm[id], perm, one.Now(), parley.Show(one.Machine(id), one.Now()))
		}
		if !bytes.Equal(before, parley.Save(one.Machine(id), one.Now(), nil)) {
			return fmt.Errorf("%s: process %d is changed by a look at it", r, id)
		}
	}
	return nil
}

func renamed(s suite, run *sim.Sim, id parley.ID, perm []parley.ID) []byte {
	return parley.SaveRenamed(run.Machine(id), run.Now(), parley.Renaming{Perm: perm, Msg: s.p.Rename}, nil)
}

// renameTwice renames each sent message, and renames it back.
func renameTwice(s suite, log *trace.Log, perm []parley.ID) error {
	back, none := make([]parley.ID, len(perm)), identity(len(perm))
	for old, id := range perm {
		back[id] = parley.ID(old)
	}
	for _, e := range log.Events {
		if e.Op != trace.Send {
			continue
		}
		env := parley.Env{From: e.At, To: e.Peer, Path: e.Path}
		there, want := s.p.Rename(env, e.Msg, perm), s.p.Rename(env, e.Msg, none)
		if s.p.Faults != parley.SignedByzantineFaults && !want.Equal(e.Msg) {
			return fmt.Errorf("message %v of process %d is %v if nobody has another name", e.Msg, e.At, want)
		}
		env.From = perm[env.From]
		if env.To != parley.All {
			env.To = perm[env.To]
		}
		if again := s.p.Rename(env, there, back); !again.Equal(want) {
			return fmt.Errorf("message %v of process %d is %v if renamed by %v and back", want, e.At, again, perm)
		}
	}
	return nil
}

// permutation draws new names: proposers among themselves, and the others among themselves.
func permutation(s suite, r *rand.Rand) []parley.ID {
	perm := make([]parley.ID, s.p.N)
	for _, group := range []parley.Set{s.p.Proposers, parley.Everyone(s.p.N).Minus(s.p.Proposers)} {
		ids := slices.Collect(group.All())
		for i, j := range r.Perm(len(ids)) {
			perm[ids[i]] = ids[j]
		}
	}
	return perm
}

// identity returns the permutation that changes nothing.
func identity(n int) []parley.ID { return slices.Collect(parley.Everyone(n).All()) }
