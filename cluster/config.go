package cluster

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"parley"
	"parley/cluster/agree"
	"parley/cluster/cert"
	"parley/cluster/disk"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/mesh"
	"parley/cluster/tables"
	"parley/faulty"
	"parley/membership/group"
)

// Member is one node of a cluster.
type Member struct {
	Name    string
	Address string // host and port to listen on
	Signer  ed25519.PublicKey
}

// Config configures a node. Members and Groups must be identical on all nodes.
type Config struct {
	Name    string // of this node, as in Members
	Members []Member
	Self    *cert.Self
	Trust   *cert.Trust
	// Listen, if set, is used instead of listening on the address.
	Listen net.Listener
	// Network, if set, carries the messages between nodes, and the node opens no sockets. If Clock is nil, the node
	// then uses the time and the timers of package time, so it runs in virtual time in a bubble of testing/synctest.
	// If Disk is nil, the node still uses the system's disk. See cluster/link/memory.
	Network link.Network
	// Dir is the folder for durable state, including the last known incarnation of every other node. With
	// Dir, the members admit a restarted node again. Without Dir nothing is durable, and a node that has
	// ended must start again only with Rejoin.
	Dir string
	// Disk is the disk that holds Dir; nil means the system's. With a disk.Memory, a node in a bubble of
	// testing/synctest does not wait for a real disk. The test then decides which data remain after a crash, and
	// which calls fail. Traces are always files of the system.
	Disk disk.Disk
	// Durable makes the node sync deliveries to disk before it acknowledges them, so that they survive a restart of
	// all nodes. Durable requires Dir.
	Durable bool
	// DiskLimit is how long one call of the disk, such as a write or a sync, may take. After that time the disk
	// counts as failed, and the node stops. The limit is 100 ms to 1 h, by default 5 s. It may differ between nodes.
	DiskLimit time.Duration
	// Rejoin says that the node has lost its records and starts with an empty Dir. The node then joins the
	// others as a new member. Without Rejoin the others refuse a node that has lost its records. Rejoin is
	// ignored if Dir has records. If half or more of all nodes lose their records, deliveries may be lost,
	// too.
	Rejoin bool
	Groups []GroupConfig
	Tables []TableConfig
	// Participant carries out this node's part of transactions. If it is nil, the node votes no.
	Participant Participant
	Commit      CommitConfig
	// M is how many nodes may be faulty in services that tolerate Byzantine faults; by default (n-1)/3, rounded
	// down.
	M int
	// Round is the length of a round of an agreement, by default 100 ms. A node that acts 1/7 of a round or more after a
	// deadline counts as one of the M faulty nodes until it has rejoined. A message may take 1/10 of a round. If it
	// takes longer, its sender or its receiver counts as faulty. See RoundError.
	Round  time.Duration
	Times  Times
	Clocks ClockConfig
	// Clock is this node's clock, for tests. By default it is the system's clock. With a Network, it is the time
	// since the node joined.
	Clock host.Clock
	// Agreements are the kinds of agreement that the nodes run. The list must be identical on all nodes. By default
	// they are every algorithm with every m that it tolerates, beginning with EIG and the largest m. A node reserves
	// time and memory for slots that faulty nodes may open. The first kind gets half of this reserve, and the others
	// share the rest. If there is only one kind, it gets the whole reserve, so that twice as many of its slots may be
	// in flight.
	Agreements []AgreementConfig
	// Links says how nodes are connected. It must be identical on all nodes. The default is Streams.
	Links Links
	// SignerKey signs messages in agreements that need signatures. It must match the Signer of this member.
	// Without it the node takes no part in these agreements.
	SignerKey ed25519.PrivateKey
	// Trace, if set, makes the node write a trace of each of its machines.
	Trace *Tracing
	// FaultInjection makes the node faulty. It is for tests only.
	FaultInjection *FaultInjection
	// Broken is called when the node fails because of its disk or a panic of a machine. From then on every call of
	// the node fails with ErrClosed and the reason. This includes a Join that has not returned yet. Broken may be
	// called more than once. It must not block, and should make another goroutine close the node. If Broken is nil,
	// the node closes itself.
	Broken func(error)
	// Log gets the node's log messages; nil discards them.
	Log *slog.Logger

	hooks hooks
}

// FaultInjection makes a node faulty, for tests.
type FaultInjection struct {
	// Traitor is the behavior of the node in agreements, in groups of level Byzantine, and toward the other clocks.
	Traitor faulty.Behavior
}

// hooks are settings that only tests change. 0 means the value that a node uses otherwise.
type hooks struct {
	mesh.Hooks
	Compact  int           // number of records after which a checkpoint replaces the log
	LogSize  int64         // of the store
	Recorder int           // the size of the flight recorder
	Tables   tables.Limits // of each table
	Hear     func(from parley.ID, channel uint32, b []byte)
}

// Times are the times that a node waits. A zero field means its default, which is for a local network.
type Times struct {
	Beat    time.Duration // time between two heartbeats; 100 ms
	Suspect time.Duration // how long a member may be silent until it is suspected; 1 s
	Flush   time.Duration // how long a view change waits for a member; 500 ms
	Retry   time.Duration // how long until another member starts the view change; 1 s
}

// WithDefaults returns the times with zero fields replaced by their defaults.
func (t Times) WithDefaults() Times {
	return Times{
		Beat:    cmp.Or(t.Beat, 100*time.Millisecond),
		Suspect: cmp.Or(t.Suspect, time.Second),
		Flush:   cmp.Or(t.Flush, 500*time.Millisecond),
		Retry:   cmp.Or(t.Retry, time.Second),
	}
}

// DefaultRound is the default length of a round.
const DefaultRound = 100 * time.Millisecond

// CheckClocks returns an error if the nodes cannot keep their clocks within the configured error.
func (c Config) CheckClocks() error {
	c = c.filled()
	_, err := c.Clocks.Plan(len(c.Members), c.M, c.Round)
	return err
}

// filled returns the configuration with zero fields replaced by their defaults.
func (c Config) filled() Config {
	c.M = cmp.Or(c.M, (len(c.Members)-1)/3)
	c.Round = cmp.Or(c.Round, DefaultRound)
	c.DiskLimit = cmp.Or(c.DiskLimit, defaultDiskLimit)
	c.hooks.Compact = cmp.Or(c.hooks.Compact, 4096)
	c.hooks.Recorder = cmp.Or(c.hooks.Recorder, host.RecorderSize)
	c.hooks.Tables = cmp.Or(c.hooks.Tables, tables.DefaultLimits)
	return c
}

// CheckGroups returns an error if the groups are invalid or M is too large for the number of members.
func (c Config) CheckGroups() error {
	c = c.filled()
	n := len(c.Members)
	if most := max(0, n-1) / 3; c.M < 0 || c.M > most {
		return fmt.Errorf("m = %d faulty nodes of %d: allowed are 0 to %d, because n > 3m", c.M, n, most)
	}
	return groups.Check(c.Groups, n)
}

// CheckTables returns an error if the tables are invalid for the number of members.
func (c Config) CheckTables() error { return tables.Check(c.Tables, len(c.Members)) }

// views returns the configuration of a group of all nodes.
func (c Config) views() group.Config {
	t := c.Times.WithDefaults()
	v := group.Config{
		N: len(c.Members), Return: true, Durable: c.Durable, Liars: (len(c.Members) - 1) / 3,
		Flush: parley.Tick(t.Flush), Wait: parley.Tick(t.Retry), Stagger: parley.Tick(t.Retry / 2),
		Admit: parley.Tick(t.Retry), First: parley.Tick(t.Retry / 2), Become: parley.Tick(t.Suspect + t.Flush + 2*t.Retry),
	}
	v.Detector.Period, v.Detector.Timeout = parley.Tick(t.Beat), parley.Tick(t.Suspect)
	v.Detector.Late = parley.Tick(t.Suspect / 4)
	v.Detector.Grace = parley.Tick(linkGrace)
	if i := c.self(); c.Rejoin && i >= 0 && v.N > 1 {
		v.Initial = parley.Everyone(v.N)
		v.Initial.Remove(parley.ID(i))
	}
	return v.WithDefaults()
}

// The limits and the default of Config.DiskLimit.
const (
	leastDiskLimit   = 100 * time.Millisecond
	mostDiskLimit    = time.Hour
	defaultDiskLimit = 5 * time.Second
)

// CheckDisk returns an error if DiskLimit is out of range.
func (c Config) CheckDisk() error {
	if d := c.DiskLimit; d != 0 && (d < leastDiskLimit || d > mostDiskLimit) {
		return fmt.Errorf("DiskLimit is %v: allowed are %v to %v, and 0 for %v",
			d, leastDiskLimit, mostDiskLimit, defaultDiskLimit)
	}
	return nil
}

// CheckLinks returns an error if a configured service cannot run on the kind of links.
func (c Config) CheckLinks() error {
	switch {
	case c.Links.Check() != nil:
		return c.Links.Check()
	case c.Links == Datagrams && len(c.Groups)+len(c.Tables) > 0:
		return errors.New("groups and tables need streams or calls: datagrams can be lost and reordered")
	case c.Links == Datagrams && c.Participant != nil:
		return errors.New("transactions need streams or calls: datagrams can be lost and reordered")
	}
	return nil
}

// check validates the configuration of a node whose defaults are filled in.
func (c Config) check() error {
	self := c.self()
	switch {
	case self < 0:
		return fmt.Errorf("%q is none of the %d members", c.Name, len(c.Members))
	case c.SignerKey == nil:
	case len(c.SignerKey) != ed25519.PrivateKeySize:
		return errors.New("the key to sign with is not an ed25519 key")
	case !c.SignerKey.Public().(ed25519.PublicKey).Equal(c.Members[self].Signer):
		return errors.New("the key to sign with does not belong to the signer that the members list has for this node")
	}
	if err := cmp.Or(c.CheckGroups(), c.CheckTables(), c.CheckAgreements(), c.CheckLinks(), c.CheckDisk()); err != nil {
		return err
	}
	switch {
	case c.Self == nil:
		return errors.New("the node has no certificate (Self)")
	case c.Trust == nil:
		return errors.New("the node trusts no authority (Trust)")
	}
	return nil
}

// CheckAgreements returns an error if Agreements is invalid.
func (c Config) CheckAgreements() error { return agree.Check(c.Agreements, len(c.Members)) }

// self returns the index of this node in Members, -1 if it is not a member.
func (c Config) self() int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == c.Name })
}
