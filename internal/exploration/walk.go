package exploration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	"parley/explore"
	"parley/internal/draw/reading"
	"parley/trace"
)

// The stages of a walk: what its next move chooses.
const (
	ChoosesRoot  = "root"  // the faulty processes and the values
	ChoosesBegin = "begin" // what processes do as they start
	ChoosesMove  = "move"  // a transition
)

// Move is a move of a walk: a transition, or a choice before the first one.
type Move struct {
	// Name names the move by what happens, not by its place in a list, so that a list of names means the same walk
	// in another version of the program. See moveName.
	Name string `json:"name"`
	Says string `json:"says"`
}

// Taken is a move that was taken.
type Taken struct {
	Move
	Events uint64 `json:"events"` // the number of events of the run up to and with this move
}

// Possible is a move that is possible now.
type Possible struct {
	Move
	Breaks []string `json:"breaks"` // the properties that break with it, and held before
}

// Followed says how a property fares in the course of a walk.
type Followed struct {
	Property string `json:"property"`
	Says     string `json:"says"`
	AtEnd    bool   `json:"at_end"`    // only the end of a run decides it
	Seen     bool   `json:"sometimes"` // it is no promise: something that happens in some run
	Breaks   int    `json:"breaks"`    // the index in Taken of the move that breaks it, or that first shows it; -1: none
	Outcome  string `json:"outcome"`   // so far, as in a report
	Why      string `json:"why,omitempty"`
}

// Walked is where a run is after some of its transitions, for a reader who takes them one by one.
type Walked struct {
	Stage      string
	Refused    string // the move that was not possible, at which the walk ends; empty if all were
	Over       bool   // nothing more is due
	Taken      []Taken
	Next       []Possible // at most 500
	More       int        // the number of other moves, which are not offered
	Properties []Followed

	Header trace.Header
	Log    *trace.Log // the run so far; empty before it begins
	Broken []string   // the properties that the run breaks, with what breaks them
	Run    *Counterexample
}

// mostOffered is the largest number of roots that a reader is offered.
const mostOffered = 500

// mostForced is how many moves a walk takes by itself while there is no choice.
const mostForced = 200

// errChoice ends a walk where the reader must choose.
var errChoice = errors.New("the walk has not begun")

// Walk begins in an initial state of a search and takes the moves with the given names. If the search has several
// initial states, the first move chooses one; if processes can start in several ways, the next one chooses the way.
// With on, the walk continues until there is a choice.
func Walk(ctx context.Context, s *Search, names []string, on bool) (*Walked, error) {
	return (&guide{s: s, names: names, on: on, most: len(names) + mostForced}).walk(ctx)
}

// Sample takes the moves with the given names and then random ones, until nothing more is due or the walk has most
// moves.
func Sample(ctx context.Context, s *Search, names []string, random *rand.Rand, most int) (*Walked, error) {
	return (&guide{s: s, names: names, random: random, most: most}).walk(ctx)
}

// Trail returns the names of the moves that lead to the end of a counterexample, or nil if a walk cannot take them: a
// search by symmetry, for example, visits one of several equal states.
func (e *Result) Trail(ctx context.Context, f *Counterexample) (names []string) {
	w, err := (&guide{s: e.Search, run: &f.finding.Run, steps: f.finding.Run.Steps}).walk(ctx)
	if err != nil || w.Log == nil || w.Log.Hash() != f.Log.Hash() {
		return nil
	}
	for _, t := range w.Taken {
		if t.Name != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

func (g *guide) walk(ctx context.Context) (*Walked, error) {
	s := g.s
	g.given = len(g.names)
	g.rec = explore.NewRecorder(true)
	g.words = reading.Words{Style: reading.Style{Width: 1 << 12, Name: s.names.Full}, Protocol: s.protocol}
	root := 0
	if g.run != nil {
		root = g.run.Root
	}
	if len(s.options.Roots) > 1 {
		var err error
		if root, err = g.chooseRoot(); err != nil {
			return g.waiting(ChoosesRoot, err)
		}
	}
	g.root = root
	at, err := explore.Follow(ctx, s.options, root, explore.Guide{Begin: g.begin, Next: g.next})
	if err != nil {
		return g.waiting(ChoosesBegin, err)
	}
	w := &Walked{Stage: ChoosesMove, Refused: g.refused, Over: at.Over, More: at.More, Taken: g.taken, Next: []Possible{}}
	w.Run = s.counterexample(&explore.Finding{Run: at.Run, Over: at.Over, RunConditions: g.conditions(&at.Run)})
	w.Header, w.Log, w.Broken = w.Run.Header, w.Run.Log, []string{}
	for _, v := range w.Run.report.Judged {
		if v.Broken != nil && v.Property.Mode != parley.Sometimes {
			w.Broken = append(w.Broken, v.Property.Name+": "+v.Broken.Error())
		}
	}
	w.Properties = g.properties(w)
	if g.random == nil {
		w.Next = g.possible(w, at.Next)
	}
	return w, nil
}

// guide chooses the moves of a walk: by their names, and then at random; or those of a run.
type guide struct {
	s       *Search
	words   reading.Words
	names   []string       // still to be taken
	run     *explore.Run   // its moves are taken, if it is not nil
	steps   []explore.Step // still to be taken from run
	random  *rand.Rand     // nil: stop there
	on      bool           // take moves as long as only one is possible
	most    int            // moves, if they are random or the only ones
	root    int
	given   int    // the number of names
	refused string // the name that is not possible
	taken   []Taken
	open    []Possible // before the run begins: what can be chosen
	rec     *explore.Recorder
}

// waiting is a walk that has not begun, if the reader must choose.
func (g *guide) waiting(stage string, err error) (*Walked, error) {
	if !errors.Is(err, errChoice) {
		return nil, err
	}
	more := max(len(g.open)-mostOffered, 0)
	return &Walked{
		Stage: stage, Refused: g.refused, Taken: append([]Taken{}, g.taken...), Next: g.open[:len(g.open)-more], More: more,
		Properties: []Followed{}, Broken: []string{},
	}, nil
}

// choose takes the next name, which must be one of the moves, and returns its index.
func (g *guide) choose(all []Move) (int, error) {
	switch {
	case len(g.names) > 0:
		i := slices.IndexFunc(all, func(m Move) bool { return m.Name == g.names[0] })
		if i >= 0 {
			g.names = g.names[1:]
			return i, nil
		}
		g.refuse()
	case g.random != nil:
		return g.random.IntN(len(all)), nil
	}
	for _, m := range all {
		g.open = append(g.open, Possible{m, []string{}})
	}
	return 0, errChoice
}

func (g *guide) chooseRoot() (int, error) {
	var all []Move
	for i := range g.s.options.Roots {
		all = append(all, g.rootMove(i))
	}
	var err error
	i := 0
	if g.run != nil {
		i = g.run.Root
	} else if i, err = g.choose(all); err != nil {
		return 0, err
	}
	g.taken = append(g.taken, Taken{Move: all[i]})
	return i, nil
}

// begin chooses the initial state.
func (g *guide) begin(runs []explore.Run) (i int, err error) {
	all := make([]Move, len(runs))
	for k, run := range runs {
		all[k] = g.beginMove(run.Steps)
	}
	switch {
	case g.run != nil:
		i = slices.IndexFunc(runs, func(r explore.Run) bool {
			n := len(r.Steps)
			return n <= len(g.steps) && slices.EqualFunc(r.Steps, g.steps[:n], sameStep)
		})
		if i < 0 {
			return 0, errChoice
		}
		g.steps = g.steps[len(runs[i].Steps):]
	case len(all) > 1:
		if i, err = g.choose(all); err != nil {
			return 0, err
		}
	}
	if len(all) == 1 {
		all[0].Name = "" // nothing is chosen
	}
	for k := range runs[i].Steps {
		g.rec.Add(&runs[i].Steps[k])
	}
	g.taken = append(g.taken, Taken{all[i], g.rec.Log.Len()})
	return i, nil
}

// next chooses the next transition.
func (g *guide) next(f explore.Fork) (number int, err error) {
	steps := make([]explore.Step, f.Len())
	for i := range steps {
		steps[i] = f.Step(i)
	}
	names := g.moveNames(steps)
	switch {
	case len(g.names) > 0:
		if number = slices.Index(names, g.names[0]); number < 0 {
			g.refuse()
			return -1, nil
		}
		g.names = g.names[1:]
	case len(g.steps) > 0:
		number = slices.IndexFunc(steps, func(s explore.Step) bool { return sameStep(s, g.steps[0]) })
		if g.steps = g.steps[1:]; number < 0 {
			return 0, errChoice
		}
	case g.random != nil && len(g.taken) < g.most:
		number = g.random.IntN(len(steps))
	case g.on && len(steps) == 1 && len(g.taken) < g.most:
		number = 0
	default:
		return -1, nil
	}
	g.rec.Add(&steps[number])
	g.taken = append(g.taken, Taken{Move{names[number], inWords(g.words, steps[number])}, g.rec.Log.Len()})
	return number, nil
}

// refuse notes that the next move is not possible: the walk ends before it.
func (g *guide) refuse() {
	g.refused = fmt.Sprintf("move %d of %d, %.80q, is not possible there", g.given-len(g.names)+1, g.given, g.names[0])
}

// sameStep reports whether two steps are the same transition with the same outcome.
func sameStep(a, b explore.Step) bool {
	return a.Kind == b.Kind && a.At == b.At && a.Of == b.Of && a.Msg.Equal(b.Msg) && a.Path == b.Path &&
		a.Epoch == b.Epoch && a.Timer == b.Timer && a.Due == b.Due && a.Crashed == b.Crashed &&
		len(a.Effects) == len(b.Effects) && slices.Equal(a.Choices, b.Choices)
}

// possible returns the moves that are possible at the end of a walk.
func (g *guide) possible(w *Walked, next []explore.Step) []Possible {
	all := []Possible{}
	for i, name := range g.moveNames(next) {
		all = append(all, Possible{Move{name, inWords(g.words, next[i])}, g.breaks(w, &next[i])})
	}
	return all
}

// conditions returns the faults of a run that no promise covers in every protocol.
func (g *guide) conditions(run *explore.Run) (a parley.RunConditions) {
	s := g.s
	timed := s.protocol.Timing == parley.Synchronous || s.options.Model.InTime
	a.Network.Reordered = !s.options.Model.FIFO && !timed
	for i := range run.Steps {
		switch run.Steps[i].Kind {
		case explore.OnLoss:
			a.Network.Lost = true
		case explore.OnDuplicate:
			a.Network.Doubled = true
		case explore.OnTimeout:
			a.Network.Late = a.Network.Late || !timed
		case explore.OnRestart:
			a.Processes.Restarted = true
		case explore.OnLostDisk:
			a.Processes.Restarted, a.Processes.LostDisk = true, true
		case explore.OnFalseSuspicion:
			a.Processes.Suspected = true
		}
	}
	a.Processes.Minority = 2*(s.protocol.N-g.down(run.Steps).Len()) <= s.protocol.N
	return a
}

// down returns the processes to which nothing is promised after some transitions: the liars, and those that are
// crashed.
func (g *guide) down(steps []explore.Step) (all parley.Set) {
	liars := g.s.options.Roots[g.root].Faulty
	for id := range liars { // order: a set
		all.Add(id)
	}
	for i := range steps {
		switch step := &steps[i]; {
		case step.Crashed || step.Kind == explore.OnCrash:
			all.Add(step.At)
		case step.Kind == explore.OnRestart || step.Kind == explore.OnLostDisk:
			if _, lies := liars[step.At]; !lies {
				all.Remove(step.At)
			}
		}
	}
	return all
}
