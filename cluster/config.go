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
	Address string // host and port that it listens on
	Signer  ed25519.PublicKey
}

// Config is what a node knows. Members and Groups are alike at all nodes.
type Config struct {
	Name    string // which of the members this is
	Members []Member
	Self    *cert.Self
	Trust   *cert.Trust
	// Listen, if it is given, is used in place of listening on the address.
	Listen net.Listener
	// Network, if it is given, carries what nodes send each other in place of the system's
	// sockets. A node on another network takes nothing but its disk from the system: without
	// a Clock it goes by package time, and so do its alarms, so that in a bubble of
	// testing/synctest it lives in the bubble's time. See cluster/link/memory.
	Network link.Network
	// Dir is the folder for what must outlive the process. Without one nothing does, and
	// a process that has ended must not come back under its name, but with Rejoin. With one, a process that
	// comes back is let in again by those who are there. In it is also what life of each
	// other node was the last that this one has seen.
	Dir string
	// Disk is where Dir lies; nil: the system's. On a disk.Memory a node in a bubble of testing/synctest
	// waits for no real disk, and the test decides what a crash leaves and which call fails. Traces and the
	// last events are files of the system all the same.
	Disk disk.Disk
	// Durable keeps what is delivered on the disk before anybody is told, so that all may
	// come back after all have ended; except in groups of level Byzantine, which are in memory.
	// It needs Dir.
	Durable bool
	// DiskLimit is how long one call of the disk may take, as a write or a sync, before the disk counts
	// as failed and the node stops: 100 ms to 1 h, by default 5 s. It is a node's own.
	DiskLimit time.Duration
	// Rejoin says that the node has lost what it had in Dir, which is empty: it is to join
	// the others as a new one, and not to begin with them. Without it they refuse who comes
	// back with nothing. It means nothing in later lives. If more than a minority lose what
	// they had, what was delivered may be lost, too.
	Rejoin bool
	Groups []GroupConfig
	Tables []TableConfig
	// Participant does this node's part of transactions; without one it votes no.
	Participant Participant
	Commit      CommitConfig
	// M is how many nodes may lie, for what is to hold against liars; by default as many
	// as fewer than a third of the nodes are.
	M int
	// Round is the length of a round. A fifth of it is how late a node may do anything, a
	// seventh in agreements by request or under a name, and a tenth how long a message may
	// take. By default 100 ms.
	Round  time.Duration
	Times  Times
	Clocks ClockConfig
	// Clock is what this node goes by; by default that of its machine, or with a Network the
	// time since it joined. It is for tests and laboratories.
	Clock host.Clock
	// Agreements are those that the nodes have, alike and in the same order at all of them; by
	// default by every algorithm in spite of every number of liars that it tolerates, EIG with
	// the most of them first. They share what a node has of time and memory for what liars may
	// begin: the first one has half of it, and the others share the rest. Name the only one
	// that is needed, and it has everything: twice as many may go on at a time.
	Agreements []AgreementConfig
	// Links are what nodes are linked by, alike at all of them; by default streams.
	Links Links
	// SignerKey is what this node signs with, where agreements need that; the members know
	// its public half. Without it the node takes no part in them.
	SignerKey ed25519.PrivateKey
	// Trace, if it is set, has the node write down all that its machines do.
	Trace *Tracing
	// FaultInjection makes the node lie. It is for laboratories alone.
	FaultInjection *FaultInjection
	// Broken is called if the node can not go on: its disk failed, or a machine broke. Every call of
	// the node fails from then on, with ErrClosed and the reason, and Join does if it has not returned.
	// Broken may be called more than once, and must not block; who is told closes the node. Without
	// it the node closes itself.
	Broken func(error)
	Log    *slog.Logger

	hooks hooks
}

// FaultInjection is for laboratories: it makes a node lie.
type FaultInjection struct {
	// Traitor is how the node behaves in agreements, and in groups of level Byzantine.
	Traitor faulty.Behavior
}

// hooks are what tests change. 0 stands for what a node does otherwise.
type hooks struct {
	mesh.Hooks
	Compact  int           // the number of records after which a state replaces its log
	LogSize  int64         // of the store
	Recorder int           // the size of the flight recorder
	Tables   tables.Limits // of all tables
	Hear     func(from parley.ID, channel uint32, b []byte)
}

// Times are how long a node waits for what. What is 0 has a default, for a local network.
type Times struct {
	Beat    time.Duration // between two signs of life; 100 ms
	Suspect time.Duration // how long a member may be silent; 1 s
	Flush   time.Duration // how long a change of the view waits for a member; 500 ms
	Retry   time.Duration // before somebody else begins a change; 1 s
}

// WithDefaults returns the times with what was left 0 filled in.
func (t Times) WithDefaults() Times {
	return Times{
		Beat:    cmp.Or(t.Beat, 100*time.Millisecond),
		Suspect: cmp.Or(t.Suspect, time.Second),
		Flush:   cmp.Or(t.Flush, 500*time.Millisecond),
		Retry:   cmp.Or(t.Retry, time.Second),
	}
}

// DefaultRound is the length of a round if nothing else is configured.
const DefaultRound = 100 * time.Millisecond

// CheckClocks tells what is wrong with the configuration of the clocks: that they can not
// be kept together so.
func (c Config) CheckClocks() error {
	c = c.filled()
	_, err := c.Clocks.Plan(len(c.Members), c.M, c.Round)
	return err
}

// filled returns the configuration with the defaults filled in.
func (c Config) filled() Config {
	c.M = cmp.Or(c.M, (len(c.Members)-1)/3)
	c.Round = cmp.Or(c.Round, DefaultRound)
	c.DiskLimit = cmp.Or(c.DiskLimit, defaultDiskLimit)
	c.hooks.Compact = cmp.Or(c.hooks.Compact, 4096)
	c.hooks.Recorder = cmp.Or(c.hooks.Recorder, host.RecorderSize)
	c.hooks.Tables = cmp.Or(c.hooks.Tables, tables.DefaultLimits)
	return c
}

// CheckGroups tells what is wrong with the groups of the configuration, or with how many of
// the members may lie.
func (c Config) CheckGroups() error {
	c = c.filled()
	n := len(c.Members)
	if most := max(0, n-1) / 3; c.M < 0 || c.M > most {
		return fmt.Errorf("%d liars among %d members: allowed are 0 to %d, for n > 3m", c.M, n, most)
	}
	return groups.Check(c.Groups, n)
}

// views is the configuration of a group of all nodes.
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

// The limits of Config.DiskLimit, and what it is by default.
const (
	leastDiskLimit   = 100 * time.Millisecond
	mostDiskLimit    = time.Hour
	defaultDiskLimit = 5 * time.Second
)

// CheckDisk tells what is wrong with the limits of the disk.
func (c Config) CheckDisk() error {
	if d := c.DiskLimit; d != 0 && (d < leastDiskLimit || d > mostDiskLimit) {
		return fmt.Errorf("DiskLimit is %v: allowed are %v to %v, and 0 for %v",
			d, leastDiskLimit, mostDiskLimit, defaultDiskLimit)
	}
	return nil
}

// CheckLinks tells what a configuration has that its links do not carry.
func (c Config) CheckLinks() error {
	switch {
	case c.Links.Check() != nil:
		return c.Links.Check()
	case c.Links == Datagrams && len(c.Groups)+len(c.Tables) > 0:
		return errors.New("groups and tables need streams or calls: datagrams may be lost and come out of order")
	case c.Links == Datagrams && c.Participant != nil:
		return errors.New("transactions need streams or calls: datagrams may be lost and come out of order")
	}
	return nil
}

// check tells what is wrong with the configuration of a node, which is filled.
func (c Config) check() error {
	self := c.self()
	switch {
	case self < 0:
		return fmt.Errorf("%q is none of the %d members", c.Name, len(c.Members))
	case c.SignerKey == nil:
	case len(c.SignerKey) != ed25519.PrivateKeySize:
		return errors.New("the key to sign with is none")
	case !c.SignerKey.Public().(ed25519.PublicKey).Equal(c.Members[self].Signer):
		return errors.New("the key to sign with is not the one that the members know of this node")
	}
	if err := cmp.Or(c.CheckGroups(), c.CheckAgreements(), c.CheckLinks(), c.CheckDisk()); err != nil {
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

// CheckAgreements tells what is wrong with those of the configuration.
func (c Config) CheckAgreements() error { return agree.Check(c.Agreements, len(c.Members)) }

// self is the place of this node among the members, -1 if it has none.
func (c Config) self() int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == c.Name })
}
