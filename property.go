package parley

import "cmp"

// ExternalEvent is one request made of a process from above, or one delivery or
// indication that a process made to above.
type ExternalEvent struct {
	At   ID // the process
	From ID // of a delivery: whom it came from; else the process itself
	When Tick
	// Order numbers the happenings of a run: of any two, whatever list they are in,
	// that with the smaller number came first.
	Order uint64
	Path  Path // where inside a composed machine it was delivered or indicated
	Msg   Msg
}

// History is what a run looks like from above: what the processes were asked,
// what they delivered and what they indicated, each in order of time.
type History struct {
	N           int
	Faulty      Set // nothing is promised about these
	Requests    []ExternalEvent
	Deliveries  []ExternalEvent
	Indications []ExternalEvent // suspicions, views and the like
	// Restarts are the times at which crashed processes came back.
	Restarts []ExternalEvent
	// Over tells that the run has ended: nothing more was due, or the time was up.
	Over bool
	// Naming is how a reader calls the processes; nil: process 0, process 1, ...
	Naming func(ID) string
}

// Name is how the reader calls a process.
func (h *History) Name(id ID) string {
	if h.Naming != nil {
		return h.Naming(id)
	}
	return "process " + id.String()
}

// Correct tells whether the process is not faulty.
func (h *History) Correct(id ID) bool { return !h.Faulty.Has(id) }

// Mode says when a property is to hold.
type Mode uint8

// The modes of a property.
const (
	Always     Mode = iota // in every state of every run
	Eventually             // at the end of every run
	Sometimes              // in at least one run: guards against runs in which nothing happens
)

// Property is one sentence about runs, named as the field names it.
type Property struct {
	Name string
	Says string // the sentence
	Mode Mode
	// Check returns nil if the property holds of the history, else what broke
	// it. An Eventually property asks h.Over first.
	Check func(h *History) error
	// Vacuous returns why the property demands nothing of a history, "" if it demands
	// something; nil: it always does. It counts where Check finds nothing broken.
	Vacuous func(h *History) string
	// Measure, if not nil, says how near the run came to a bound that the property
	// speaks of, in the same unit.
	Measure func(h *History) string
}

// RunConditions are the circumstances of a run, which decide what a theorem
// promises for it.
type RunConditions struct {
	N, M   int
	Faulty int        // how many processes are in fact faulty
	Worst  FaultModel // the worst that any of them does
	// Away is how many correct processes were down for a time and started again.
	Away int
	// SourceFaulty is meaningful where one process is special.
	SourceFaulty bool
	// Network and Processes are what else went wrong in the run.
	Network   NetworkFaults
	Processes ProcessFaults
}

// NetworkFaults are what links did between processes that were up.
type NetworkFaults struct {
	Lost         bool // a message was lost
	Doubled      bool // a message came twice
	Reordered    bool // links do not keep the order of messages
	Late         bool // a message took longer than the protocol was told
	Cut          bool // some pair was cut off from each other, for a time or for good
	Disconnected bool // in the end correct processes are not joined by correct ones
}

// ProcessFaults are what processes suffered without being faulty for good, and
// what they believed of one another.
type ProcessFaults struct {
	Restarted bool // one came back after a crash
	LostDisk  bool // one came back without what it had made durable
	Paused    bool // one stood still for a time, or its clock ran wrong
	Suspected bool // one was suspected although it had not crashed
	Minority  bool // in the end fewer than a majority are correct and connected
}

// Promise is what the theory says of one property under given assumptions.
type Promise struct {
	Property string
	Holds    bool   // promised
	Because  string // the theorem and its bound, or what it lacks
}

// Promised promises a property because of something, unless something else is the case.
func Promised(property, because, unless string) Promise {
	return Promise{Property: property, Holds: unless == "", Because: cmp.Or(unless, because)}
}

// Verdict is the outcome of one property in one run beside what was promised.
type Verdict struct {
	Property Property
	Promise  Promise
	Broken   error // nil: it held
	// Vacuous is why the property demands nothing of the run; "": it demands something.
	Vacuous  string
	Measured string
}

// The outcomes of a verdict, in the words of reports and of JSON.
const (
	Held              = "held"
	Violated          = "violated"
	NotPromisedHeld   = "not promised: held"
	NotPromisedBroken = "not promised: broken"
	NotApplicable     = "not applicable"
	Seen              = "seen"
	NotSeen           = "not seen"
)

// Outcome returns the verdict in one of the words above.
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

// Violated tells whether a promise was broken.
func (v Verdict) Violated() bool { return v.Promise.Holds && v.Broken != nil }

// missedRounds tells what made somebody who is not called faulty miss a round. A restart does
// not count where processes rejoin.
func (a RunConditions) missedRounds(rejoins bool) string {
	switch {
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "links lost messages"
	case a.Network.Late:
		return "messages were late"
	case a.Processes.Paused:
		return "a process stood still or its clock was wrong"
	case !rejoins && (a.Processes.Restarted || a.Processes.LostDisk):
		return "a process was down for a time"
	}
	return ""
}

// Judge checks every property of p against a history that is over. Faults that
// are worse than p's model void what p promises, and so does, where there are
// rounds, whatever makes a process miss one; but see [Protocol.Rejoins].
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
			promise = Promise{Property: property.Name, Because: "no theorem speaks of it"}
		}
		if promise.Holds && a.Faulty > 0 && a.Worst > p.Faults {
			promise.Holds = false
			promise.Because = "a fault worse than " + p.Faults.String() + " faults, the model of " + p.Name
		}
		if why := a.missedRounds(p.Rejoins); promise.Holds && p.Timing == Synchronous && why != "" {
			promise.Holds = false
			promise.Because = "rounds assume that what is sent in one arrives in it, and " + why
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
