// Package commits implements a node's service for transactions: several nodes all commit a transaction, or all
// abort it.
package commits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/cluster/kernel"
	"parley/commit/service"
)

// Participant carries out a node's part of transactions. It learns the outcome of each transaction for which it voted
// yes. Calls for different transactions are concurrent. Calls for the same transaction come one after another.
type Participant interface {
	// Prepare prepares the body, so that it can later be committed or aborted, whatever fails. Then it votes yes. A
	// no, or an error, aborts the transaction. When no caller waits for the vote any more, ctx ends. After that a yes
	// counts as a no.
	//
	// After a crash, a node calls Prepare again for each transaction for which it had voted yes and does not know the
	// outcome. These calls come before any new transaction, and Prepare must not vote no. If the node does not call
	// Prepare again for a prepared transaction, the transaction was aborted.
	Prepare(ctx context.Context, tx string, body []byte) (vote bool, err error)
	// Commit commits the transaction. After a crash it may be called again.
	Commit(tx string)
	// Abort aborts the transaction. It may be called again like Commit, and also for a transaction for which
	// Prepare voted no.
	Abort(tx string)
}

// RemoteParticipant is a Participant that outlives the node, such as a service in another process.
type RemoteParticipant interface {
	Participant
	// Begin is called before all other methods, once in each incarnation of the node.
	Begin(log *slog.Logger)
	// Again is called instead of Prepare for a transaction for which an earlier incarnation voted yes. It
	// returns when the transaction is prepared or the node ends.
	Again(tx string, body []byte) error
	// End is called when the node has ended and records nothing more. All other calls must then return, even if they
	// are not finished. The next incarnation of the node repeats them.
	End()
}

// Protocol says how nodes decide whether to commit a transaction.
type Protocol uint8

// The protocols. With TwoPhase and Majority, nodes may crash, but must not be Byzantine. The promises hold however
// long messages take, and also for nodes that restart with their disks. A node without a disk, or with a lost disk,
// knows nothing about its earlier incarnations. Transactions that wait for it stay blocked.
const (
	// TwoPhase is two-phase commit with presumed abort and cooperative termination (package commit/twophase). It is
	// atomic under any crashes and restarts. If a node has voted yes and cannot learn the outcome, it is blocked, and
	// reports this. It is blocked until the coordinator or another node that knows the outcome recovers. It never
	// aborts by its own decision.
	TwoPhase Protocol = iota
	// Majority decides by ballots (package commit/quorum). It is atomic like TwoPhase. A node that reaches a majority
	// of the participants, including the coordinator, can decide even if all others are down. At least three nodes
	// vote. If there are fewer participants, other nodes vote as witnesses.
	Majority
	// Agreed decides by votes that are broadcast in a Byzantine order of all nodes. While at most M nodes are faulty,
	// it is atomic among correct nodes, however late messages are, and no node is blocked. A faulty participant can
	// only abort a transaction. All nodes see the bodies of all participants. A node that restarts with its folder
	// takes part again, and knows all outcomes. A node without its folder takes part again when m+1 others have
	// admitted it. Until then it refuses transactions. A node that was away for so long that it has missed votes which
	// the others no longer keep (8 MiB) begins no transactions and votes for none until all nodes are started from
	// scratch. It asks the others for the outcomes of transactions for which it had voted yes.
	Agreed
)

var protocols = [...]string{"two-phase", "majority", "agreed"}

func (p Protocol) String() string {
	if int(p) < len(protocols) {
		return protocols[p]
	}
	return fmt.Sprintf("commit protocol %d", uint8(p))
}

// ParseProtocol parses the result of String.
func ParseProtocol(text string) (Protocol, error) {
	if i := slices.Index(protocols[:], text); i >= 0 {
		return Protocol(i), nil
	}
	return 0, fmt.Errorf("commit protocol %q: allowed are %s", text, strings.Join(protocols[:], ", "))
}

// Config configures transactions. Protocol must be identical on all nodes. A zero field means its default.
type Config struct {
	Protocol Protocol
	// Votes is how long the coordinator waits for votes, by default 5 s. If a participant has not voted by then, its
	// vote counts as a no.
	Votes time.Duration
	// Delay is the maximum time until a message has arrived and its receiver has acted on it, by default 250 ms. It
	// determines when a node that waits for an outcome begins to ask the others.
	Delay time.Duration
	// Open is how many transactions of each coordinator may be in flight at this node, by default 4096. The
	// coordinator is this node, or another node in whose transactions this node takes part. Further calls block. With
	// Agreed, Open must be identical on all nodes.
	Open int
	// Prepares is how many calls of the participant may be in flight, by default 64.
	Prepares int
	// Remember is how many finished transactions this node remembers, with their outcomes, by default 16384. With
	// Agreed, Remember must be identical on all nodes.
	Remember int
}

// check returns an error if a configuration is invalid.
func (c Config) check() error {
	switch {
	case int(c.Protocol) >= len(protocols):
		return fmt.Errorf("cluster: unknown commit protocol %v", c.Protocol)
	case c.Votes < 0 || c.Votes > time.Hour || c.Delay < 0 || c.Delay > time.Hour:
		return fmt.Errorf("cluster: transactions wait for votes %v and for messages %v: allowed is up to an hour",
			c.Votes, c.Delay)
	case c.Open < 0 || c.Open > 1<<16 || c.Prepares < 0 || c.Remember < 0 || c.Remember > 1<<20:
		return fmt.Errorf("cluster: %d open transactions, %d calls, %d outcomes: allowed are up to %d, any and %d",
			c.Open, c.Prepares, c.Remember, 1<<16, 1<<20)
	}
	return nil
}

// WithDefaults returns the configuration with zero fields replaced by their defaults.
func (c Config) WithDefaults() Config {
	c.Votes, c.Delay = cmp.Or(c.Votes, 5*time.Second), cmp.Or(c.Delay, 250*time.Millisecond)
	c.Open, c.Prepares, c.Remember = cmp.Or(c.Open, 4096), cmp.Or(c.Prepares, 64), cmp.Or(c.Remember, 16384)
	return c
}

// The limits of a transaction.
const (
	MaxTx       = service.MaxName // bytes of its name
	MaxPart     = service.MaxPart // bytes of one participant's body
	maxPartsAll = 512 << 10       // bytes of all bodies
)

// The errors of transactions, beside [kernel.ErrClosed] and [kernel.ErrRefused]. If an error does not match
// [kernel.ErrUnknown], the transaction has no effect, now or later.
var (
	// ErrBlocked: this node cannot learn the outcome before other nodes recover. See [BlockedError].
	ErrBlocked = errors.New("the transaction is blocked until other nodes recover")
	// ErrTaken: another transaction has this name. If the error also matches kernel.ErrUnknown, the name may belong
	// to this transaction itself, because it was also begun at another node. It then continues at its members, and
	// may commit.
	ErrTaken = errors.New("another transaction has this name already: choose a new one")
	// ErrNoTransaction: this node knows no transaction of that name. The transaction never existed, is so old
	// that its outcome was dropped, was aborted before a crash of this node, or does not concern this node.
	ErrNoTransaction = errors.New("this node knows no transaction of that name")
)

// BlockedError names the members that a blocked transaction waits for. It matches [ErrBlocked] and
// [kernel.ErrUnknown].
type BlockedError struct {
	Tx    string
	Waits []string // the outcome is known when one of these members can be reached
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("the transaction %q is blocked: its outcome is known when %s can be reached",
		e.Tx, strings.Join(e.Waits, " or "))
}

// Is reports whether target is ErrBlocked or kernel.ErrUnknown.
func (e *BlockedError) Is(target error) bool {
	return target == ErrBlocked || target == kernel.ErrUnknown
}

// State is the state of a transaction as a node knows it.
type State uint8

// The states.
const (
	Pending State = iota
	Committed
	Aborted
)

func (s State) String() string {
	return [...]string{"pending", "committed", "aborted"}[min(s, Aborted)]
}

// MarshalText returns the text of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Outcome is what a node knows about a transaction.
type Outcome struct {
	Tx    string   `json:"tx"`
	State State    `json:"state"`
	Why   string   `json:"why,omitempty"`   // reason of an abort, if known: who said no, and its text
	Waits []string `json:"waits,omitempty"` // members that a blocked transaction waits for
}

// Status is the status of transactions at a node.
type Status struct {
	Protocol  string    `json:"protocol"`
	Open      int       `json:"open"`      // transactions that this node coordinates
	Pending   int       `json:"pending"`   // transactions for whose outcome this node waits
	Preparing int       `json:"preparing"` // calls of the participant in flight
	Committed uint64    `json:"committed"`
	Aborted   uint64    `json:"aborted"`
	Blocked   []Outcome `json:"blocked"`
}
