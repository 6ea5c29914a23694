package cluster

import (
	"parley"
	commit "parley/commit/problem"
	"parley/commit/service"
	"parley/membership/expel"
)

// LoseFrom has a node take no more transactions' messages of another one.
func LoseFrom(n *Node, id parley.ID) { n.admin.closed[id].what.Store(expel.Views) }

// HasVoted tells whether a node has said yes to a transaction, and has not decided.
func HasVoted(n *Node, tx string) (yes bool) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		t, known := machine.(*service.Machine).Find(tx)
		yes = known && t.Voted && t.Outcome == commit.Undecided
	})
	return yes
}

// KeptTransactions is how many transactions a node still knows of that are not past.
func KeptTransactions(n *Node) (k int) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		for range machine.(*service.Machine).Live() {
			k++
		}
	})
	return k
}

// IsAsked tells whether the coordinator has asked a node for its vote.
func IsAsked(n *Node, tx string) (asked bool) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		t, known := machine.(*service.Machine).Find(tx)
		asked = known && t.Asked
	})
	return asked
}

// VotesOrdered is how many have said yes to a transaction in the order, as a node knows.
func VotesOrdered(n *Node, tx string) (yes int) {
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		t, _ := machine.(decider).Find(tx)
		yes = t.Yes.Len()
	})
	return yes
}
