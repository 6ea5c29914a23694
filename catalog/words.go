package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/stream"
	"parley/clock/dated"
	commit "parley/commit/problem"
	transactions "parley/commit/service"
	"parley/membership/detector"
	"parley/membership/expel"
	"parley/membership/group"
	"parley/replica/rsm"
)

// words returns a request, delivery or indication of a protocol in words, or "" if it has none.
type words func(m parley.Msg, name func(parley.ID) string) string

// worded adds words for what passes between a protocol and the layer above. The protocol's own Explain covers
// messages.
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

// phrases holds words by kind. ORIGIN stands for a process's name, and SEQ, VALUE and BODY for these fields.
type phrases map[parley.Kind]string

func (p phrases) of(m parley.Msg, name func(parley.ID) string) string {
	phrase, has := p[m.Kind]
	if !has {
		return ""
	}
	return strings.NewReplacer("ORIGIN", name(m.Origin), "SEQ", strconv.FormatUint(m.Seq, 10),
		"VALUE", strconv.FormatUint(m.Value, 10), "BODY", parley.Printable(m.Body)).Replace(phrase)
}

// The words of agreements on request, of a detector beneath, of votes to expel, and of commit.
var (
	ofStream = phrases{
		stream.Undecided:  "that nobody decides on its request VALUE",
		stream.Nothing:    "that slot SEQ is decided on nothing",
		stream.Unanswered: "that it does not know what is decided on its request VALUE",
		stream.Withdrawn:  "to withdraw its request VALUE",
	}.of
	ofDetector = phrases{
		detector.Trust:   "trusts ORIGIN again",
		detector.Broke:   "that its link with ORIGIN broke",
		detector.Mended:  "that its link with ORIGIN is whole again",
		detector.Resting: "sends no more signs of life",
	}.of
	ofExpulsion = phrases{
		expel.Linked:   "that it is linked to ORIGIN",
		expel.Excluded: "that a view has left out ORIGIN",
		expel.Shut:     "shuts ORIGIN out",
		expel.Opened:   "hears ORIGIN again",
		expel.Expelled: "knows that it is expelled",
	}.of
	ofCommit = phrases{commit.Blocked: "is blocked"}.of
)

// ofViews returns the words of a group, beneath or alone.
func ofViews(m parley.Msg, name func(parley.ID) string) string {
	if m.Kind == group.Excluded && m.Value == 1 {
		return "has left"
	}
	return inGroup.of(m, name)
}

var inGroup = phrases{
	group.Leave:             "to leave",
	group.State:             "to give its state at position SEQ",
	group.Excluded:          "is excluded",
	group.SnapshotWanted:    "gives its state at position SEQ to ORIGIN",
	group.SnapshotInstalled: "has the state at position SEQ",
	group.ReplayStarted:     "continues from its log after position SEQ",
}

// ofTransactions returns the words of transactions.
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

// ofClock returns the words of clocks, which describe themselves.
func ofClock(m parley.Msg, _ func(parley.ID) string) string { return string(m.Body) }

// ofDate returns the words of clocks with a date.
func ofDate(m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case dated.Dated:
		return fmt.Sprintf("has the date %d", int64(m.Value))
	case dated.Beyond:
		return fmt.Sprintf("finds the clock of %s ahead by %d", name(m.Origin), int64(m.Value))
	}
	return ofClock(m, name)
}

// ofService returns the words of a replicated service.
func ofService(m parley.Msg, name func(parley.ID) string) string {
	return cmp.Or(inService.of(m, name), ofViews(m, name))
}

var inService = phrases{
	rsm.Command:   "BODY, command SEQ of client VALUE",
	rsm.Answer:    "answers BODY at SEQ",
	rsm.Configure: "for another setup",
}
