package cluster

import (
	"context"

	"parley/agreement/consensus"
)

// Table returns this node's replica of a state machine. If the name is not configured, all methods of the result
// fail with ErrNotConfigured.
func (n *Node) Table(name string) *Table { return n.tables.Table(name) }

// Group returns this node's membership in a group. If the name is not configured, all methods of the result fail
// with ErrNotConfigured.
func (n *Node) Group(name string) *Group { return n.groups.Group(name) }

// Commit commits a transaction at all named members, each with its own body, or aborts it at all of them. It
// commits if all of them vote yes. Commit returns when the outcome is decided and durable. Participants learn
// the outcome at the same time. Participants that are down learn it after their restart.
//
// A retry under the same name gets the same outcome, as long as a member of the transaction remembers it.
// While there is no outcome, the retry waits with the other callers. Retry only at a member of the
// transaction. Any other node starts the transaction again. It may report that the transaction was aborted
// because a member did not answer in time, or ErrTaken with ErrUnknown while there is no outcome.
//
// If an error matches ErrUnknown, the transaction continues and may commit (see Outcome). This happens, for example,
// if ctx ends or if the node is blocked. Any other error means that the transaction has no effect.
func (n *Node) Commit(ctx context.Context, tx string, bodies map[string][]byte) (committed bool, err error) {
	return n.commits.Commit(ctx, tx, bodies)
}

// Outcome returns what this node knows about a transaction. For a blocked transaction, it returns the outcome
// Pending and a *BlockedError.
func (n *Node) Outcome(tx string) (Outcome, error) { return n.commits.Outcome(tx) }

// Agree makes all correct nodes decide on the same value. If this node is correct and at most M nodes are faulty,
// they decide on q.Value. Agree returns when this node has decided. If ctx ends first, the agreement continues, and
// the nodes may still decide. The error then matches ErrUnknown and the cause of ctx. If ctx ends before the
// agreement has begun, the error matches ErrRefused.
//
// Before the first agreement of a source, algorithm, and m, the other nodes report whether they are prepared. These
// reports take two rounds if one node is silent, and about ten rounds if more than M nodes are silent.
//
// After a restart or a long disconnection, Agree waits until the node takes part again. This takes about three times
// as long as an agreement with silent nodes. If all nodes restarted at once, it takes about nine times as long.
//
// If messages to the other nodes are too slow for the length of a round, Agree fails with a *RoundError and has
// no effect.
//
// The algorithm Tetra uses no rounds. Nodes never decide differently, however late messages are. But they may decide on
// nothing: then the Decision has Nothing set, and the error is nil. While messages are late, the nodes may not decide
// at all, so ctx should have a deadline. A restarted node takes part at once, but not in agreements that were under
// way.
func (n *Node) Agree(ctx context.Context, q AgreeRequest) (Decision, error) {
	return n.agree.Agree(ctx, q)
}

// AgreeVector is interactive consistency: all correct nodes that call it with the same name get the same vector. The
// vector holds the value of every correct node that called in time. All pending calls of a node must fit into
// MaxValue bytes. The calls that do not fit wait for the next agreement.
//
// An agreement begins when m+1 nodes have called and each of them has waited for the time of its own p.Gather. At
// least one of these nodes is correct, so faulty nodes alone cannot use up a name. A call is in time if it comes at
// least one message delay before the first correct node has finished waiting. A later call gets the vector, but the
// vector lacks the later call's value.
//
// Nodes remember the last 1024 names of each algorithm and m, with their vectors. After the nodes have forgotten a
// name, they can decide it again. If more than n-m-1 nodes end at once, the nodes may forget all names. A restarted
// node learns the names from the others, but not the values. So it gets ErrAbstained for vectors that were decided
// without it.
//
// If ctx ends first, this node withdraws its value. The value may be in the vector anyway, so the error matches
// ErrUnknown. A retry under the same name returns the vector. If fewer than m+1 nodes call, the calls wait until
// their contexts end.
func (n *Node) AgreeVector(ctx context.Context, p VectorRequest) (Vector, error) {
	return n.agree.AgreeVector(ctx, p)
}

// Consensus calls AgreeVector and applies a rule to the vector. The rule is from package consensus, or the caller's
// own. A rule without a function means [consensus.Majority]. If a node submitted no value, the rule uses the argument
// otherwise for this node. The arguments rule and otherwise must be identical on all nodes. Consensus needs n > 2m.
func (n *Node) Consensus(ctx context.Context, p VectorRequest, rule consensus.Rule, otherwise []byte,
) ([]byte, Vector, error) {
	return n.agree.Consensus(ctx, p, rule, otherwise)
}

// Decisions calls the function each for every decision of this node, whichever node requested the agreement, until
// stop is called. The order of the calls is the order in which the node decides, not necessarily the order of slots.
// There is no call for a decision that the source sent no value. The function each runs within a step of the node. So
// it must not block, and must not request an agreement.
func (n *Node) Decisions(each func(Decision)) (stop Stop) { return n.agree.Decisions(each) }

// Clock returns the cluster's time.
func (n *Node) Clock() Reading { return n.clock.Now() }
