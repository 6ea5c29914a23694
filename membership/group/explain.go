package group

import (
	"fmt"
	"iter"
	"strings"

	"parley"
	"parley/agreement/ballot"
)

// explain iterates over the rows that a reader sees for a message.
func explain(
	c Config, services []LayerSpec, e parley.Env, m parley.Msg, name func(parley.ID) string,
) iter.Seq[string] {
	w := width(len(services))
	if child := int(e.Path & (1<<w - 1)); child > 0 {
		if child > len(services) || services[child-1].Explain == nil {
			return func(func(string) bool) {}
		}
		e.Path >>= w
		return services[child-1].Explain(e, m, name)
	}
	return func(yield func(string) bool) { yield(row(c, len(services), e, m, name)) }
}

func row(c Config, layers int, e parley.Env, m parley.Msg, name func(parley.ID) string) string {
	switch m.Kind {
	case ballot.Prepare:
		return fmt.Sprintf("who is to be in view %d? (ballot %d)", e.Epoch+1, m.Seq)
	case ballot.Promise:
		return fmt.Sprintf("report for view %d (ballot %d)", e.Epoch+1, m.Seq)
	case ballot.Refuse:
		return fmt.Sprintf("too late: ballot %d is promised", m.Seq)
	case ballot.Accept:
		return "accept " + next(c, layers, m, name)
	case ballot.Accepted:
		return fmt.Sprintf("view %d accepted (ballot %d)", e.Epoch+1, m.Seq)
	case ballot.Decision:
		return "decided on " + next(c, layers, m, name)
	case Beat:
		return fmt.Sprintf("alive in view %d", e.Epoch)
	case DecisionQuery:
		return fmt.Sprintf("what ended view %d?", e.Epoch)
	case Join:
		return fmt.Sprintf("let me join, incarnation %d", m.Seq)
	case Snapshot:
		return fmt.Sprintf("state of view %d at position %d", e.Epoch, m.Seq)
	case Ready:
		return "caught up"
	case Forward:
		return fmt.Sprintf("%s delivered of %s", place(m.Seq), name(m.Origin))
	case Install:
		return fmt.Sprintf("what ended view %d, %s", e.Epoch, place(m.Seq))
	}
	return "a message of no kind"
}

func place(position uint64) string { return fmt.Sprintf("at position %d", position) }

// next describes the view that a decision makes.
func next(c Config, layers int, m parley.Msg, name func(parley.ID) string) string {
	d, ok := readDecision(m.Body, c.N, layers)
	if !ok {
		return "a view that cannot be read"
	}
	var who []string
	for id := range d.next.view.Members.All() {
		who = append(who, name(id))
	}
	return fmt.Sprintf("view %d of %s", d.next.view.Number, strings.Join(who, ", "))
}
