// Package explore runs the machines of a protocol through everything that may happen:
// every order of deliveries, every loss, crash and suspicion that a [Model] allows, and
// every answer to every Choose, which is how liars are enumerated. It is for small
// systems, and answers a question that no simulation can: is there any schedule or any
// lie that breaks this?
//
// A state is made of the saved states of the processes (see [parley.Vars]), what is on
// its way between them and what they were asked and delivered so far, each process by
// itself. Two runs that differ in the order of what happened at different processes
// alone come to one state. For that a property must not depend on this order, beyond
// that a message is delivered after it was broadcast. Of those of this module one does,
// that a replicated service is one machine: it needs [Options.Ordered].
//
// What is the same is stored and computed once: components and messages are numbered,
// and what a component does on an input is remembered (machines are deterministic). A
// visited state is its 64-bit fingerprint and the move that led there, which is enough
// to go back to the beginning. Fingerprints may collide: [Report.Overlooked] says how
// many states are to be expected to be missed by that.
//
// # Decisions
//
// The explorer numbers what is the same. States of processes, messages and what was seen from above are
// stored once and have numbers; what a process does on an input is computed once for each of its states.
// A visited state is a 64-bit sum of the shares of its parts, and the move that led there. Motive:
// machines are deterministic, so nearly all of the work would be done again and again; a sum changes by
// what a move changes. Cost: two states may have one sum. How many that is to be expected of is
// reported, and a search that must be sure of more than that has to look elsewhere.
//
// What was seen from above is a part of a state, each process by itself. Properties are decided once for
// each such past, and whoever is down. Motive: the same properties as in the simulator, and no monitor
// to be written beside each. Cost: the order of happenings at two processes that do not know of each
// other is not kept, so a property must not depend on it; and a protocol that delivers much has many
// states.
//
// The explorer leaves out moves, not states. Of two orders of the same moves it makes one where they
// lead to the same (sleep sets, with a mask a state). That they do is known of moves at two processes
// and looked up for two messages at one. Every state is still visited. Motive: with it there is about
// one move a state instead of ten, and what is counted is the same with and without, which tests
// compare. Cost: states are not fewer; --step round and names that may change are for that.
//
// In the explorer time is a bound on messages or nothing. Where messages arrive in time a timer runs out
// when all is there that was sent long enough before; else any timer may run out at any time, in the
// order of its own process. Motive: these are the synchronous and the asynchronous model. Cost:
// protocols that measure time itself (clocks) cannot be explored.
//
// A protocol on a detector has a bare form for hosts that tell of crashes (Bare). Motive: heartbeats
// never end and multiply every state by all their orders. Cost: what is explored is the protocol with a
// perfect detector, or one that errs so often.
//
// The explorer signs as the simulator does and imports it for that alone. Motive: one kind of ideal
// tokens. Cost: one host imports another.
package explore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"parley"
	"parley/explore/internal/budget"
	"parley/faulty"
)

// Options describe a search.
type Options struct {
	Protocol parley.Protocol
	// Roots are how runs begin; at least one.
	Roots []Root
	Model Model
	Step  StepSize
	Order Order
	// Depth is how many moves a run has at most, and States how many different states
	// are visited at most; 0: no limit.
	Depth  int
	States uint64
	// Memory is how many bytes the program may take before the search ends; 0: no limit.
	Memory uint64
	// For is how long the search takes at most; 0: no limit. What it found until then is
	// reported.
	For time.Duration
	// Walks is how many runs a search in RandomOrder makes, and Seed what they are drawn from.
	Walks int
	Seed  uint64
	// Workers is how many threads search; 0: one for each processor.
	Workers int
	// Unreduced makes every move in every state, instead of leaving out those that lead
	// where another order of the same moves leads too.
	Unreduced bool
	// Alike are processes that may change names: of states that differ by that alone one
	// is visited. The protocol must have a Rename, and no goal may name one of them. None of
	// them may have a part of its own in the protocol, which is not checked; none comes back
	// after a crash, for nobody renames what a log has.
	Alike parley.Set
	// Ordered makes the order of what is seen from above at different processes a part of a
	// state, for properties and goals that depend on it. There are many more states then.
	Ordered bool
	// Beyond counts a property that breaks although it is not promised, too.
	Beyond bool
	// Only are the names of the properties that count; empty: all of the protocol's.
	Only []string
	// Goal, if not nil, is what is searched for instead of a broken property. Looks tells
	// that it looks at the variables of machines, and not only at what was seen from above.
	Goal  func(*View) bool
	Looks bool
	// All goes on after something was found. At most a hundred findings are kept.
	All bool
	// Naming is how processes are called in what is said of findings; nil: process 0 ...
	Naming func(parley.ID) string
	// Progress, if not nil, is called about once a second.
	Progress func(Progress)
}

// Root is how a run begins: who may lie, and what is asked of whom.
type Root struct {
	// Faulty processes form one coalition. A behaviour that asks Choose is tried with
	// every answer; faulty.Any does nothing else.
	Faulty map[parley.ID]faulty.Behavior
	// Requests of one process are made in this order; in synchronous protocols before
	// round 0, in others, and those on call, at any time.
	Requests []Request
}

// Request is what a process is asked from above.
type Request struct {
	At  parley.ID
	Msg parley.Msg
}

// Model is what may go wrong beside lies, and how often in one run at most.
type Model struct {
	// FIFO links keep the order of messages.
	FIFO bool
	// Crashes come between two steps, and in the middle of one: before its records are
	// durable, after each of its effects.
	Crashes, Restarts, LostDisks int
	Losses, Doubles              int
	// Detect tells every process that is up of every one that crashed, when all that it
	// had sent there has been delivered or lost.
	Detect bool
	// Overtaking lets that notice come before what was sent there, too: where no bound on
	// delays is assumed, messages may still be in flight when a timeout ends.
	Overtaking bool
	// FalseSuspicions tell a process that one is suspected which is up.
	FalseSuspicions int
	// InTime makes messages arrive within the delay that the protocol relies on, where it
	// relies on one for more than safety: a timer runs out when all has arrived that was
	// sent long enough before. What happens between two timers counts as happening at the
	// time of the first one, and requests and suspicions come before time passes: such
	// times are few of those that there are, and a proof is one for these.
	InTime bool
	// Timeouts is how many timers run out in one run at most, where no bound on delays
	// is assumed: any timer may run out at any time, after those of the same process
	// that were due before it. In synchronous protocols time passes by itself.
	Timeouts int
}

// StepSize is how much one move is.
type StepSize uint8

// The grains.
const (
	Messages StepSize = iota // a delivery, a timer, a crash at a time
	Rounds                   // synchronous protocols: all up to the end of a round
)

// Order is in which order states are visited.
type Order uint8

// The orders.
const (
	BreadthFirst Order = iota // what is found is found by the fewest moves
	DepthFirst
	RandomOrder // runs drawn at random; nothing is ever proved by it
)

// Outcome is how a search ended.
type Outcome uint8

// The outcomes.
const (
	Exhausted Outcome = iota // all was visited, and nothing found
	Found
	BudgetHit   // nothing was found so far: that proves nothing
	Interrupted // the same, by the user's wish
)

func (o Outcome) String() string {
	return [...]string{"exhausted", "found", "budget hit", "interrupted"}[o]
}

// Report is what a search found out.
type Report struct {
	Progress
	Outcome Outcome
	// Limit says what ended the search before all was visited: "depth", "states", "memory",
	// "for", "walks" or "interrupt".
	Limit string
	// Seen are the properties that are to hold sometimes, and did in some state.
	Seen []string
	// Judged says of each property in how far it was put to the test, in the order of the
	// protocol; empty if a goal was searched for, or nothing was judged.
	Judged []Judged
	// Ends is the number of states in which nothing more is due.
	Ends uint64
	// Runs is the number of runs to an end, each with other answers to the Chooses: how
	// many adversaries there are. Of searches by rounds, breadth first; capped at the
	// largest number.
	Runs uint64
	// Overlooked is how many states are to be expected to be missed because another one
	// has the same fingerprint.
	Overlooked float64
	Findings   []Finding
	Clauses    []Clause
}

// Progress is how far a search has come.
type Progress struct {
	States, Moves uint64 // different states, and moves made between them
	// Outcomes counts what was computed to come of steps. A step in which liars may answer in
	// many ways has many, and they become states only when all are known.
	Outcomes uint64
	Depth    int
	Frontier uint64 // states that wait to be visited
	Bytes    uint64 // of the set of visited states
	Took     time.Duration
}

// Finding is a run that leads to what was searched for.
type Finding struct {
	Property string // the one that breaks; empty: the goal was reached
	Why      string
	Promised bool
	// RunConditions are what the promise was judged by, and Over tells that nothing more
	// was due.
	RunConditions parley.RunConditions
	Over          bool
	// Run has no steps if the context ended before they were made again.
	Run Run
}

// NoPanic is the property of all machines that they do not panic. A run that breaks it ends
// with the move in which one does, of which nothing comes.
const NoPanic = "no panic"

// NeverSilent is faulty.Any without silence: every answer but the last is the host's.
var NeverSilent = faulty.Behavior{Name: "outspoken", Model: faulty.Any.Model,
	Choose: func(s *parley.Step, _ *parley.Turn, _, n int) int { return s.Choose(n - 1) }}

// Search tells whether a search can be made at all, makes it, and reports. The context
// ends it early.
func Search(ctx context.Context, o Options) (Report, error) {
	if err := o.Check(); err != nil {
		return Report{}, err
	}
	x := newSearch(ctx, o)
	r := x.run()
	if failure := x.failure.Load(); failure != nil {
		return Report{}, *failure
	}
	if o.Order != BreadthFirst {
		for i := range r.Findings {
			left := o
			if o.For > 0 {
				if left.For = o.For - x.Took(); left.For <= 0 {
					break
				}
			}
			shorten(ctx, left, &r.Findings[i])
		}
	}
	if ctx.Err() != nil {
		r.Limit = budget.Interrupt
	}
	return r, nil
}

// enoughShorter is how many states are visited in search of a shorter run.
const enoughShorter = 100_000

// shorten puts the shortest run that breaks the same property into the place of one that
// was not found by the fewest moves, if that does not take long.
func shorten(ctx context.Context, o Options, f *Finding) {
	o.Order, o.All, o.States, o.Progress = BreadthFirst, false, enoughShorter, nil
	o.Roots = o.Roots[f.Run.Root : f.Run.Root+1]
	if f.Property != "" {
		o.Only, o.Goal = []string{f.Property}, nil
	}
	// What is promised is not to be replaced by what is not.
	o.Beyond = o.Beyond && !f.Promised
	r := newSearch(ctx, o).run()
	if r.Outcome == Found && r.Findings[0].Property == f.Property && len(r.Findings[0].Run.Steps) > 0 {
		root := f.Run.Root
		*f = r.Findings[0]
		f.Run.Root = root
	}
}

// MaxProcesses is how many processes a system that is explored has at most.
const MaxProcesses = 16

const (
	most      = MaxProcesses
	mostAsked = 15 // requests of one process
)

// Check tells why a search cannot be made, and fills in the number of workers.
func (o *Options) Check() error {
	p := o.Protocol
	switch {
	case p.N < 1 || p.N > most:
		return fmt.Errorf("%d processes: 1 to %d can be explored", p.N, most)
	case len(o.Roots) == 0:
		return fmt.Errorf("nothing to begin with")
	case len(o.Roots) > maxGroup:
		return fmt.Errorf("%d ways to begin: at most %d can be told apart", len(o.Roots), maxGroup)
	case o.Order == DepthFirst && o.Depth > 0:
		return fmt.Errorf("a search in depth first knows no bound on the depth")
	case o.Step == Rounds && p.Timing != parley.Synchronous:
		return fmt.Errorf("%s has no rounds to step by", p.Name)
	case o.Step == Rounds && o.Model != (Model{FIFO: o.Model.FIFO}):
		return fmt.Errorf("a search by rounds knows no fault but those of faulty processes")
	case o.Alike != (parley.Set{}) && p.Rename == nil:
		return fmt.Errorf("%s does not say how its messages change if processes change names", p.Name)
	case o.Alike.Minus(parley.Everyone(p.N)).Len() > 0:
		return fmt.Errorf("a process is alike that is none of the %d", p.N)
	case o.Alike.Len() > 1 && o.Model.Restarts > 0:
		return fmt.Errorf("processes that come back are not alike: nobody says how their records change with the names")
	case (p.Timing == parley.Synchronous || o.Model.InTime) && o.Model.Timeouts > 0:
		return fmt.Errorf("timers run out when their time has come, and not a number of times")
	case o.Order == RandomOrder && o.Walks < 1:
		return fmt.Errorf("a search at random needs to know how many runs to make")
	}
	for _, budget := range []int{o.Model.Crashes, o.Model.Restarts, o.Model.LostDisks, o.Model.Losses,
		o.Model.Doubles, o.Model.FalseSuspicions, o.Model.Timeouts} {
		if budget < 0 || budget > 255 {
			return fmt.Errorf("%d of one kind of fault: 0 to 255 are allowed", budget)
		}
	}
	for _, r := range o.Roots {
		// order: there is one error for any of them
		for id := range r.Faulty {
			if int(id) >= p.N {
				return fmt.Errorf("a process is faulty that is none of the %d", p.N)
			}
		}
		asked := make([][]parley.Msg, p.N)
		for _, q := range r.Requests {
			if int(q.At) >= p.N {
				return fmt.Errorf("process %d is asked, and there are %d", q.At, p.N)
			}
			if asked[q.At] = append(asked[q.At], q.Msg); len(asked[q.At]) > mostAsked {
				return fmt.Errorf("process %d is asked more than %d times", q.At, mostAsked)
			}
		}
		first := -1
		for id := range o.Alike.All() {
			if first >= 0 && !slices.EqualFunc(asked[first], asked[id], parley.Msg.Equal) {
				return fmt.Errorf("processes %d and %d are not alike: they are not asked the same", first, id)
			}
			first = int(id)
		}
	}
	if o.For < 0 {
		return fmt.Errorf("a search of %s: it takes some time, or 0, which is no limit", o.For)
	}
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return nil
}
