// Package problem states atomic commitment: processes that have each done a part
// of one transaction vote on it, and all of them commit it or all abort it.
// Protocols solve it; this package says what it is to have solved it.
//
// A process is given its vote by a Request of kind Propose whose Body is "yes" or
// "no". Once is enough; the first vote is final. A process announces the outcome
// by delivering a message of kind Decide with Body "commit" or "abort", where
// Origin is the process that began the transaction. One that comes back after a
// crash delivers the outcome again if it is not sure that it had, so whoever is
// above takes a second "commit" for the first. A process that has voted yes, knows
// no outcome and can find none with those it reaches says so by an indication of
// kind [Blocked]; it goes on asking, and may still decide.
//
// A yes is a promise: who has said it can no longer decide alone. Whoever has not
// may abort at any time.
//
// The five properties are those of Bernstein, Hadzilacos and Goodman, Concurrency
// Control and Recovery in Database Systems (1987), section 7.3, AC1 to AC5. As
// there they are uniform: what a process decided counts even if it crashed later.
package problem

import (
	"fmt"
	"slices"
	"strings"

	"parley"
)

// Blocked is the indication that a process has voted yes and can neither commit nor
// abort with what those it reaches know. No field is used.
const Blocked parley.Kind = parley.Indication + 0x38

// Vote reads a vote: "yes" or "no". The 1 and the 0 of agreement are understood as
// well, as a command line gives them to processes of any protocol.
func Vote(body []byte) (yes, ok bool) {
	switch string(body) {
	case "yes", "1":
		return true, true
	case "no", "0":
		return false, true
	}
	return false, false
}

// Given reads the vote that a process is given by a request. It refuses what is no vote, and one that is late.
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

// Outcome is what becomes of a transaction.
type Outcome uint8

// The outcomes. Undecided is that of a termination rule where nothing follows from
// what the processes know: they are blocked.
const (
	Undecided Outcome = iota
	Commit
	Abort
)

// String gives "commit" and "abort" as they are delivered, and "blocked".
func (o Outcome) String() string { return [...]string{"blocked", "commit", "abort"}[min(o, Abort)] }

// Decided is the message that announces the outcome; began is the process that
// began the transaction.
func (o Outcome) Decided(began parley.ID) parley.Msg {
	if o != Commit && o != Abort {
		panic("problem: nothing is decided")
	}
	return parley.Msg{Kind: parley.Decide, Origin: began, Body: []byte(o.String())}
}

// ReadOutcome reads an outcome as it is delivered. Undecided stands for anything else.
func ReadOutcome(body []byte) Outcome {
	for _, o := range []Outcome{Commit, Abort} {
		if string(body) == o.String() {
			return o
		}
	}
	return Undecided
}

// Bit is how protocols send an outcome in a Value: 1 stands for Commit, 0 for Abort.
func (o Outcome) Bit() uint64 {
	if o == Commit {
		return 1
	}
	return 0
}

// OfBit is the outcome that a Value stands for.
func OfBit(value uint64) Outcome {
	if value == 1 {
		return Commit
	}
	return Abort
}

// State is how far a process has come with a transaction, as it tells others.
type State uint8

// The states. Everyone begins as Initial and ends as Committed or Aborted.
const (
	Initial      State = iota // has not voted yes; may abort
	Uncertain                 // has voted yes, and knows no more
	Precommitted              // has voted yes, and knows that all have
	Committed
	Aborted
)

var states = []string{"initial", "uncertain", "precommitted", "committed", "aborted"}

// StateNames are the names of all states, in their order.
func StateNames() []string { return slices.Clone(states) }

// String gives the state's name.
func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Outcome is what a process in the state knows to be decided.
func (s State) Outcome() Outcome {
	switch s {
	case Committed:
		return Commit
	case Aborted:
		return Abort
	}
	return Undecided
}

// Reached is the state of a process that knows the outcome.
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
