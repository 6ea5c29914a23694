package cluster

import (
	"parley"
	commit "parley/commit/problem"
	"parley/membership/expel"
)

// LoseFrom has a node take no more transactions' messages of another one.
func LoseFrom(n *Node, id parley.ID) { n.admin.closed[id].what.Store(expel.Views) }

// HasVoted tells whether a node has said yes to a transaction, and has not decided.
func HasVoted(n *Node, tx string) (yes bool) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		t := machine.(*transactions).names[tx]
		yes = t != nil && t.given && t.yes && t.outcome == commit.Undecided
	})
	return yes
}

// KeptTransactions is how many transactions a node still knows of that are not past.
func KeptTransactions(n *Node) (k int) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) { k = len(machine.(*transactions).live) })
	return k
}

// IsAsked tells whether the coordinator has asked a node for its vote.
func IsAsked(n *Node, tx string) (asked bool) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		m := machine.(*transactions)
		t := m.names[tx]
		asked = t != nil && (t.asked || m.c.protocol == Majority)
	})
	return asked
}

// VotesOrdered is how many have said yes to a transaction in the order, as a node knows.
func VotesOrdered(n *Node, tx string) int {
	o := n.commits.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.open[tx]; t != nil {
		return t.yes.Len()
	}
	return 0
}
