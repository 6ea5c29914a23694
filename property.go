package parley

import (
	"cmp"
	"fmt"
)

// ExternalEvent is a request to a process, or a delivery or indication of a process.
type ExternalEvent struct {
	At   ID // the process
	From ID // the origin of a delivery; for other events, the process itself
	When Tick
	// Order numbers the events of a run across all lists. The event with the smaller number came first.
	Order uint64
	Path  Path // the part of a composed machine that delivered or indicated it
	Msg   Msg
}

// History is a run as a user of the protocol sees it: the requests to the processes, their deliveries, and
// their indications. Each list is in order of time.
type History struct {
	N           int
	Faulty      Set // nothing is promised about these processes
	Requests    []ExternalEvent
	Deliveries  []ExternalEvent
	Indications []ExternalEvent // suspicions, views and the like
	// Restarts are the times at which crashed processes restarted.
	Restarts []ExternalEvent
	// Over means that the run has ended: nothing more was due, or the time was up.
	Over bool
	// Naming returns the name that users see for a process; nil means process 0, process 1, ...
	Naming func(ID) string
}

// Name returns the name that users see for a process.
func (h *History) Name(id ID) string {
	if h.Naming != nil {
		return h.Naming(id)
	}
	return "process " + id.String()
}

// Correct reports whether the process is not faulty.
func (h *History) Correct(id ID) bool { return !h.Faulty.Has(id) }

// Mode says when a property must hold.
type Mode uint8

// The modes of a property.
const (
	Always     Mode = iota // in every state of every run
	Eventually             // at the end of every run
	Sometimes              // in at least one run; detects tests in which nothing happens
)

// Property is one claim about runs, named as in the literature.
type Property struct {
	Name string
	Says string // the claim as a sentence
	Mode Mode
	// Check returns nil if the property holds for the history, and otherwise an error that says what broke the
	// property. An Eventually property checks h.Over first.
	Check func(h *History) error
	// Vacuous returns why the property demands nothing of a history, or "" if it demands something. If
	// Vacuous is nil, the property demands something of every history. The result matters only if Check
	// returns nil.
	Vacuous func(h *History) string
	// Measure, if not nil, returns the value to compare with the bound that the property states, in the unit
	// of that bound.
	Measure func(h *History) string
	// Tainted, if not nil, returns the Orders of the events that depend on what breaks the property, for pictures.
	Tainted func(h *History) []uint64
}

// RunConditions are the facts about a run that determine what a theorem promises for the run.
type RunConditions struct {
	N, M   int
	Faulty int        // number of processes that are faulty in this run
	Worst  FaultModel // the worst model among the faulty processes
	// Away is the number of correct processes that crashed and restarted.
	Away int
	// SourceFaulty means that the source is faulty, in protocols that have a source.
	SourceFaulty bool
	// Network and Processes are the other faults of the run.
	Network   NetworkFaults
	Processes ProcessFaults
}

// Excess says that Faulty processes are faulty, and m = M: the reason for a promise that does not hold because Faulty
// is larger than M.
func (a RunConditions) Excess() string { return a.ExcessOf(a.Faulty, "is faulty", "are faulty") }

// ExcessDown says so of processes that are faulty or were down for a time; failed is their number.
func (a RunConditions) ExcessDown(failed int) string {
	return a.ExcessOf(failed, "is faulty or was down for a time", "are faulty or were down for a time")
}

// ExcessOf says so of failed processes that have the words is or, if there are several, are in common.
func (a RunConditions) ExcessOf(failed int, is, are string) string {
	if failed == 1 {
		return fmt.Sprintf("1 process %s, and m = %d", is, a.M)
	}
	return fmt.Sprintf("%d processes %s, and m = %d", failed, are, a.M)
}

// NetworkFaults are the faults of links between processes that were up.
type NetworkFaults struct {
	Lost         bool // a message was lost
	Doubled      bool // a message arrived twice
	Reordered    bool // links do not keep the order of messages
	Late         bool // a message took longer than the protocol's bound
	Cut          bool // two processes were disconnected, for a time or for good
	Disconnected bool // at the end, correct processes are not connected through correct processes
}

// ProcessFaults are false suspicions, and faults of processes that do not count as faulty.
type ProcessFaults struct {
	Restarted bool // a process restarted after a crash
	LostDisk  bool // a process restarted without its durable state
	Paused    bool // a process was paused, or its clock was wrong
	Suspected bool // a process was suspected although it had not crashed
	Minority  bool // at the end, fewer than a majority are correct and connected
}

// Promise says whether the theory promises a property under given run conditions, and why.
type Promise struct {
	Property string
	Holds    bool   // promised
	Because  string // the theorem and its bound, or the condition that does not hold
	Proof    string // why the theorem is true, in a few sentences; may be empty
}

// Proved adds to the promises that hold the sketches of their proofs, by property.
func Proved(promises []Promise, proofs map[string]string) []Promise {
	for i := range promises {
		if p := &promises[i]; p.Holds {
			p.Proof = cmp.Or(proofs[p.Property], p.Proof)
		}
	}
	return promises
}

// Promised returns the promise of a property. If the argument unless is empty, the property is promised, and the
// argument because is the reason. Otherwise the property is not promised, and unless is the reason.
func Promised(property, because, unless string) Promise {
	return Promise{Property: property, Holds: unless == "", Because: cmp.Or(unless, because)}
}

// Verdict is the outcome of one property in one run, with what was promised.
type Verdict struct {
	Property Property
	Promise  Promise
	Broken   error // nil: the property held
	// Vacuous is why the property demands nothing of the run, or "" if it demands something.
	Vacuous  string
	Measured string
}

// The outcomes of a verdict, in the words of reports and of JSON.
const (
	Held              = "held"
	Violated          = "VIOLATED"
	NotPromisedHeld   = "not promised: held"
	NotPromisedBroken = "not promised: broken"
	NotApplicable     = "not applicable"
	Seen              = "seen"
	NotSeen           = "not seen"
)

// Outcome returns one of the constants from Held to NotSeen.
func (v Verdict) Outcome() string {
	switch {
	case v.Property.Mode == Sometimes && v.Broken == nil:
		return Seen
	case v.Property.Mode == Sometimes:
		return NotSeen
	case v.Violated():
		return Violated
	case v.Broken != nil:
		return NotPromisedBroken
	case v.Vacuous != "":
		return NotApplicable
	case v.Promise.Holds:
		return Held
	}
	return NotPromisedHeld
}

// Violated reports whether the run broke a promise.
func (v Verdict) Violated() bool { return v.Promise.Holds && v.Broken != nil }

// missedRounds returns what made a process that does not count as faulty miss a round, or "".
// A restart does not count if processes rejoin.
func (a RunConditions) missedRounds(rejoins bool) string {
	switch {
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "links lost messages"
	case a.Network.Late:
		return "messages were late"
	case a.Processes.Paused:
		return "a process was paused or its clock was wrong"
	case !rejoins && (a.Processes.Restarted || a.Processes.LostDisk):
		return "a process was down for a time"
	}
	return ""
}

// Judge checks every property of p against a finished history. Faults that are worse than p's model void p's
// promises. In a synchronous protocol, every event that makes a process miss a round also voids the promises, except
// a restart if [Protocol.Rejoins] is set.
func Judge(p Protocol, a RunConditions, h *History) []Verdict {
	promises := make(map[string]Promise)
	if p.Promises != nil {
		for _, promise := range p.Promises(a) {
			promises[promise.Property] = promise
		}
	}
	var out []Verdict
	for _, property := range p.Properties {
		promise, known := promises[property.Name]
		if !known {
			promise = Promise{Property: property.Name, Because: "no theorem covers it"}
		}
		if promise.Holds && a.Faulty > 0 && a.Worst > p.Faults {
			promise.Holds = false
			promise.Because = p.Name + " tolerates " + p.Faults.String() + " faults, but a fault was worse"
		}
		if why := a.missedRounds(p.Rejoins); promise.Holds && p.Timing == Synchronous && why != "" {
			promise.Holds = false
			promise.Because = "in rounds, every message must arrive in the round in which it is sent, but " + why +
				"; this is not one of the m faults"
		}
		v := Verdict{Property: property, Promise: promise, Broken: property.Check(h)}
		if v.Broken == nil && property.Vacuous != nil {
			v.Vacuous = property.Vacuous(h)
		}
		if property.Measure != nil && v.Vacuous == "" {
			v.Measured = property.Measure(h)
		}
		out = append(out, v)
	}
	return out
}
