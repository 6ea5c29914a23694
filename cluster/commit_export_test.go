package cluster

import (
	"iter"

	"parley"
	"parley/cluster/kernel"
	commit "parley/commit/problem"
	"parley/commit/service"
	"parley/membership/expel"
)

// LoseFrom has a node take no more transactions' messages of another one.
func LoseFrom(n *Node, id parley.ID) { n.members.Shut(id, expel.Views) }

// transactions has a function look at the transactions of a node.
func transactions(n *Node, look func(m decider)) {
	n.k.Host.Process(kernel.CommitChannel).Do(func(m parley.Machine, _ parley.Tick) { look(m.(decider)) })
}

type decider interface {
	Find(name string) (service.Transaction, bool)
	Live() iter.Seq[service.Transaction]
}

// HasVoted tells whether a node has said yes to a transaction, and has not decided.
func HasVoted(n *Node, tx string) (yes bool) {
	transactions(n, func(m decider) {
		t, known := m.Find(tx)
		yes = known && t.Voted && t.Outcome == commit.Undecided
	})
	return yes
}

// KeptTransactions is how many transactions a node still knows of that are not past.
func KeptTransactions(n *Node) (k int) {
	transactions(n, func(m decider) {
		for range m.Live() {
			k++
		}
	})
	return k
}

// IsAsked tells whether the coordinator has asked a node for its vote.
func IsAsked(n *Node, tx string) (asked bool) {
	transactions(n, func(m decider) {
		t, known := m.Find(tx)
		asked = known && t.Asked
	})
	return asked
}

// VotesOrdered is how many have said yes to a transaction in the order, as a node knows.
func VotesOrdered(n *Node, tx string) (yes int) {
	transactions(n, func(m decider) {
		t, _ := m.Find(tx)
		yes = t.Yes.Len()
	})
	return yes
}
