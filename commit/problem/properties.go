package problem

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley"
)

// The names of the properties.
const (
	Atomicity     = "atomicity"
	Validity      = "commit validity"
	NonTriviality = "non-triviality"
	Stability     = "stability"
	Termination   = "termination"
	NonBlocking   = "non-blocking"
)

// Uniform returns the properties of atomic commitment among the voters, all of which may crash and restart.
func Uniform(voters parley.Set) []parley.Property {
	return list(voters, func(*parley.History, parley.ID) bool { return true })
}

// AmongCorrect returns the properties for processes that may lie: the decisions and votes of a faulty process
// do not count.
func AmongCorrect(voters parley.Set) []parley.Property {
	return list(voters, (*parley.History).Correct)
}

// list returns the properties for the processes that count.
func list(voters parley.Set, counts func(h *parley.History, id parley.ID) bool) []parley.Property {
	v := electorate{voters, counts}
	return []parley.Property{
		{
			Name: Atomicity, Says: "no process commits if another aborts, whatever crashes and restarts happen (AC1)",
			Mode: parley.Always, Check: v.atomicity, Vacuous: v.decisions(2, Undecided),
		},
		{
			Name: Validity, Says: "a process commits only if all processes have voted yes (AC3)",
			Mode: parley.Always, Check: v.validity, Vacuous: v.decisions(1, Commit),
		},
		{
			Name: NonTriviality, Says: "if all vote yes at the beginning and nothing fails, no process aborts (AC4)",
			Mode: parley.Always, Check: v.nonTriviality, Vacuous: v.troubled,
		},
		{
			Name: Stability, Says: "a process decides at most once; after a restart it decides as before " +
				"(AC2)",
			Mode: parley.Always, Check: v.stability, Vacuous: v.decisions(1, Undecided),
		},
		{
			Name: Termination, Says: "every correct process that votes eventually decides (AC5)",
			Mode: parley.Eventually, Check: v.termination,
		},
		{
			Name: NonBlocking, Says: "a crashed process never blocks a process that is up",
			Mode: parley.Always, Check: v.nonBlocking,
			Vacuous: func(h *parley.History) string {
				if h.Faulty.Len()+len(h.Restarts) == 0 {
					return "no process crashes"
				}
				return ""
			},
		},
	}
}

// electorate says which processes vote, and whose actions count.
type electorate struct {
	voters parley.Set
	counts func(h *parley.History, id parley.ID) bool
}

// decisions iterates over the delivered outcomes in order of time, including those of crashed processes.
func decisions(h *parley.History) iter.Seq2[*parley.ExternalEvent, Outcome] {
	return func(yield func(*parley.ExternalEvent, Outcome) bool) {
		for i := range h.Deliveries {
			if d := &h.Deliveries[i]; d.Msg.Kind == parley.Decide && !yield(d, ReadOutcome(d.Msg.Body)) {
				return
			}
		}
	}
}

// counted iterates over the decisions of the processes that count.
func (v electorate) counted(h *parley.History) iter.Seq2[*parley.ExternalEvent, Outcome] {
	return func(yield func(*parley.ExternalEvent, Outcome) bool) {
		for d, o := range decisions(h) {
			if v.counts(h, d.At) && !yield(d, o) {
				return
			}
		}
	}
}

// vote is the first vote of a process, and its request.
type vote struct {
	yes bool
	*parley.ExternalEvent
}

func votes(h *parley.History) map[parley.ID]vote {
	out := make(map[parley.ID]vote)
	for i := range h.Requests {
		q := &h.Requests[i]
		if _, again := out[q.At]; q.Msg.Kind == parley.Propose && !again {
			if yes, ok := Vote(q.Msg.Body); ok {
				out[q.At] = vote{yes, q}
			}
		}
	}
	return out
}

func (v electorate) atomicity(h *parley.History) error {
	var first [Abort + 1]*parley.ExternalEvent
	for d, o := range v.counted(h) {
		if o == Undecided {
			return fmt.Errorf("%s decided %s, which is no outcome", h.Name(d.At), parley.Printable(d.Msg.Body))
		}
		if first[o] == nil {
			first[o] = d
		}
		if first[Commit] != nil && first[Abort] != nil {
			return fmt.Errorf("%s committed and %s aborted", h.Name(first[Commit].At), h.Name(first[Abort].At))
		}
	}
	return nil
}

func (v electorate) validity(h *parley.History) error {
	votes := votes(h)
	for d, o := range v.counted(h) {
		if o != Commit {
			continue
		}
		var err error
		for id := range v.voters.All() {
			given, ok := votes[id]
			did := ""
			switch {
			case !v.counts(h, id):
			case !ok:
				did = "did not vote"
			case !given.yes:
				did = "voted no"
			case given.Order > d.Order:
				did = "had not voted yet"
			}
			if did != "" {
				err = fmt.Errorf("%s committed, but %s %s", h.Name(d.At), h.Name(id), did)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nonTriviality excuses late votes: how late a vote may be depends on the protocol, but one at time 0 is in
// time for all.
func (v electorate) nonTriviality(h *parley.History) error {
	for d, o := range decisions(h) {
		if o == Abort && v.troubled(h) == "" {
			return fmt.Errorf("%s aborted, although all voted yes and nothing failed", h.Name(d.At))
		}
	}
	return nil
}

// troubled returns why a process may abort, or "" if all vote yes at time 0 and nothing fails.
func (v electorate) troubled(h *parley.History) string {
	if h.Faulty.Len() > 0 || len(h.Restarts) > 0 {
		return "a process fails"
	}
	votes := votes(h)
	for id := range v.voters.All() {
		if given, ok := votes[id]; !ok || !given.yes || given.When > 0 {
			return "not all processes vote yes at the beginning"
		}
	}
	return ""
}

// decisions returns the Vacuous of a property that needs the given number of processes to decide on an
// outcome; Undecided means any.
func (v electorate) decisions(number int, on Outcome) func(h *parley.History) string {
	return func(h *parley.History) string {
		var decided parley.Set
		for d, o := range v.counted(h) {
			if on == Undecided || o == on {
				decided.Add(d.At)
			}
		}
		switch {
		case decided.Len() >= number:
			return ""
		case on == Commit:
			return "no process commits"
		case number == 1:
			return "no process decides"
		}
		return "fewer than two processes decide"
	}
}

func (v electorate) stability(h *parley.History) error {
	last := make(map[parley.ID]*parley.ExternalEvent)
	for d := range v.counted(h) {
		before := last[d.At]
		last[d.At] = d
		switch {
		case before == nil:
		case !bytes.Equal(before.Msg.Body, d.Msg.Body):
			return fmt.Errorf("%s decided %s and then %s", h.Name(d.At),
				parley.Printable(before.Msg.Body), parley.Printable(d.Msg.Body))
		case !CameBack(h, d.At, before.Order, d.Order):
			return fmt.Errorf("%s decided twice", h.Name(d.At))
		}
	}
	return nil
}

// CameBack reports whether a process restarted between two events.
func CameBack(h *parley.History, id parley.ID, since, until uint64) bool {
	return slices.ContainsFunc(h.Restarts, func(r parley.ExternalEvent) bool {
		return r.At == id && r.Order > since && r.Order < until
	})
}

func (v electorate) termination(h *parley.History) error {
	if !h.Over {
		return nil
	}
	var decided, blocked parley.Set
	for d := range decisions(h) {
		decided.Add(d.At)
	}
	for _, i := range h.Indications {
		if i.Msg.Kind == Blocked {
			blocked.Add(i.At)
		}
	}
	votes := votes(h)
	var stuck []string
	for id := range v.voters.Minus(decided).Minus(h.Faulty).All() {
		if _, voted := votes[id]; !voted {
			continue
		}
		if !blocked.Has(id) {
			return fmt.Errorf("%s did not decide", h.Name(id))
		}
		stuck = append(stuck, h.Name(id))
	}
	switch last := len(stuck) - 1; {
	case last == 0:
		return fmt.Errorf("%s is blocked", stuck[0])
	case last > 0:
		return fmt.Errorf("%s and %s are blocked", strings.Join(stuck[:last], ", "), stuck[last])
	}
	return nil
}

func (v electorate) nonBlocking(h *parley.History) error {
	for _, i := range h.Indications {
		if i.Msg.Kind == Blocked && h.Correct(i.At) && !CameBack(h, i.At, 0, i.Order) {
			return fmt.Errorf("%s has not crashed and was blocked at tick %d", h.Name(i.At), i.When)
		}
	}
	return nil
}
