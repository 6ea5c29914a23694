// Package group is agreed views: who is a member is agreed upon, view after view,
// and with each new view what has been delivered in the old one.
//
// The problem: processes crash, and are suspected to have, which may be wrong. All
// that install a view must agree on its members; all that install two views one after
// the other must have delivered the same in between (view synchrony); and what
// anyone has delivered, excluded and crashed processes too, must be part of that.
//
// The bound: asynchronous messages on FIFO links, crash faults, false suspicions. A
// link may lose messages, but must not reorder or double them. Nothing that is wrong
// is ever delivered, however long messages take. The views go on while more than half of
// all n processes are up, connected, in the end not suspected, and have what they ever knew;
// no view has fewer members. A process that lost its disk, or in memory mode came back at
// all, counts again when it has been let in. Nothing is promised of processes that lie.
//
// Two ideas carry all. A member answers a view change once, with a frozen report of what it
// holds: from that step on it acknowledges and delivers nothing in this view. The next
// view's members are those who reported, with processes that have caught up with one of
// them, and the union of the reports is the cut: what all that install the next view deliver
// before it. And all n processes vote on that, members or not: members, joiners and the cuts
// of all layers are one value of one instance of agreement/ballot among all.
//
//	upon broken(q), mended(q):       tell the members, as in membership/detector
//	upon mended(q) while any
//	  message is not delivered:      start a ballot: the link may have lost what is waited for
//	upon suspecting q in M, ...:     start a ballot on how view v ends, if v is installed
//	upon PREPARE or ACCEPT of v:     in v: freeze, vote with the report
//	                                 not in v: vote with nothing, if how v came about is
//	                                 durable here, and the disk is the one that v counts;
//	                                 otherwise ask for that
//	enough(S):                       S a majority of all, and has all of M that are not
//	                                 suspected, or the flush timer ran out; and those of M in
//	                                 S, with the learners, are a majority of all
//	upon JOIN(j), frozen or not:     send the state to j, and then all that is delivered
//	upon READY of j:                 j is a learner that has caught up; if the report is
//	                                 given, give it again, and start a ballot
//	upon INSTALL, j in the view:     what j was given and the view become durable at once
//	upon a restart without a disk:   take a number of a disk that was never used, join
//
// Why it works. Order: a layer delivers only what all members hold, so that any one member
// of the view that reports has, in its report or delivered, all that anyone delivered. Who
// starts a ballot is one, so every value that is ever proposed has such a cut. Any two
// majorities of all share a process, which votes once in each ballot, with the votes of the
// disk that the view counts: so there is one next view. A vote on the end of view v is given
// only by who knows how v came about: no majority can forget a view that another one made.
// The disk of a process changes in the same decision that lets it in; its votes on that one
// and all before are void, and on later ones it has given none: it had not begun when that
// was proposed.
//
// Progress: what is acknowledged is held by all members of a view, which are a majority of
// all: of any majority whose disks are whole one at least was in the last view, can report
// all that was delivered, and help the others to join. With one exception: a process that
// was let in and has not yet heard so holds nothing. If its sponsor and all others of that
// view crash within this one message, views wait for one of them to come back.
//
// A process that is excluded stops for ever: it sends nothing, delivers nothing and
// answers nothing (fail-silent), and indicates [Excluded]. If it returns ([Config].Return, or a
// restart) it votes from then on, asks a member, its sponsor, to let it join as another
// incarnation, and delivers nothing before it has.
//
// [New] puts ordered broadcasts, which are a [Layer] each, on the views of one machine.
//
// Source: views and their synchrony as in Birman and Joseph (1987). Decisions of a fixed
// set of processes on who of them serves as in Lamport, Malkhi and Zhou, Vertical Paxos and
// Primary-Backup Replication (2009): what is delivered needs all members, what changes them a
// majority of all.
//
// # Decisions
//
// Views are decided by a majority of all configured processes, and none is smaller. A process that is in
// no view votes from its disk; one that lost its disk counts again when a decision has let it in.
// Motive: what is acknowledged is at all members of a view, hence at a majority of all, so that any
// majority with its disks goes on, whatever stopped before in whatever order; by majorities of the view
// before, five shrank to two, and the wrong two could not go on although one of them had everything.
// Cost: five nodes stand still when three are gone, one after the other, and members are told of every
// decision that are in no view.
//
// A process that joins delivers when it is a member, and all at once. Until then it takes down what its
// sponsor sends; what made it a member is one record. Motive: a joiner that crashed, or changed its
// sponsor, would be somewhere between two members' sequences. Cost: it keeps what is delivered meanwhile
// in memory, and is given the state again if it crashes.
//
// Each start of a process has a greater number, which the host gives it (Step.Life). Motive: a process
// that lost its disk must not be taken for any that it was, and cannot know them. Cost: hosts that lose
// this number too can break what is promised of a lost disk.
//
// Ordered broadcasts within views are layers of the group and no machines. A group.Layer reports, makes
// a cut of reports and installs; the group is one machine with its layers, its ballot and its monitor
// inside. Motive: members, joiners and the cuts of all layers are one decision, and a frozen member must
// be frozen in all of them in one step. Cost: an interface of its own beside Machine, as rounds have.
//
// No single word ends a view. With four nodes or more a process learns how a view came about from what
// it accepted itself, from more than a third, or from one that says the same in three periods. Proposals
// need a promise before, and are looked at: members, lives and disks must follow from the view before.
// Motive: one broken node had all others give up what they had, and they never came back. Cost: a
// process that was away asks twice, and 300 ms more if one other alone is left; nothing while all is
// well. It is no defense against a node that aims.
package group

import (
	"cmp"
	"flag"
	"iter"
	"math/bits"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/membership/detector"
)

// The messages. Each carries in its envelope's epoch the number of the view that
// its sender is in; those of the ballot that of the view which it ends. The kinds
// below these are agreement/ballot's. Layers have kinds of their own.
const (
	// Beat is a sign of life. Body: with whom the sender's links are broken, as in membership/detector.
	Beat parley.Kind = ballot.Last + 1 + iota
	// Ask asks who is in a later view what ended this one.
	Ask
	// Join asks to become a member. Seq: the incarnation. Value: the disk.
	Join
	// Snapshot answers it. Seq: the sponsor's position. Value: the incarnation. Body: the
	// state above the layers.
	Snapshot
	// Ready tells the sponsor that the snapshot has come. Seq: the incarnation.
	Ready
	// Forward is a delivery of the sponsor's that is for the joiner too. Origin: the
	// sender. Seq: the position in the joiner's sequence, which goes on from that of the
	// snapshot. Value: the incarnation. Body: the payload.
	Forward
	// Install tells a joiner what ended the sponsor's view. Seq: the joiner's position
	// before the cut, or behind it if the joiner is not yet a member. Value: the incarnation.
	// Body: the decision, and where the layers stand.
	Install
)

// Requests to a group, beside those of its layers. They are local kinds.
const (
	// Leave asks to be left out of the next view.
	Leave parley.Kind = parley.Local + 0x20 + iota
	// State answers Wanted. Seq: the position that it stands for. Body: the state.
	State
	// Exclude asks to leave Origin out of the next view, although it may be alive. It does
	// not return by itself then.
	Exclude
)

// What a group indicates, beside parley.Suspect and parley.View. A view's Seq is its
// number, its Body its members, see parley.ReadSet; Value is the position that it
// begins behind.
const (
	// Excluded tells that the process is a member no longer. Value: 1 if it asked to leave, 2 if
	// it was excluded on request.
	Excluded parley.Kind = parley.Indication + 0x20 + iota
	// SnapshotWanted asks for the state above the group, for a joiner. Origin: the joiner. Seq:
	// the position that it is wanted for: of all that was delivered up to there. It is
	// answered by the request State.
	SnapshotWanted
	// SnapshotInstalled gives a joiner the state of its sponsor. Seq: the position. Body: the state.
	SnapshotInstalled
	// Expelled tells members that Origin was left out of the view on request.
	Expelled
	// ReplayStarted tells of a process that comes back from its log, before it delivers again what
	// the log has: Seq is the position behind which that begins.
	ReplayStarted
)

// Config is what all processes must know alike. What is left 0 has a default that
// fits the simulator's usual delays. All times are ticks.
type Config struct {
	N int
	// M is how many crashes are to be tolerated; by default as many as leave a majority of
	// all processes.
	M int
	// Liars is how many processes may say what is wrong by chance, as a broken one would, and
	// not keep the others from going on for good. With 0, which is right for n <= 3, every
	// word is believed.
	Liars int
	// Initial are the members of view 1, more than half of all; by default all.
	Initial parley.Set
	// Detector says when the group itself suspects; Period is how often it sends a sign
	// of life and looks at the others.
	Detector detector.Config
	// Flush is how long a view change waits for members that are not suspected; by
	// default 2500, more than a round trip.
	Flush parley.Tick
	// Wait and Stagger say when to try again: the member of rank r waits for
	// Wait + r*Stagger, then twice as long, and so on. By default 5000 and 2000. Wait
	// is also how long an own message may be undelivered, and how long a member that
	// has reported waits for the next view, before it asks for one itself.
	Wait, Stagger parley.Tick
	// Admit is how long a joiner waits for a snapshot before it asks somebody else; by
	// default 4000. First is how long it waits for the first one it asks, and twice as long
	// for each further one, up to that; by default as long.
	Admit, First parley.Tick
	// Become is how long it then waits to become a member, or to hear of a delivery, before
	// it does so; by default ten times as long. A word that a link has lost costs so much.
	Become parley.Tick
	// Queue is how many requests wait for the next view at most, and how many messages
	// of it a joiner keeps; by default 1024. Beyond that they are refused.
	Queue int
	// Payload is how many bytes a request to a layer may have; by default 64 KiB. Larger
	// ones are refused: what ends a view has all that is under way in it, and must
	// still be a message that links take.
	Payload int
	// State tells that a layer above answers Wanted. Otherwise joiners get no state but
	// that of the layers.
	State bool
	// Return lets a process that is out join again, as a new incarnation.
	Return bool
	// Durable lets a process that crashed go on from its log, if it is still a member, and
	// vote from it if it is not. Its layers must be Durable. After a restart it delivers again, with their
	// positions, what it delivered since its log was last compacted.
	Durable bool
	// Keep is how many deliveries are a part of the durable state, and KeepBytes how many bytes
	// of them, 8 MiB at most; 0: none. A process that comes back delivers them again, with
	// their positions, and so does one that joins, which gets them from its sponsor.
	Keep, KeepBytes int
	// Compact is after how many records in durable mode the state replaces them; by
	// default 1024.
	Compact int
}

// WithDefaults returns the configuration with what was left out filled in.
func (c Config) WithDefaults() Config {
	c.Flush, c.Wait, c.Stagger = cmp.Or(c.Flush, 2500), cmp.Or(c.Wait, 5000), cmp.Or(c.Stagger, 2000)
	c.Admit = cmp.Or(c.Admit, 4000)
	c.First, c.Become = cmp.Or(c.First, c.Admit), cmp.Or(c.Become, 10*c.Admit)
	c.Queue, c.Payload, c.Compact = cmp.Or(c.Queue, 1024), cmp.Or(c.Payload, 64<<10), cmp.Or(c.Compact, 1024)
	c.M = cmp.Or(c.M, max(0, c.N-1)/2)
	c.Initial = cmp.Or(c.Initial, parley.Everyone(c.N))
	c.Detector.N = c.N
	c.Detector = c.Detector.WithDefaults()
	return c
}

// longest is what no time of a configuration is longer than: they are multiplied.
const longest parley.Tick = 1 << 50

// Check tells what is wrong with a configuration.
func (c Config) Check() error {
	c = c.WithDefaults()
	switch err := parley.CheckN(c.N, 1); {
	case err != nil:
		return err
	case c.M < 0 || c.M >= c.N && c.N > 1:
		return parley.FlagErrorf("m", "%d crashes of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case c.Liars < 0 || c.Liars > max(0, c.N-1)/3:
		return parley.FlagErrorf("n", "%d liars of %d processes: allowed are fewer than a third", c.Liars, c.N)
	case c.Initial.Len() <= c.N/2:
		return parley.FlagErrorf("initial", "%d first members of %d processes: a view has more than half of all",
			c.Initial.Len(), c.N)
	case c.Initial.Minus(parley.Everyone(c.N)) != parley.Set{}:
		return parley.FlagErrorf("initial", "a first member that is none of %d processes", c.N)
	case c.Wait <= c.Flush:
		return parley.FlagErrorf("wait", "%d ticks: it must be longer than the flush, %d", c.Wait, c.Flush)
	case c.Stagger < 0 || c.Flush < 1 || min(c.Admit, c.First, c.Become) < 1:
		return parley.FlagErrorf("wait", "stagger %d, flush %d, admission %d: times are not negative",
			c.Stagger, c.Flush, c.Admit)
	case max(c.Wait, c.Stagger, c.Admit) > longest:
		return parley.FlagErrorf("wait", "wait %d, stagger %d, admission %d: none may be longer than %d",
			c.Wait, c.Stagger, c.Admit, longest)
	case c.Keep < 0 || c.Keep > 0 && (c.KeepBytes < 1 || c.KeepBytes > mostKept):
		return parley.FlagErrorf("keep", "%d deliveries of %d bytes: allowed are 1 to %d bytes",
			c.Keep, c.KeepBytes, mostKept)
	case c.Queue < 1 || c.Compact < 1 || c.Payload < 1:
		return parley.FlagErrorf("queue", "a queue of %d, a log of %d, payloads of %d: at least 1 is needed",
			c.Queue, c.Compact, c.Payload)
	}
	return c.Detector.Check()
}

// Flags declares the flags of views: n, m and return. If n changes, all n processes are
// members of the first view.
func Flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	n := c.N
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", 0, "`crashes` to tolerate (default: as many as leave a majority)")
	fs.BoolVar(&c.Return, "return", c.Return, "let an excluded process join again")
	return func(c *Config, _ parley.Naming) error {
		if c.N != n {
			c.Initial = parley.Set{}
		}
		return c.Check()
	}
}

// New returns a protocol of views with the given broadcasts on them. Its name, its
// properties beyond those of views and its flags are for the caller to set.
func New(c Config, services ...LayerSpec) parley.Protocol {
	c = c.WithDefaults()
	if err := c.Check(); err != nil {
		panic("group: " + err.Error())
	}
	return parley.Protocol{
		Name:       "group",
		Title:      "agreed views, with what was delivered in each",
		Paper:      "Birman and Joseph 1987; Lamport 1998",
		Faults:     parley.CrashFaults,
		Kinds:      kinds(services),
		N:          c.N,
		M:          c.M,
		Span:       40_000,
		Relies:     parley.ModelAssumptions{FIFO: true},
		Serves:     len(services) > 0,
		New:        func(self parley.ID) parley.Machine { return newMachine(self, &c, services) },
		Properties: Properties(),
		Promises:   Promises,
		Bound:      ballot.Bound,
		Size:       func(e parley.Env, _ parley.Msg) parley.Traffic { return size(e, services) },
		Explain: func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return explain(c, services, e, m, name)
		},
	}
}

// width is how many bits of a path name a layer, or with 0 the group itself.
func width(services int) int { return bits.Len(uint(services)) }

// kinds are the names of the group's own kinds and of the layers'. The path of a
// message tells which is meant.
func kinds(services []LayerSpec) []string {
	out := []string{
		"", "PREPARE", "PROMISE", "REFUSE", "ACCEPT", "ACCEPTED", "DECIDE",
		"BEAT", "ASK", "JOIN", "SNAPSHOT", "READY", "FORWARD", "INSTALL",
	}
	for _, service := range services {
		for i, name := range service.Kinds {
			switch {
			case i >= len(out):
				out = append(out, name)
			case name != "":
				out[i] += "/" + name
			}
		}
	}
	return slices.Clip(out)
}

// size counts the messages of the layers alone: the group's own come by the clock.
func size(e parley.Env, services []LayerSpec) parley.Traffic {
	if e.Path&(1<<width(len(services))-1) == 0 {
		return parley.Traffic{}
	}
	return parley.Traffic{Messages: 1}
}
