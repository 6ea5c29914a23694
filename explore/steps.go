package explore

import (
	"context"
	"errors"
	"fmt"
	"parley"
	"slices"
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
	// Begins is the number of initial states.
	Begins int
}

// Follow begins a run in the given root, takes the transitions with the given numbers, and returns the place that it
// reaches. Each number is an index in the Next of the previous place. In an initial state, all processes have
// started. Begin is the number of the initial state. There are several initial states if, at the start, a process can
// crash or a liar can choose. Follow takes single transitions, whatever o.Step is.
func Follow(ctx context.Context, o Options, root, begin int, numbers []int) (at Place, err error) {
	if o.Step, o.Workers = Messages, 1; o.Order == RandomOrder {
		o.Order = BreadthFirst
	}
	if err := o.Check(); err != nil {
		return at, err
	}
	if root < 0 || root >= len(o.Roots) {
		return at, fmt.Errorf("root %d: there are %d", root, len(o.Roots))
	}
	x := newSearch(ctx, o)
	w := x.workers[0]
	defer func() {
		switch why := recover().(type) {
		case nil:
		case tooLarge:
			err = errors.New(string(why))
		default:
			panic(why)
		}
	}()
	first := w.begin(root)
	if begin < 0 || begin >= len(first) {
		return at, fmt.Errorf("initial state %d: there are %d", begin, len(first))
	}
	at.Begins = len(first)
	s, trail := first[begin].state, slices.Clone(first[begin].trail)
	for i, number := range numbers {
		possible, _, _ := w.possible(&s)
		if number < 0 || number >= len(possible) {
			return at, fmt.Errorf("transition %d of the run: number %d of %d", i, number, len(possible))
		}
		possible[number].state.copyTo(&s)
		trail = append(trail, possible[number].taken)
		if err := ctx.Err(); err != nil {
			return at, err
		}
	}
	possible, more, due := w.possible(&s)
	at.Run, at.More, at.Over = w.runTo(&found{root: root, trail: trail}), more, !due
	if err := ctx.Err(); err != nil {
		return at, err
	}
	now := parley.Tick(len(trail))
	if len(at.Run.Steps) > 0 {
		now = max(now, at.Run.Steps[len(at.Run.Steps)-1].Time)
	}
	for _, p := range possible {
		at.Next = append(at.Next, w.replay(&p.taken, now))
	}
	return at, ctx.Err()
}
