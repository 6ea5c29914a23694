// Package explore runs the machines of a protocol through all possible runs of a small system. It tries every order of
// deliveries, and every loss, crash and suspicion that a [Model] allows. A faulty process selects its lies by calls of
// Choose, and the explorer tries every answer to these calls. So a search answers a question that simulations cannot
// answer: does any schedule or any lie break a property?
//
// A state of a search has three parts: the saved state of each process (see [parley.Vars]), the messages in flight,
// and the requests and deliveries of each process so far. Two runs lead to the same state if they differ only in the
// relative order of events at different processes. So a property may use the order of events at one process, and the
// fact that a broadcast comes before its deliveries. If a property uses any other order of events at different
// processes, [Options.Ordered] must be set. Only one property of this module needs this option: that a replicated
// service acts as one machine.
//
// The explorer stores equal parts of states once. It numbers process states and messages, and remembers the outcome of
// each input in each process state. This is possible because machines are deterministic. For each visited state it
// stores a 64-bit fingerprint and the transition that led to the state. By these transitions it finds the way from the
// initial state to the state. If two states have the same fingerprint, the explorer misses one of them.
// [Report.Overlooked] is the expected number of missed states.
//
// This example searches for a lie of process 2 that breaks a property:
//
//	report, err := explore.Search(ctx, explore.Options{
//		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated),
//		Roots: []explore.Root{{
//			Faulty:   map[parley.ID]faulty.Behavior{2: faulty.Any},
//			Requests: []explore.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
//		}},
//	}) // handle err
//	fmt.Println(report.Outcome) // exhausted: there is none
//	for _, f := range report.Findings {
//		fmt.Println(f.Property, f.Why)
//	}
//
// # Decisions
//
// The requests, deliveries and indications of each process are part of a state. If two states have the same requests,
// deliveries and indications, and the same crashed processes, the explorer checks the properties only once for both.
// Motive: the explorer can use the same properties as the simulator. Cost: the relative order of concurrent events at
// two processes is lost, so a property must not depend on this order. A protocol that delivers many messages has many
// states.
//
// The explorer visits every state, but does not follow every transition. If two orders of the same transitions lead to
// the same state, it follows only one of them (by sleep sets, with one mask per state). Two transitions at different
// processes always commute. For two messages to one process, the explorer compares the stored outcomes of both orders.
// Motive: the explorer follows about one transition per state instead of ten. Cost: the number of states stays the
// same. Two options reduce this number: `--step round`, and processes that are declared symmetric.
//
// The explorer has no clock. A model may give a bound on message delays. With a bound, a timer expires only after all
// messages that must arrive before it have arrived. Without a bound, any timer may expire at any time, but the timers
// of one process expire in order. Motive: these are the synchronous and the asynchronous model. Cost: protocols that
// measure time itself (clocks) cannot be explored.
//
// A protocol that uses a failure detector also has a form without the detector (Bare). The explorer runs this form,
// and itself reports crashes to the protocol. Motive: a detector sends heartbeats forever, and the possible orders of
// heartbeats multiply the number of states. Cost: in an exploration, the detector makes no errors, or a bounded number
// of errors.
//
// The explorer imports the simulator only for its ideal signatures, because both hosts need the same signatures.
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
	// Roots are the possible beginnings of a run. There must be at least one.
	Roots []Root
	Model Model
	Step  StepSize
	Order Order
	// Depth is the maximum number of transitions of a run, and States the maximum number of different
	// states visited; 0: no limit.
	Depth  int
	States uint64
	// Memory is how many bytes the program may use before the search ends; 0: no limit.
	Memory uint64
	// For is the maximum duration of the search; 0: no limit. Findings up to then are reported.
	For time.Duration
	// Walks is the number of runs of a search in RandomOrder. They are drawn from Seed.
	Walks int
	Seed  uint64
	// Workers is the number of threads that search; 0: one for each processor.
	Workers int
	// Unreduced takes every transition in every state. Without it, if two orders of the same transitions lead
	// to the same state, the search takes only one of them.
	Unreduced bool
	// Alike names processes that are interchangeable. If two states differ only by an exchange of these processes,
	// only one of the states is visited. The protocol must have a Rename, and no goal may name one of these
	// processes. None of them may have a special role in the protocol. The search does not check this. None may
	// restart, because nothing renames the contents of a log.
	Alike parley.Set
	// Ordered makes the order of requests and deliveries at different processes part of a state, for
	// properties and goals that depend on this order. It increases the number of states a lot.
	Ordered bool
	// Beyond also counts violations of properties that are not promised.
	Beyond bool
	// Only are the names of the properties that count; empty: all properties of the protocol.
	Only []string
	// Goal, if not nil, is searched for instead of a broken property.
	Goal func(*View) bool
	// Looks must be set if Goal calls View.Vars, which is nil otherwise.
	Looks bool
	// All continues after a finding. At most 100 findings are kept.
	All bool
	// Naming returns the name of a process in the texts of findings; nil: process 0, process 1, ...
	Naming func(parley.ID) string
	// Progress, if not nil, is called about once a second.
	Progress func(Progress)
}

// Root is one possible beginning of a run: which processes may lie, and the requests.
type Root struct {
	// Faulty processes form one coalition. If a behavior calls Choose, the search tries every answer. With
	// faulty.Any, the search tries every answer to the protocol's Lies.
	Faulty map[parley.ID]faulty.Behavior
	// Requests to one process are made in this order. In synchronous protocols they are made before round 0.
	// In asynchronous protocols, and in protocols with rounds on demand, they are made at any time.
	Requests []Request
}

// Request is a request to one process.
type Request struct {
	At  parley.ID
	Msg parley.Msg
}

// Model bounds the faults of one run other than lies. The zero Model allows none.
type Model struct {
	// FIFO links keep the order of messages.
	FIFO bool
	// Crashes is the number of crashes. A process crashes between two steps or within one: before its
	// records are durable, or after each of its effects.
	Crashes, Restarts, LostDisks int
	// CrashOnly holds the processes that may crash. The zero set means that any process may crash.
	CrashOnly       parley.Set
	Losses, Doubles int
	// Detect notifies every process that is up of every crash, after all messages that the crashed process
	// had sent to it were delivered or lost.
	Detect bool
	// Overtaking lets the notice of Detect also arrive before messages that the crashed process had sent.
	// Without a bound on delays, such messages may still be in flight when a detector's timeout expires.
	Overtaking bool
	// FalseSuspicions is how often a process is notified of the crash of a process that is up.
	FalseSuspicions int
	// InTime bounds message delays in an asynchronous protocol, for properties that the protocol promises
	// only with such a bound. No message takes longer than Protocol.Relies.Delay (900 ticks if that is 0). So
	// a timer expires only after the arrival of every message that was sent at least that long before. Events
	// between two expirations happen at the time of the first expiration, and requests and suspicions come
	// before time passes. The search does not cover other times of these events. Synchronous protocols are
	// always searched with a bound on delays.
	InTime bool
	// Timeouts is the largest number of timers that expire in a run of an asynchronous protocol without
	// InTime. Any timer may expire at any time, after the timers of the same process that were due before
	// it. In synchronous protocols and with InTime it must be 0, because time passes by itself.
	Timeouts int
}

// StepSize is the size of one transition.
type StepSize uint8

// The step sizes.
const (
	Messages StepSize = iota // one delivery, timer or crash
	Rounds                   // synchronous protocols: everything up to the end of a round
)

// Order is the order in which states are visited.
type Order uint8

// The orders.
const (
	BreadthFirst Order = iota // a finding has the fewest transitions possible
	DepthFirst
	RandomOrder // runs drawn at random; they never prove anything
)

// Outcome says how a search ended.
type Outcome uint8

// The outcomes.
const (
	Exhausted Outcome = iota // everything was visited, and nothing found
	Found
	BudgetHit   // nothing was found so far, which proves nothing
	Interrupted // the same, because the context ended
)

func (o Outcome) String() string {
	return [...]string{"exhausted", "found", "budget hit", "interrupted"}[o]
}

// Report is the result of a search.
type Report struct {
	Progress
	Outcome Outcome
	// Limit names the reason why the search ended before everything was visited: "depth", "states", "memory",
	// "for", "walks" or "interrupt".
	Limit string
	// Seen are the properties of mode Sometimes that held in some state.
	Seen []string
	// Judged says how far each property was tested, in the order of the protocol. It is empty if the search
	// had a goal, or nothing was judged.
	Judged []Judged
	// Ends is the number of terminal states, in which nothing more is due.
	Ends uint64
	// Runs is the number of adversaries, that is, of complete runs that differ in the answers to Choose. Only
	// searches with step size Rounds and order BreadthFirst count it. The largest uint64 stands for all larger
	// numbers.
	Runs uint64
	// Overlooked is the expected number of states missed because another state has the same fingerprint.
	Overlooked float64
	Findings   []Finding
	Clauses    []Clause
}

// Progress is the progress of a search.
type Progress struct {
	States, Moves uint64 // different states, and transitions taken between them
	// Outcomes is the number of computed outcomes of steps. A step in which liars choose among many answers
	// has many outcomes. They are added to States only when all of them are computed.
	Outcomes uint64
	Depth    int
	Frontier uint64 // states that wait to be visited
	Bytes    uint64 // of the set of visited states
	Took     time.Duration
}

// Finding is a run that leads to a broken property or to the goal.
type Finding struct {
	Property string // the broken property; empty: the goal was reached
	Why      string
	Promised bool
	// RunConditions are the conditions by which the promise was judged. Over reports that the run ends in a
	// terminal state.
	RunConditions parley.RunConditions
	Over          bool
	// Run has no steps if the context ended before they were replayed.
	Run Run
}

// NoPanic is the property that no machine panics. A run that breaks it ends with the transition in which a
// machine panics. This transition has no outcome.
const NoPanic = "no panic"

// NeverSilent is faulty.Any without silence: the host chooses among all answers except the last.
var NeverSilent = faulty.Behavior{Name: "outspoken", Model: faulty.Any.Model,
	Choose: func(s *parley.Step, _ *parley.Turn, _, n int) int { return s.Choose(n - 1) }}

// Search checks o and searches. It returns an error if the search cannot be made. If ctx ends first, the
// report covers the search so far.
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

// enoughShorter is how many states shorten visits at most.
const enoughShorter = 100_000

// shorten replaces a finding that may not have the fewest transitions by the shortest run that breaks the
// same property, if that takes at most enoughShorter states.
func shorten(ctx context.Context, o Options, f *Finding) {
	o.Order, o.All, o.States, o.Progress = BreadthFirst, false, enoughShorter, nil
	o.Roots = o.Roots[f.Run.Root : f.Run.Root+1]
	if f.Property != "" {
		o.Only, o.Goal = []string{f.Property}, nil
	}
	// A promised property must not be replaced by one that is not promised.
	o.Beyond = o.Beyond && !f.Promised
	r := newSearch(ctx, o).run()
	if r.Outcome == Found && r.Findings[0].Property == f.Property && len(r.Findings[0].Run.Steps) > 0 {
		root := f.Run.Root
		*f = r.Findings[0]
		f.Run.Root = root
	}
}

// MaxProcesses is the maximum number of processes of an explored system.
const MaxProcesses = 16

const (
	most      = MaxProcesses
	mostAsked = 15 // requests of one process
)

// NotAlikeError is the error of a search in which two processes of [Options.Alike] get different requests.
type NotAlikeError struct{ A, B parley.ID }

func (e *NotAlikeError) Error() string {
	return fmt.Sprintf("processes %d and %d are not alike: they are not asked the same", e.A, e.B)
}

// Check returns an error if the search cannot be made. It sets the number of workers if it is 0.
func (o *Options) Check() error {
	p := o.Protocol
	safe := parley.Everyone(max(p.N, 1)).Minus(o.Model.CrashOnly)
	switch {
	case p.N < 1 || p.N > most:
		return fmt.Errorf("%d processes: 1 to %d can be explored", p.N, most)
	case len(o.Roots) == 0:
		return fmt.Errorf("nothing to begin with")
	case len(o.Roots) > maxGroup:
		return fmt.Errorf("%d initial states: at most %d can be distinguished", len(o.Roots), maxGroup)
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
	case o.Model.CrashOnly != (parley.Set{}) && o.Alike.Minus(safe) != (parley.Set{}) && o.Alike.Minus(safe) != o.Alike:
		return fmt.Errorf("processes of which only some may crash are not alike")
	case o.Alike.Len() > 1 && o.Model.Restarts > 0:
		return fmt.Errorf("processes that restart are not symmetric: " +
			"the protocol does not say how their records change with the names")
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
				return &NotAlikeError{parley.ID(first), id}
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
