// Package commits is a node's part in transactions: what several nodes do all together, or not at all.
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

// Participant is what does this node's part of transactions. Of each that it is asked to
// prepare it is told how it ended, once it has said yes. Different transactions are asked
// of it at the same time; the calls of one come one after the other.
type Participant interface {
	// Prepare does a part of a transaction so far that it can be carried out as well as taken
	// back, whatever fails, and says yes if it is. A no, or an error, aborts. The context
	// ends when nobody waits for the vote any more; to say yes then is a no.
	//
	// A node that comes back after a crash asks to prepare again what it had said yes to
	// and not told the end of, before any new transaction; it cannot say no then. What it
	// has prepared and is not asked for again was aborted.
	Prepare(ctx context.Context, tx string, body []byte) (vote bool, err error)
	// Commit carries it out. After a crash it may be called again for the same transaction.
	Commit(tx string)
	// Abort takes it back, and may be called again like Commit; also for a transaction that
	// Prepare has said no to.
	Abort(tx string)
}

// RemoteParticipant is a Participant that lives on when the node ends, as a service in
// another process does.
type RemoteParticipant interface {
	Participant
	// Begin is called before all else in a life of the node.
	Begin(log *slog.Logger)
	// Again is called in place of Prepare for what the node had said yes to in an earlier life.
	// It returns when that is prepared, or the node ends.
	Again(tx string, body []byte) error
	// End is called when the node has ended, and notes nothing any more. All calls return then,
	// whether or not they have done what they were asked, and will be asked in the next life.
	End()
}

// Protocol is how nodes agree on whether to commit.
type Protocol uint8

// The protocols. With the first two nodes may crash, but not lie; what they promise holds
// however long messages take, and for nodes that come back with what they had on their disks.
// A node that has no disk, or has lost what was on it, answers for nothing of its lives before: who
// waits for that is blocked for good.
const (
	// TwoPhase is two-phase commit with presumed abort and cooperative termination, package
	// commit/twophase: atomic, whatever crashes and comes back. Who has said yes and can not
	// learn the outcome is blocked, and says so, until the coordinator is back, or somebody
	// who knows. It never aborts by itself.
	TwoPhase Protocol = iota
	// Majority decides by ballots, package commit/quorum: atomic as TwoPhase is, and who
	// reaches a majority of those that take part, the coordinator too, decides whoever is
	// down. There are three at least: other nodes help out as witnesses.
	Majority
	// Agreed decides by the votes in a Byzantine order of all nodes, in which, as in package
	// commit/agreed, the votes are agreed on: atomic among correct nodes, and nobody is
	// blocked, while at most M do anything at all and the others keep the times of rounds.
	// A faulty participant can have a transaction aborted, and nothing else. All nodes see
	// what all are to do. A node that comes back, or was held up beyond the time of a round,
	// begins nothing and votes for nothing any more, until all are started anew; of what it
	// had said yes to it asks the others.
	Agreed
)

var protocols = [...]string{"two-phase", "majority", "agreed"}

func (p Protocol) String() string {
	if int(p) < len(protocols) {
		return protocols[p]
	}
	return fmt.Sprintf("commit protocol %d", uint8(p))
}

// ParseProtocol reads what String writes.
func ParseProtocol(text string) (Protocol, error) {
	if i := slices.Index(protocols[:], text); i >= 0 {
		return Protocol(i), nil
	}
	return 0, fmt.Errorf("commit protocol %q: allowed are %s", text, strings.Join(protocols[:], ", "))
}

// Config configures transactions. Protocol is the same at all nodes.
type Config struct {
	Protocol Protocol
	// Votes is how long votes are waited for, 5 s by default: who has not prepared by then
	// counts as one that has said no.
	Votes time.Duration
	// Delay is what a message takes at most, with what its receiver needs to act on it; 250 ms
	// by default. It says when a node that waits for an outcome begins to ask the others.
	Delay time.Duration
	// Open is how many transactions may be under way that this node coordinates, and how
	// many of each other node it takes part in; 4096 by default. Who asks for more is held back.
	// With Agreed it is alike at all nodes.
	Open int
	// Prepares is how many calls of the participant may be under way; 64 by default.
	Prepares int
	// Remember is how many ended transactions this node knows the outcome of; 16384 by default.
	// With Agreed it is alike at all nodes.
	Remember int
}

// check tells what is wrong with a configuration.
func (c Config) check() error {
	switch {
	case int(c.Protocol) >= len(protocols):
		return fmt.Errorf("cluster: there is no %v", c.Protocol)
	case c.Votes < 0 || c.Votes > time.Hour || c.Delay < 0 || c.Delay > time.Hour:
		return fmt.Errorf("cluster: transactions wait for votes %v and for messages %v: allowed is up to an hour",
			c.Votes, c.Delay)
	case c.Open < 0 || c.Open > 1<<16 || c.Prepares < 0 || c.Remember < 0 || c.Remember > 1<<20:
		return fmt.Errorf("cluster: %d open transactions, %d calls, %d outcomes: allowed are up to %d, any and %d",
			c.Open, c.Prepares, c.Remember, 1<<16, 1<<20)
	}
	return nil
}

// WithDefaults fills in what is 0.
func (c Config) WithDefaults() Config {
	c.Votes, c.Delay = cmp.Or(c.Votes, 5*time.Second), cmp.Or(c.Delay, 250*time.Millisecond)
	c.Open, c.Prepares, c.Remember = cmp.Or(c.Open, 4096), cmp.Or(c.Prepares, 64), cmp.Or(c.Remember, 16384)
	return c
}

// The limits of a transaction.
const (
	MaxTx       = service.MaxName // bytes of its name
	MaxPart     = service.MaxPart // bytes of what one participant is to do
	maxPartsAll = 512 << 10       // bytes of what all are to do
)

// The errors of transactions, beside [kernel.ErrClosed] and [kernel.ErrRefused]: nothing is done, nor will be, if
// it is none that is [kernel.ErrUnknown] by errors.Is.
var (
	// ErrBlocked: the outcome can not be known before others are back. See [BlockedError].
	ErrBlocked = errors.New("the transaction is blocked")
	// ErrTaken: there is another transaction of that name. If it is kernel.ErrUnknown, too, it may be the
	// same one, which goes on at nodes that take part, and may commit.
	ErrTaken = errors.New("a transaction has had this name already")
	// ErrNoTransaction: this node knows of no transaction of that name. It was never there,
	// or ended so long ago that it is forgotten, or was aborted before a crash of this node, or
	// is one that others have and this node has no part in.
	ErrNoTransaction = errors.New("no transaction of that name is known here")
)

// BlockedError says who is waited for. It is [ErrBlocked], and [kernel.ErrUnknown].
type BlockedError struct {
	Tx    string
	Waits []string // the members that know the outcome, or without whom nobody does
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("the transaction %q is blocked: its outcome is known when %s can be reached",
		e.Tx, strings.Join(e.Waits, " or "))
}

// Is tells what the error is, too.
func (e *BlockedError) Is(target error) bool {
	return target == ErrBlocked || target == kernel.ErrUnknown
}

// State is how far a transaction has come, as a node knows it.
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

// MarshalText writes what String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Outcome is what a node knows of a transaction.
type Outcome struct {
	Tx    string   `json:"tx"`
	State State    `json:"state"`
	Why   string   `json:"why,omitempty"`   // of an abort, as far as it is known: who said no, and what it said
	Waits []string `json:"waits,omitempty"` // who is waited for, if it is blocked
}

// Status is a node's part in transactions.
type Status struct {
	Protocol  string    `json:"protocol"`
	Open      int       `json:"open"`      // transactions that this node coordinates
	Pending   int       `json:"pending"`   // all whose outcome it waits for
	Preparing int       `json:"preparing"` // calls of the participant under way
	Committed uint64    `json:"committed"`
	Aborted   uint64    `json:"aborted"`
	Blocked   []Outcome `json:"blocked"`
}
