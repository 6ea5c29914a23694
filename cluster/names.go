package cluster

import (
	"context"
	"io"
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/agree"
	"parley/cluster/clocks"
	"parley/cluster/commits"
	"parley/cluster/groups"
	"parley/cluster/kernel"
	"parley/cluster/measure"
	"parley/cluster/mesh"
	"parley/cluster/tables"
	"parley/cluster/traces"
	"parley/trace"
)

// Links is how nodes are linked.
type Links = mesh.Links

// The forms of links.
const (
	Streams   = mesh.Streams
	Datagrams = mesh.Datagrams
	Calls     = mesh.Calls
)

// ParseLinks reads the name of a form.
func ParseLinks(text string) (Links, error) { return mesh.Parse(text) }

// Algorithm is the algorithm by which nodes agree on the value of one of them.
type Algorithm = stream.Algorithm

// The algorithms.
const (
	EIG       = stream.EIG       // exponential information gathering: n > 3m, m+1 rounds
	OM        = stream.OM        // oral messages, the recursion: n > 3m, m+1 rounds
	SM        = stream.SM        // signed messages: n >= m+2, m+1 rounds
	PhaseKing = stream.PhaseKing // short messages: n > 3m, 3m+4 rounds
)

// ParseAlgorithm reads the name of an algorithm.
func ParseAlgorithm(text string) (Algorithm, error) { return stream.ParseAlgorithm(text) }

// The limits of values, of names and of proposals, in bytes.
const (
	MaxValue    = stream.MaxValue
	MaxName     = stream.MaxName
	MaxProposal = stream.MaxProposal
)

// AgreementConfig is a kind of agreement: by an algorithm, in spite of M liars.
type AgreementConfig = agree.Config

// AgreeRequest asks for an agreement on a value of this node's.
type AgreeRequest = agree.Request

// Decision is what all correct nodes agree on.
type Decision = agree.Decision

// Stop ends what the call that returned it began: call it, or its Close.
type Stop = agree.Stop

// VectorRequest hands in this node's value for an agreement of all nodes on the vector of their values.
type VectorRequest = agree.VectorRequest

// Vector is what all correct nodes agree on under one name.
type Vector = agree.Vector

// Errors of agreements, beside [ErrExpelled] and [RoundError]. Each error of [Node.Agree], [Node.AgreeVector]
// and [Node.Consensus] is, by [errors.Is], either [ErrUnknown]: it was handed to the machine, and the
// others may decide, on this node's value or without it, or may have; or else nothing came
// of it, nor will. That is [ErrTooLarge] of a value, [ErrRefused] of what makes no sense, was not
// begun before the context ended, or may not be ([ErrDraining] and a RoundError are ErrRefused).
var (
	// ErrAbstained is the error of an agreement in which this node took no part, for it
	// was held up beyond the time of a round, heard fewer than are correct, or was out: it
	// had come back, or lost touch; or of one for which its value came too late. It is ErrUnknown,
	// too, if the others may have decided on this node's value, and else ErrRefused, which holds
	// if no more than M lie or are late, this node among them.
	ErrAbstained = kernel.ErrAbstained
	// ErrClosed is the error of a node that was closed. It is ErrUnknown, too, of what was begun.
	ErrClosed = kernel.ErrClosed
	// ErrReserved is the error of the one value that stands for no value. It is ErrRefused, too.
	ErrReserved = agree.ErrReserved
)

// RoundError is the error of an agreement that may not begin because rounds are too short.
type RoundError = agree.RoundError

// Slow is a node to which messages take too long.
type Slow = agree.Slow

// StreamStatus is one stream of agreements: those of one algorithm, m and source.
type StreamStatus = agree.StreamStatus

// SlotStatus counts the slots of agreements, which are numbered from 1.
type SlotStatus = kernel.SlotStatus

// SlotProtocol is the protocol of one agreement among those of a trace whose machine is a
// stream of them: see [agree.SlotProtocol].
func SlotProtocol(h trace.Header) (p parley.Protocol, last int, ok bool) {
	return agree.SlotProtocol(h)
}

// Level is what a group promises, and against whom.
type Level = kernel.Level

// The levels.
const (
	Total     = kernel.Total
	Reliable  = kernel.Reliable
	Uniform   = kernel.Uniform
	FIFO      = kernel.FIFO
	Causal    = kernel.Causal
	Atomic    = kernel.Atomic
	Byzantine = kernel.Byzantine
)

// ParseLevel reads the name of a level.
func ParseLevel(text string) (Level, error) { return kernel.ParseLevel(text) }

// GroupConfig configures one group. Name and Level are the same at all nodes.
type GroupConfig = groups.Config

// Delivery is one payload that a group has delivered.
type Delivery = groups.Delivery

// Group is this node's member of one group.
type Group = groups.Group

// Subscription reads what a group delivers here. It is for one goroutine.
type Subscription = groups.Subscription

// GoneError is [ErrNotRetained], with the first position from which on all is kept here.
type GoneError = groups.GoneError

// The errors of groups and tables, beside [ErrClosed], [ErrRefused] and [ErrUnknown].
var (
	// ErrNotMember is the error of a member that the group has excluded, for good or until it has
	// joined again.
	ErrNotMember = kernel.ErrNotMember
	// ErrTooLarge is the error of a payload that no pack has room for, or of a value.
	ErrTooLarge = kernel.ErrTooLarge
	// ErrSlowSubscriber is the error of a subscription that fell behind what is kept: it is cut off.
	ErrSlowSubscriber = groups.ErrSlowSubscriber
	// ErrNotRetained is the error of a subscription to what is no longer kept here, or has never been.
	ErrNotRetained = groups.ErrNotRetained
	// ErrNotConfigured is the error of every call to a group or table that the configuration does
	// not have.
	ErrNotConfigured = kernel.ErrNotConfigured
)

// GroupStatus is this node's part in a group.
type GroupStatus = groups.Status

// ViewStatus is the last view that was installed, of a group that has views.
type ViewStatus = kernel.ViewStatus

// TableConfig configures one replicated state machine. It is the same at all nodes.
type TableConfig = tables.Config

// MaxCommand is how many bytes a command of a table may have.
const MaxCommand = tables.MaxCommand

// Table is this node's copy of a replicated state machine.
type Table = tables.Table

// Session is a client of a table that numbers its commands, and asks again what it got no
// answer to.
type Session = tables.Session

// KeyValue is a client of a table of keys and values.
type KeyValue = tables.KeyValue

// The errors of tables, beside [ErrNotMember] and [ErrClosed]. Each error of a command is, by [errors.Is], either
// ErrUnknown, or else nothing of the command was done, nor will be.
var (
	// ErrRefused: nothing was done.
	ErrRefused = kernel.ErrRefused
	// ErrUnknown: the command may have been carried out, or may still be. To ask again with
	// the same session and number tells, and does it once in any case.
	ErrUnknown = kernel.ErrUnknown
	// ErrExpired: the session is not remembered any more, or never was. The command is not
	// carried out, unless it was when it was asked before: it is ErrUnknown, too.
	ErrExpired = tables.ErrExpired
	// ErrStopped: the replica of this node has stopped, because its state is not that of the
	// majority, or because its machine panicked. Other nodes may serve the table. It starts
	// again from the state of another node: see Config.Rejoin.
	ErrStopped = tables.ErrStopped
)

// TableStatus is this node's copy of a table.
type TableStatus = tables.Status

// ClockConfig configures the clocks that the nodes keep together. It is the same at all of them.
type ClockConfig = clocks.Config

// Reading is what a node's clock shows.
type Reading = clocks.Reading

// WakeLatency is how late a process woke.
type WakeLatency = clocks.WakeLatency

// Wakes measures how late this process wakes, until the context ends. A pause is what takes
// more than a fifth of a round.
func Wakes(ctx context.Context, round time.Duration) WakeLatency { return clocks.Wakes(ctx, round) }

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

// CommitConfig configures transactions.
type CommitConfig = commits.Config

// The limits of a transaction, in bytes.
const (
	MaxTx   = commits.MaxTx
	MaxPart = commits.MaxPart
)

// The errors of transactions, beside [ErrClosed], [ErrRefused] and [ErrNotMember].
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

// Measurement is what a node has measured of the others and of itself: what the length of a
// round has to stand on.
type Measurement = measure.Measurement

// PeerMeasurement is what was measured of another node.
type PeerMeasurement = measure.PeerMeasurement

// Advice is how long a round should be, and what clocks should go by, with the reasons.
type Advice = measure.Advice

// Advise tells what follows from what was measured. The advice has twice the room that
// messages took and half as much again as the process was late.
func Advise(m Measurement) (Advice, error) { return measure.Advise(m) }

// Samples makes round-trip times of single measurements.
func Samples(list []time.Duration) (min, median, p999 time.Duration) { return measure.Samples(list) }

// Tracing is where a node writes the traces of its machines: one each, in the format of
// the simulator, while things happen.
type Tracing = traces.Tracing

// TraceFolder makes a file for each trace in a folder, which it makes if there is none. The
// names have the machine, the node and the number of the node's life.
func TraceFolder(dir string) func(h trace.Header) (io.WriteCloser, error) { return traces.Folder(dir) }

// MemberStatus is what is known of one member of the cluster.
type MemberStatus = mesh.MemberStatus

// RTTStatus is how long pings took to be answered: in nanoseconds, as JSON.
type RTTStatus = mesh.RTTStatus

// StoreStatus is the durable memory of the node.
type StoreStatus = kernel.StoreStatus
