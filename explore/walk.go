package explore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// walks makes random runs.
func (x *search) walks() {
	var begun atomic.Int64
	var all sync.WaitGroup
	for _, w := range x.workers {
		all.Go(func() {
			for !x.Over() {
				k := begun.Add(1)
				if k > int64(x.o.Walks) {
					return
				}
				w.walk(rand.New(rand.NewPCG(x.o.Seed, uint64(k))))
			}
		})
	}
	all.Wait()
}

// walk makes one run: each transition of a state is equally likely.
func (w *worker) walk(random *rand.Rand) {
	x := w.search
	defer x.recoverTooLarge()
	root := random.IntN(len(x.roots))
	first := w.begin(root)
	if len(first) == 0 {
		return // a machine panics at once
	}
	b := first[random.IntN(len(first))]
	s, trail := &b.state, b.trail
	next := new(state)
	for depth := 0; x.o.Depth == 0 || depth < x.o.Depth; depth++ {
		w.trail = trail
		w.check(s, 0, false)
		met := 0
		var move []takenTransition
		due := w.moves(s, 0, func(from, reached *state, _ int) {
			if met++; random.IntN(met) > 0 {
				return
			}
			reached.copyTo(next)
			move = w.latest(from)
		})
		if !due {
			x.ends.Add(1)
			w.trail = trail
			w.check(s, 0, true)
		}
		if !due || met == 0 || x.Over() {
			return
		}
		w.moved()
		trail = append(trail, move...)
		s, next = next, s
	}
}

// latest returns the latest transition, of the step size of the search.
func (w *worker) latest(from *state) []takenTransition {
	if w.search.o.Step == Rounds {
		return slices.Clone(w.steps[:w.level])
	}
	return []takenTransition{w.taken(from)}
}

// successor is a state that a transition leads to.
type successor struct {
	state state
	taken takenTransition
}

// mostPossible is the largest number of successors that a reader is offered.
const mostPossible = 500

// mostCounted is the largest number of further successors that are counted.
const mostCounted = 20_000

// tooManyToWalk is the error of a state whose successors would take minutes and much memory.
var tooManyToWalk = tooLarge(fmt.Sprintf("a step has more than %d outcomes, too many to follow one by one: "+
	"choose fewer processes, or fewer that may lie", mostPossible+mostCounted))

// possible returns the first successors of a state, the number of further ones, and whether anything is due in it.
func (w *worker) possible(s *state) (all []successor, more int, due bool) {
	due = w.moves(s, 0, func(from, reached *state, _ int) {
		if len(all) == mostPossible {
			if more++; more > mostCounted {
				panic(tooManyToWalk)
			}
			return
		}
		next := successor{taken: w.taken(from)}
		reached.copyTo(&next.state)
		all = append(all, next)
	})
	return all, more, due
}

// beginBy returns the initial state that a guide chooses, and the transitions to it.
func (w *worker) beginBy(root int, g Guide) (s state, trail []takenTransition, err error) {
	first := w.begin(root)
	if len(first) == 0 {
		return s, nil, errors.New("a machine panics at once")
	}
	var runs []Run
	for _, b := range first[:min(len(first), mostPossible)] {
		runs = append(runs, w.runTo(&found{root: root, trail: b.trail}))
	}
	number, err := g.Begin(runs)
	if err != nil {
		return s, nil, err
	}
	return first[number].state, slices.Clone(first[number].trail), nil
}
