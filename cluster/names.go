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
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/measure"
	"parley/cluster/mesh"
	"parley/cluster/protocols"
	"parley/cluster/tables"
	"parley/cluster/traces"
	"parley/trace"
)

// Links says how nodes are connected. See [mesh.Links] for its methods.
type Links = mesh.Links

// The kinds of links.
const (
	Streams   = mesh.Streams   // mutual TLS: messages arrive once and in order, or the connection goes down
	Datagrams = mesh.Datagrams // UDP without encryption or authentication: only for agreements
	Calls     = mesh.Calls     // HTTP/2 with mutual TLS: the same promises as Streams, but much slower
)

// ParseLinks parses the name of a kind of links.
func ParseLinks(text string) (Links, error) { return mesh.Parse(text) }

// Algorithm is an algorithm for agreement on the value of one node, the source. See [stream.Algorithm] for its
// methods.
type Algorithm = stream.Algorithm

// The algorithms.
const (
	EIG       = stream.EIG       // exponential information gathering: n > 3m, m+1 rounds
	OM        = stream.OM        // oral messages, the recursion: n > 3m, m+1 rounds
	SM        = stream.SM        // signed messages: n >= m+2, m+1 rounds
	PhaseKing = stream.PhaseKing // short messages: n > 3m, 3m+4 rounds
	Tetra     = stream.Tetra     // no rounds, safe whatever the timing: n > 3m
)

// ParseAlgorithm parses the name of an algorithm.
func ParseAlgorithm(text string) (Algorithm, error) { return stream.ParseAlgorithm(text) }

// The limits of values, names, and proposals, in bytes.
const (
	MaxValue    = stream.MaxValue
	MaxName     = stream.MaxName
	MaxProposal = stream.MaxProposal
)

// AgreementConfig is a kind of agreement: an algorithm and M, the number of faulty nodes that it tolerates. See
// [agree.Config].
type AgreementConfig = agree.Config

// AgreeRequest requests an agreement on a value of this node. See [agree.Request] for its fields.
type AgreeRequest = agree.Request

// Decision is the value that all correct nodes decide in one slot. See [agree.Decision] for its fields.
type Decision = agree.Decision

// Stop ends callbacks. A method that registers a callback, such as Decisions, returns a Stop. Call it, or its Close,
// to end the callbacks. Further calls do nothing. See [agree.Stop].
type Stop = agree.Stop

// VectorRequest submits this node's value for an agreement of all nodes on the vector of their values. See
// [agree.VectorRequest] for its fields and their limits.
type VectorRequest = agree.VectorRequest

// Vector is the vector that all correct nodes decide under one name. See [agree.Vector] for its fields.
type Vector = agree.Vector

// Errors of agreements, beside [ErrExpelled] and [RoundError]. Use [errors.Is]. If a request reached the machine, an
// error of [Node.Agree], [Node.AgreeVector], or [Node.Consensus] matches [ErrUnknown]. Then the other nodes may have
// decided or may still decide, with or without this node's value. Every other error means that the request has no
// effect, now or later. [ErrTooLarge] means that a value is too long. [ErrRefused] means that the request is invalid
// or not allowed, or did not start before its context ended. [ErrDraining] and RoundError also match ErrRefused.
var (
	// ErrAbstained is the error of an agreement in which this node took no part. The node missed a deadline, received
	// from too few nodes, or was rejoining, or its value arrived too late. The error also matches ErrUnknown or
	// ErrRefused. With ErrUnknown, the other nodes may have decided on this node's value. With ErrRefused, they have
	// not decided on it and will not, if at most M nodes are faulty or late. This node counts as one of them.
	ErrAbstained = kernel.ErrAbstained
	// ErrClosed is the error of a closed node. For a request that had begun before, the error also matches
	// ErrUnknown.
	ErrClosed = kernel.ErrClosed
	// ErrBusy is the error of a request to a node of which too many agreements by Tetra are undecided. It also matches
	// ErrRefused.
	ErrBusy = agree.ErrBusy
	// ErrReserved is the error for a value that is reserved to mean "no value". It also matches ErrRefused.
	ErrReserved = agree.ErrReserved
)

// RoundError is the error of an agreement that was not started because rounds are too short. See
// [agree.RoundError] for its fields, which say how long rounds must be.
type RoundError = agree.RoundError

// Slow names a node to which messages take too long. See [agree.Slow] for its fields.
type Slow = agree.Slow

// StreamStatus is the status of one stream: of all agreements with the same algorithm, m, and source. See
// [agree.StreamStatus] for its fields.
type StreamStatus = agree.StreamStatus

// SlotStatus counts the slots of a stream, which are numbered from 1. See [kernel.SlotStatus] for its fields.
type SlotStatus = kernel.SlotStatus

// SlotProtocol returns the protocol of one slot, given the header of a stream's trace: see [protocols.OfSlot].
func SlotProtocol(h trace.Header) (p parley.Protocol, last int, ok bool) {
	return protocols.OfSlot(h)
}

// Level is what a group promises, and under which faults. See [protocols.Level] for its methods.
type Level = kernel.Level

// The levels. All but Byzantine tolerate crashes only.
const (
	Total     = kernel.Total     // one order for all members, including the deliveries of members that crash
	Reliable  = kernel.Reliable  // no order; if one remaining member delivers a payload, all do
	Uniform   = kernel.Uniform   // Reliable, and includes the deliveries of members that crash afterwards
	FIFO      = kernel.FIFO      // Reliable, with each sender's payloads in the order of their broadcasts
	Causal    = kernel.Causal    // FIFO, and a payload comes after all payloads that its sender had delivered
	Atomic    = kernel.Atomic    // the same promises as Total, by the lecture's two phases, with more messages
	Byzantine = kernel.Byzantine // one order for all correct members, while at most M are faulty
)

// ParseLevel parses the name of a level.
func ParseLevel(text string) (Level, error) { return kernel.ParseLevel(text) }

// GroupConfig configures one group. Name and Level must be identical on all nodes. See [groups.Config] for its
// fields and their defaults.
type GroupConfig = groups.Config

// Delivery is one payload that a group has delivered. See [groups.Delivery] for its fields.
type Delivery = groups.Delivery

// Group is this node's membership in one group. See [groups.Group] for its methods, such as Broadcast and
// Subscribe.
type Group = groups.Group

// Subscription reads the deliveries of a group at this node. It is not safe for concurrent use. See
// [groups.Subscription] for its methods, such as Next and Close.
type Subscription = groups.Subscription

// GoneError is an [ErrNotRetained] with the first position that is still retained here. See [groups.GoneError].
type GoneError = groups.GoneError

// The errors of groups and tables, beside [ErrClosed], [ErrRefused] and [ErrUnknown].
var (
	// ErrNotMember is the error of a node that the group has excluded, for good or until the node has
	// rejoined.
	ErrNotMember = kernel.ErrNotMember
	// ErrTooLarge is the error of a payload that does not fit into a batch, or of a value that is too long.
	ErrTooLarge = kernel.ErrTooLarge
	// ErrSlowSubscriber is the error of a subscription that was too slow: its next delivery is no longer
	// retained.
	ErrSlowSubscriber = groups.ErrSlowSubscriber
	// ErrNotRetained is the error of a subscription to a position that is not retained here.
	ErrNotRetained = groups.ErrNotRetained
	// ErrNotConfigured is the error of every call to a group or table that is not configured.
	ErrNotConfigured = kernel.ErrNotConfigured
)

// GroupStatus is the status of a group at this node. See [groups.Status] for its fields.
type GroupStatus = groups.Status

// ViewStatus is the last installed view of a machine that has views. See [kernel.ViewStatus] for its fields.
type ViewStatus = kernel.ViewStatus

// TableConfig configures one replicated state machine. It must be identical on all nodes. See [tables.Config] for
// its fields and their defaults.
type TableConfig = tables.Config

// MaxCommand is the limit of a table's command, in bytes.
const MaxCommand = tables.MaxCommand

// Table is this node's replica of a replicated state machine. See [tables.Table] for its methods, such as Do,
// Query, and Session.
type Table = tables.Table

// Session is a client of a table. It numbers its commands, and retries commands that got no answer. See
// [tables.Session] for its methods.
type Session = tables.Session

// KeyValue is a client of a table of keys and values. See [tables.KeyValue] for its methods, such as Get and Put.
type KeyValue = tables.KeyValue

// The errors of tables, beside [ErrNotMember] and [ErrClosed]. If an error of a command does not match ErrUnknown by
// [errors.Is], the command has no effect, now or later.
var (
	// ErrRefused: the command had no effect, and will have none.
	ErrRefused = kernel.ErrRefused
	// ErrUnknown: the command may have been applied, or may still be. A retry with the same session and number
	// returns its answer. The command is applied at most once.
	ErrUnknown = kernel.ErrUnknown
	// ErrExpired: the session is no longer remembered, or never existed. This attempt had no effect, but an earlier
	// attempt may have been applied. So the error also matches ErrUnknown.
	ErrExpired = tables.ErrExpired
	// ErrStopped: this node's replica has stopped because its state differs from the state of the majority, or
	// because its machine panicked. Other nodes may serve the table. The replica starts again from a snapshot of
	// another node: see Config.Rejoin.
	ErrStopped = tables.ErrStopped
	// ErrSessionTaken: in a table of level Byzantine, another command was applied under the number of this one, or a
	// faulty node has used up the session. This command has no effect, unless the error also matches ErrUnknown. Use
	// another session.
	ErrSessionTaken = tables.ErrSessionTaken
)

// TableStatus is the status of this node's replica of a table. See [tables.Status] for its fields.
type TableStatus = tables.Status

// ClockConfig configures the synchronized clocks. It must be identical on all nodes. See [clocks.Config] for its
// fields and their defaults.
type ClockConfig = clocks.Config

// Reading is the time that a node's clock shows. See [clocks.Reading] for its fields.
type Reading = clocks.Reading

// WakeLatency says how late the operating system scheduled a process. See [clocks.WakeLatency] for its
// fields.
type WakeLatency = clocks.WakeLatency

// Wakes measures how late the operating system schedules this process. It measures until ctx ends. A delay of more
// than 1/5 of a round counts as a pause.
func Wakes(ctx context.Context, round time.Duration) WakeLatency { return clocks.Wakes(ctx, round) }

// Participant carries out this node's part of transactions. It is the interface [commits.Participant].
type Participant = commits.Participant

// RemoteParticipant is a Participant that outlives the node. It is the interface [commits.RemoteParticipant].
type RemoteParticipant = commits.RemoteParticipant

// CommitProtocol says how nodes decide whether to commit a transaction. See [commits.Protocol] for its
// methods.
type CommitProtocol = commits.Protocol

// The commit protocols.
const (
	TwoPhase = commits.TwoPhase
	Majority = commits.Majority
	Agreed   = commits.Agreed
)

// ParseCommitProtocol parses the name of a commit protocol.
func ParseCommitProtocol(text string) (CommitProtocol, error) { return commits.ParseProtocol(text) }

// CommitConfig configures transactions. See [commits.Config] for its fields and their defaults.
type CommitConfig = commits.Config

// The limits of a transaction, in bytes.
const (
	MaxTx   = commits.MaxTx   // of its name
	MaxPart = commits.MaxPart // of one participant's body
)

// The errors of transactions, beside [ErrClosed], [ErrRefused] and [ErrNotMember].
var (
	ErrBlocked       = commits.ErrBlocked
	ErrTaken         = commits.ErrTaken
	ErrNoTransaction = commits.ErrNoTransaction
)

// BlockedError names the members that a blocked transaction waits for. See [commits.BlockedError] for its fields.
type BlockedError = commits.BlockedError

// TxState is the state of a transaction, as a node sees it. See [commits.State] for its methods.
type TxState = commits.State

// The states of a transaction.
const (
	Pending   = commits.Pending
	Committed = commits.Committed
	Aborted   = commits.Aborted
)

// Outcome is what a node knows about a transaction. See [commits.Outcome] for its fields.
type Outcome = commits.Outcome

// CommitStatus is the status of transactions at this node. See [commits.Status] for its fields.
type CommitStatus = commits.Status

// Measurement holds a node's measurements of itself and its peers. Use them to choose the length of a round. See
// [measure.Measurement] for its fields.
type Measurement = measure.Measurement

// PeerMeasurement holds the measurements of one peer. See [measure.PeerMeasurement] for its fields.
type PeerMeasurement = measure.PeerMeasurement

// Advice recommends a length of a round and a configuration of the clocks, and gives the reasons. See
// [measure.Advice] for its fields.
type Advice = measure.Advice

// Advise computes a recommendation from a measurement. It allows for twice the measured message delay and 1.5
// times the measured wake latency.
func Advise(m Measurement) (Advice, error) { return measure.Advise(m) }

// Samples summarizes single round-trip times.
func Samples(list []time.Duration) (min, median, p999 time.Duration) { return measure.Samples(list) }

// Tracing says where a node writes the traces of its machines. Each machine has one trace, in the format of
// the simulator, written as events happen. See [traces.Tracing] for its fields.
type Tracing = traces.Tracing

// TraceFolder returns a function that creates a file for each trace in a folder. If necessary, it also creates the
// folder. A file name consists of the machine, the node, and the node's incarnation.
func TraceFolder(dir string) func(h trace.Header) (io.WriteCloser, error) { return traces.Folder(dir) }

// MemberStatus is the status of one member of the cluster, as this node sees it. See [mesh.MemberStatus] for
// its fields.
type MemberStatus = mesh.MemberStatus

// RTTStatus summarizes round-trip times of pings. In JSON, the times are in nanoseconds. See [mesh.RTTStatus] for its
// fields.
type RTTStatus = mesh.RTTStatus

// StoreStatus is the status of the node's durable state. See [kernel.StoreStatus] for its fields.
type StoreStatus = kernel.StoreStatus

// Excerpt selects events of a node's recorder.
type Excerpt = host.Excerpt
