package explore

import (
	"context"
	"errors"
	"fmt"

	"parley"
)

// Place describes the state of a run after some of its transitions, for a reader who follows the run step by step.
type Place struct {
	// Run is the run so far.
	Run Run
	// Next holds the transitions that are possible now, each with its outcome. A transition with several outcomes,
	// such as the answers of a liar, has one entry for each outcome.
	Next []Step
	// More is the number of further transitions. At most 500 are in Next.
	More int
	// Over reports that nothing more is due.
	Over bool
}

// Fork is a state of a run from which a reader chooses the next transition.
type Fork struct {
	w    *worker
	now  parley.Tick
	next []successor
}

// Len returns the number of transitions that are offered: at most 500.
func (f Fork) Len() int { return len(f.next) }

// Step returns a transition with its outcome.
func (f Fork) Step(i int) Step { return f.w.replay(&f.next[i].taken, f.now) }

// Guide chooses the transitions of a run.
type Guide struct {
	// Begin gets the initial states of the root, each as the run to it, in which processes have started, and returns
	// the index of one of them. There are several if a process can crash, or a liar can choose, at once.
	Begin func(runs []Run) (int, error)
	// Next returns the index of the next transition, or a negative number to stop there.
	Next func(Fork) (int, error)
}

// Follow begins a run in the given root and takes the transitions that a guide chooses, until the guide stops or
// nothing more is due. Follow takes single transitions, whatever o.Step is.
func Follow(ctx context.Context, o Options, root int, g Guide) (at Place, err error) {
	if o.Step, o.Workers = Messages, 1; o.Order == RandomOrder {
		o.Order = BreadthFirst
	}
	if err := o.Check(); err != nil {
		return at, err
	}
	if root < 0 || root >= len(o.Roots) {
		return at, fmt.Errorf("root %d: there are %d", root, len(o.Roots))
	}
	w := newSearch(ctx, o).workers[0]
	defer func() {
		switch why := recover().(type) {
		case nil:
		case tooLarge:
			err = errors.New(string(why))
		default:
			panic(why)
		}
	}()
	s, trail, err := w.beginBy(root, g)
	if err != nil {
		return at, err
	}
	for {
		possible, more, due := w.possible(&s)
		if err := ctx.Err(); err != nil {
			return at, err
		}
		f := Fork{w, parley.Tick(len(trail)), possible}
		number := -1
		if len(possible) > 0 {
			if number, err = g.Next(f); err != nil {
				return at, err
			}
		}
		if number < 0 {
			at.Run, at.More, at.Over = w.runTo(&found{root: root, trail: trail}), more, !due
			if n := len(at.Run.Steps); n > 0 {
				f.now = max(f.now, at.Run.Steps[n-1].Time)
			}
			for i := range possible {
				at.Next = append(at.Next, f.Step(i))
			}
			return at, ctx.Err()
		}
		possible[number].state.copyTo(&s)
		trail = append(trail, possible[number].taken)
	}
}
