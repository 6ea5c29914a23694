package cluster

import (
	"iter"

	"parley"
	"parley/cluster/kernel"
	commit "parley/commit/problem"
	"parley/commit/service"
	"parley/membership/expel"
)

// LoseFrom makes a node drop another one's messages of transactions.
func LoseFrom(n *Node, id parley.ID) { n.members.Shut(id, expel.Views) }

// transactions calls look with the transaction machine of a node.
func transactions(n *Node, look func(m decider)) {
	n.k.Host.Process(kernel.CommitChannel).Do(func(m parley.Machine, _ parley.Tick) { look(m.(decider)) })
}

type decider interface {
	Find(name string) (service.Transaction, bool)
	Live() iter.Seq[service.Transaction]
}

// HasVoted reports whether a node has voted yes to a transaction, and has not decided.
func HasVoted(n *Node, tx string) (yes bool) {
	transactions(n, func(m decider) {
		t, known := m.Find(tx)
		yes = known && t.Voted && t.Outcome == commit.Undecided
	})
	return yes
}

// KeptTransactions returns how many unfinished transactions a node knows.
func KeptTransactions(n *Node) (k int) {
	transactions(n, func(m decider) {
		for range m.Live() {
			k++
		}
	})
	return k
}

// IsAsked reports whether the coordinator has requested a node's vote.
func IsAsked(n *Node, tx string) (asked bool) {
	transactions(n, func(m decider) {
		t, known := m.Find(tx)
		asked = known && t.Asked
	})
	return asked
}

// VotesOrdered returns how many yes votes for a transaction a node has seen in the order.
func VotesOrdered(n *Node, tx string) (yes int) {
	transactions(n, func(m decider) {
		t, _ := m.Find(tx)
		yes = t.Yes.Len()
	})
	return yes
}
