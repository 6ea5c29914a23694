package cluster

import (
	"context"

	"parley/agreement/consensus"
)

// Table returns this node's copy of a state machine. One of a name that is not configured fails
// with ErrNotConfigured whatever it is asked.
func (n *Node) Table(name string) *Table { return n.tables.Table(name) }

// Group returns this node's member of a group. One of a name that is not configured fails with
// ErrNotConfigured whatever it is asked.
func (n *Node) Group(name string) *Group { return n.groups.Group(name) }

// Commit carries out a transaction at all members that are named, each with what it is to
// do, or at none of them: it commits if all of them say yes. It returns when the outcome is
// decided and durable; participants are told at the same time, and those that are down when
// they are back. A caller that asks again under the name gets the same outcome, as long as a node
// that takes part remembers it, and joins those who wait if there is none yet. Ask again at a node that takes part:
// another one asks those anew, and what it says may be that this is aborted if one of them does not
// answer in time, and ErrTaken with ErrUnknown while there is no outcome.
//
// An error that is ErrUnknown, as when the context ends or the node is blocked, says that
// the transaction goes on and may commit: see Outcome. With any other one nothing is done.
func (n *Node) Commit(ctx context.Context, tx string, bodies map[string][]byte) (committed bool, err error) {
	return n.commits.Commit(ctx, tx, bodies)
}

// Outcome tells what this node knows of a transaction. A *BlockedError comes with the
// outcome Pending of one that is blocked.
func (n *Node) Outcome(tx string) (Outcome, error) { return n.commits.Outcome(tx) }

// Agree has all correct nodes agree on a value, which is the one given if this node is
// correct and no more than M lie. It returns when this node has decided. If the context
// ends before, the agreement goes on, and may come to an end: the error is ErrUnknown then, and
// the context's. If it ends before the agreement has begun, it is ErrRefused.
//
// Before the first agreement of a source, an algorithm and an m the others are asked whether they
// are prepared: that takes two rounds if one is silent, and some ten if more than M are.
//
// A node that has come back waits until it takes part again: for some three times as long as
// an agreement lasts with silent nodes, and thrice as long if all have come back at once. One
// that was cut off for long does, too.
//
// It fails without having begun if messages to the others are too slow for the length of
// a round, with a *RoundError.
func (n *Node) Agree(ctx context.Context, q AgreeRequest) (Decision, error) {
	return n.agree.Agree(ctx, q)
}

// AgreeVector is interactive consistency: all correct nodes that ask under one name get the
// same vector, in which the value of every correct node that was in time with it stands
// for that node; unless what that node asks for at a time is more than one value has room
// for, and then it takes turns.
//
// An agreement begins when m+1 nodes have asked for it and waited, each its own time to
// gather: then one of them is correct, and liars alone cannot use up a name. In time is
// who asks, less one message delay, before the first correct node has waited. Who asks
// later gets the vector without its value, as long as it is remembered: that is for 1024
// more names of the same algorithm and m, unless more than n-m-1 end at once: who comes back learns
// the names from the others, and not the values, so that it gets ErrAbstained for those that
// were agreed on without it.
//
// If the context ends before, this node takes its value back; it may be in the vector all
// the same: the error is ErrUnknown then, and to ask again under the name tells. Fewer than
// m+1 nodes that ask wait until their contexts end.
func (n *Node) AgreeVector(ctx context.Context, p VectorRequest) (Vector, error) {
	return n.agree.AgreeVector(ctx, p)
}

// Consensus is Propose and then a rule of the vector: [consensus.Majority] if it has no
// function, or one of the others, or the caller's own. In the vector otherwise stands for
// a node that had handed in nothing. Rule and otherwise must be alike at all nodes.
func (n *Node) Consensus(ctx context.Context, p VectorRequest, rule consensus.Rule, otherwise []byte,
) ([]byte, Vector, error) {
	return n.agree.Consensus(ctx, p, rule, otherwise)
}

// Decisions has a function called for every decision of this node, whoever asked, until
// stop: as they fall, which need not be in the order of slots. Those on no value are left
// out. The function is
// called within a step of the node: it must not block, nor ask for an agreement.
func (n *Node) Decisions(each func(Decision)) (stop Stop) { return n.agree.Decisions(each) }

// Clock tells the cluster's time.
func (n *Node) Clock() Reading { return n.clock.Now() }
