package cluster

import (
	"context"
	"time"

	"parley/cluster/clocks"
	"parley/cluster/commits"
)

// ClockConfig is that of the clocks which the nodes keep together, alike at all of them.
type ClockConfig = clocks.Config

// Reading is what a node's clock shows.
type Reading = clocks.Reading

// Lateness is how late a process woke.
type Lateness = clocks.Lateness

// Wakes measures how late this process wakes, until the context ends. A pause is what takes
// more than a fifth of a round.
func Wakes(ctx context.Context, round time.Duration) Lateness { return clocks.Wakes(ctx, round) }

// Participant is what does this node's part of transactions.
type Participant = commits.Participant

// RemoteParticipant is a Participant that lives on when the node ends.
type RemoteParticipant = commits.RemoteParticipant

// CommitProtocol is how nodes agree on whether to commit.
type CommitProtocol = commits.Protocol

// The protocols of transactions.
const (
	TwoPhase = commits.TwoPhase
	Majority = commits.Majority
	Agreed   = commits.Agreed
)

// ParseCommitProtocol reads the name of a protocol.
func ParseCommitProtocol(text string) (CommitProtocol, error) { return commits.ParseProtocol(text) }

// CommitConfig is that of transactions.
type CommitConfig = commits.Config

// The limits of a transaction, in bytes.
const (
	MaxTx   = commits.MaxTx
	MaxPart = commits.MaxPart
)

// The errors of transactions, beside [ErrClosed], [ErrRefused] and [ErrOut].
var (
	ErrBlocked       = commits.ErrBlocked
	ErrTaken         = commits.ErrTaken
	ErrNoTransaction = commits.ErrNoTransaction
)

// BlockedError says who is waited for.
type BlockedError = commits.BlockedError

// TxState is how far a transaction has come, as a node knows it.
type TxState = commits.State

// The states of a transaction.
const (
	Pending   = commits.Pending
	Committed = commits.Committed
	Aborted   = commits.Aborted
)

// Outcome is what a node knows of a transaction.
type Outcome = commits.Outcome

// CommitStatus is this node's part in transactions.
type CommitStatus = commits.Status
