// Package problem states the properties of atomic commitment: several processes have each done a part of one
// transaction. They vote on the transaction, and all of them commit it or all abort it. Other packages have the
// protocols.
//
// A process gets its vote by a Request of kind Propose with Body "yes" or "no". The first vote is final. A process
// announces the outcome by delivering a message of kind Decide with Body "commit" or "abort". Origin is the process
// that began the transaction. After a restart, a process may deliver the outcome again, because it does not know
// whether it has already delivered it. So the layer above must treat a second "commit" as a repetition.
//
// A process indicates [Blocked] if it has voted yes, knows no outcome, and learns none from the processes that it
// can reach. It continues to ask, and may still decide.
//
// A yes is a promise: a process that has voted yes can no longer decide alone. A process that has not voted
// yes may abort at any time.
//
// The five properties are AC1 to AC5 of Bernstein, Hadzilacos and Goodman, Concurrency Control and Recovery in
// Database Systems (1987), section 7.3. As in the book, they are uniform: the decision of a process counts even if
// the process crashes later.
package problem

import (
	"fmt"
	"slices"
	"strings"

	"parley"
)

// Blocked indicates that a process has voted yes, and that it and the processes that it can reach know too little to
// commit or abort. It uses no field.
const Blocked parley.Kind = parley.Indication + 0x38

// Vote reads a vote: "yes" or "no". It also accepts 1 and 0, because a command line gives these values to processes
// of any protocol.
func Vote(body []byte) (yes, ok bool) {
	switch string(body) {
	case "yes", "1":
		return true, true
	case "no", "0":
		return false, true
	}
	return false, false
}

// Given reads the vote in a request. It refuses a request without a vote, and any vote if late is set.
func Given(s *parley.Step, m parley.Msg, late bool) (yes, ok bool) {
	yes, ok = Vote(m.Body)
	switch {
	case m.Kind != parley.Propose || !ok:
		s.Refuse(s.Self, "not a vote")
	case late:
		s.Refuse(s.Self, "second vote, or one too late")
	default:
		return yes, true
	}
	return false, false
}

// Outcome is the outcome of a transaction.
type Outcome uint8

// The outcomes. Undecided is the result of a termination rule if nothing follows from what the processes know:
// they are blocked.
const (
	Undecided Outcome = iota
	Commit
	Abort
)

// String returns "commit" or "abort", as they are delivered, or "blocked".
func (o Outcome) String() string { return [...]string{"blocked", "commit", "abort"}[min(o, Abort)] }

// Decided returns the message that announces the outcome. The argument began is the process that began the
// transaction. Decided panics if o is Undecided.
func (o Outcome) Decided(began parley.ID) parley.Msg {
	if o != Commit && o != Abort {
		panic("problem: nothing is decided")
	}
	return parley.Msg{Kind: parley.Decide, Origin: began, Body: []byte(o.String())}
}

// ReadOutcome reads an outcome as it is delivered. It returns Undecided for anything else.
func ReadOutcome(body []byte) Outcome {
	for _, o := range []Outcome{Commit, Abort} {
		if string(body) == o.String() {
			return o
		}
	}
	return Undecided
}

// Bit returns the outcome as protocols send it in a Value: 1 for Commit, 0 for Abort.
func (o Outcome) Bit() uint64 {
	if o == Commit {
		return 1
	}
	return 0
}

// OfBit returns the outcome of a Value: Commit for 1, otherwise Abort.
func OfBit(value uint64) Outcome {
	if value == 1 {
		return Commit
	}
	return Abort
}

// State is the progress of a process with a transaction, as it is sent to others.
type State uint8

// The states. A process begins as Initial and ends as Committed or Aborted.
const (
	Initial      State = iota // has not voted yes; may abort
	Uncertain                 // has voted yes, and knows nothing more
	Precommitted              // has voted yes, and knows that all have voted yes
	Committed
	Aborted
)

var states = []string{"initial", "uncertain", "precommitted", "committed", "aborted"}

// StateNames returns the names of all states, in order.
func StateNames() []string { return slices.Clone(states) }

// String returns the name of the state.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Outcome returns the outcome that a process in the state knows, or Undecided.
func (s State) Outcome() Outcome {
	switch s {
	case Committed:
		return Commit
	case Aborted:
		return Abort
	}
	return Undecided
}

// Reached returns the state of a process that knows the outcome. It panics if o is Undecided.
func (o Outcome) Reached() State {
	switch o {
	case Commit:
		return Committed
	case Abort:
		return Aborted
	}
	panic("problem: no state is reached by being blocked")
}

// ParseState reads the name of a state.
func ParseState(text string) (State, error) {
	if i := slices.Index(states, text); i >= 0 {
		return State(i), nil
	}
	last := len(states) - 1
	return 0, fmt.Errorf("state %q: allowed are %s and %s", text, strings.Join(states[:last], ", "), states[last])
}
