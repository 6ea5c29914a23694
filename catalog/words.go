package catalog

import (
	"fmt"
	"iter"
	"strings"

	"parley"
	"parley/agreement/stream"
	"parley/clock/dated"
	commit "parley/commit/problem"
	transactions "parley/commit/service"
	"parley/membership/detector"
	"parley/membership/expel"
	"parley/membership/group"
	"parley/replica/service"
)

// words say what a protocol is asked, delivers or indicates; "" if they have none.
type words func(m parley.Msg, name func(parley.ID) string) string

// worded adds words for what passes between a protocol and what is above it. Its own
// Explain speaks of messages.
func worded(p parley.Protocol, say words) parley.Protocol {
	return remade(p, func(made parley.Protocol) parley.Protocol {
		of := made.Explain
		made.Explain = func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			if m.Kind >= parley.Local {
				if row := say(m, name); row != "" {
					return func(yield func(string) bool) { yield(row) }
				}
			}
			if of == nil {
				return func(func(string) bool) {}
			}
			return of(e, m, name)
		}
		return made
	})
}

// ofStream are the words of agreements on request.
func ofStream(m parley.Msg, _ func(parley.ID) string) string {
	switch m.Kind {
	case stream.Undecided:
		return fmt.Sprintf("that nobody decides on its request %d", m.Value)
	case stream.Unanswered:
		return fmt.Sprintf("that it does not know what is decided on its request %d", m.Value)
	case stream.Withdrawn:
		return fmt.Sprintf("to withdraw its request %d", m.Value)
	}
	return ""
}

// ofDetector are the words of a detector beneath.
func ofDetector(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case detector.Trust:
		return "trusts " + name(m.Origin) + " again"
	case detector.Broke:
		return "that its link with " + name(m.Origin) + " broke"
	case detector.Mended:
		return "that its link with " + name(m.Origin) + " is whole again"
	case detector.Resting:
		return "sends no more signs of life"
	}
	return ""
}

// ofExpulsion are the words of votes to expel.
func ofExpulsion(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case expel.Linked:
		return "that it is linked to " + name(m.Origin)
	case expel.Excluded:
		return "that a view has left out " + name(m.Origin)
	case expel.Shut:
		return "shuts " + name(m.Origin) + " out"
	case expel.Opened:
		return "hears " + name(m.Origin) + " again"
	case expel.Expelled:
		return "knows that it is expelled"
	}
	return ""
}

// ofViews are the words of a group beneath, or alone.
func ofViews(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case group.Leave:
		return "to leave"
	case group.State:
		return fmt.Sprintf("to give its state at position %d", m.Seq)
	case group.Out:
		if m.Value == 1 {
			return "has left"
		}
		return "is out"
	case group.Wanted:
		return fmt.Sprintf("gives its state at position %d to %s", m.Seq, name(m.Origin))
	case group.Restored:
		return fmt.Sprintf("has the state at position %d", m.Seq)
	case group.Resumed:
		return fmt.Sprintf("goes on from its log behind position %d", m.Seq)
	}
	return ""
}

// ofCommit are the words of commitment.
func ofCommit(m parley.Msg, _ func(parley.ID) string) string {
	if m.Kind == commit.Blocked {
		return "is blocked"
	}
	return ""
}

// ofTransactions are the words of transactions side by side.
func ofTransactions(m parley.Msg, _ func(parley.ID) string) string {
	switch m.Kind {
	case transactions.Voted:
		transaction, _, _ := strings.Cut(string(m.Body), " ")
		return fmt.Sprintf("votes %s on %s", [...]string{"no", "yes"}[m.Seq&1], transaction)
	case transactions.Ended:
		return fmt.Sprintf("%s, as before", m.Body)
	case transactions.Refused:
		if m.Seq == transactions.NameTaken {
			return fmt.Sprintf("does not begin %s: another transaction has the name", m.Body)
		}
		return fmt.Sprintf("does not begin %s: too many are open", m.Body)
	}
	return ""
}

// ofClock are the words of clocks, which say themselves what they do.
func ofClock(m parley.Msg, _ func(parley.ID) string) string { return string(m.Body) }

// ofDate are the words of clocks with a date.
func ofDate(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case dated.Dated:
		return fmt.Sprintf("has the date %d", int64(m.Value))
	case dated.Beyond:
		return fmt.Sprintf("finds the clock of %s ahead by %d", name(m.Origin), int64(m.Value))
	}
	return ofClock(m, name)
}

// ofService are the words of a replicated service.
func ofService(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case service.Command:
		return fmt.Sprintf("%s, command %d of client %d", parley.Printable(m.Body), m.Seq, m.Value)
	case service.Answer:
		return fmt.Sprintf("answers %s at %d", parley.Printable(m.Body), m.Seq)
	case service.Configure:
		return "for another setup"
	}
	return ofViews(m, name)
}
