package service

import (
	"iter"

	"parley"
	"parley/commit/problem"
)

// Transaction is what a process knows of a transaction.
type Transaction struct {
	Name        string
	Coordinator parley.ID
	Outcome     problem.Outcome
	Why         AbortReason // of an abort
	Blocked     bool
	Waits       parley.Set // if it is blocked: the members that may know the outcome
	Asked       bool       // the coordinator has asked for the vote
	Voted       bool       // the vote was yes, and it is given
	Yes         parley.Set // in an order: the participants that have voted yes
}

func (m *Machine) look(t *transaction) Transaction {
	return Transaction{
		Name: t.spec.Name, Coordinator: CoordinatorOf(t.path), Outcome: t.outcome, Why: t.why, Blocked: t.blocked,
		Waits: m.waits(t), Asked: t.asked || m.c.Majority, Voted: t.given && t.yes,
	}
}

// Find returns the transaction that has a name, if the process remembers it.
func (m *Machine) Find(name string) (Transaction, bool) {
	if t := m.names[name]; t != nil {
		return m.look(t), true
	}
	e := m.history.Named(name)
	if e == nil {
		return Transaction{}, false
	}
	return Transaction{Name: e.Name, Coordinator: CoordinatorOf(e.Path), Outcome: e.Outcome, Why: e.Why}, true
}

// Live goes through the transactions that are not over, by coordinator and age.
func (m *Machine) Live() iter.Seq[Transaction] {
	return func(yield func(Transaction) bool) {
		for id := range m.of {
			for _, t := range m.of[id].list {
				if !yield(m.look(t)) {
					return
				}
			}
		}
	}
}
