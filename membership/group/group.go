// Package group implements agreed views. A view is a numbered set of processes, its members, on which all processes
// agree. With each new view, the processes also agree on the messages that were delivered in the old view.
//
// The problem: processes crash, and are suspected of a crash, perhaps wrongly. All processes that install a view must
// agree on its members. All processes that install two consecutive views must have delivered the same messages in the
// first of the two (view synchrony). This includes every message that a process delivered in the first view before it
// crashed or was excluded.
//
// The bound: asynchronous messages on FIFO links, crash faults, false suspicions. A link may lose messages, but must
// not reorder or duplicate them. Safety never depends on delays. Views can change as long as a majority of all n
// processes are up and connected, have all their durable state, and are eventually not suspected. Every view has more
// than n/2 members. A process that lost its disk, or that restarted without a disk, counts again toward a majority
// after a view has admitted it. Nothing is promised about Byzantine processes.
//
// The protocol has two main ideas. First, a member answers a view change once, with a report of the messages that it
// holds. From then on the member is frozen: it acknowledges and delivers nothing more in this view. The next view
// consists of the members that reported, and of joiners. A joiner (learner) is a process that wants to become a
// member. It can be in the next view when it has caught up with a member that reported. The union of the reports is
// the cut. Every process delivers the messages of the cut before it installs the next view.
//
// Second, all n processes vote on the next view, whether they are members or not. They decide on it by one instance
// of agreement/ballot. The decided value contains the members, the joiners and the cuts of all layers. A layer is an
// ordered broadcast that runs within the views.
//
// In the pseudocode, v is the current view and M its members. PREPARE and ACCEPT are messages of the ballot. S is the
// set of the processes that have answered the owner of the ballot. The owner waits until enough(S) is true.
// [Config].Flush is the time of the flush timer. Each disk of a process has a number, and a view records which disk
// of each process counts. The event broken(q) says that the link to q broke, and mended(q) says that it works again:
//
//	upon broken(q), mended(q):       notify the members, as in membership/detector
//	upon mended(q) while a message
//	  waits for its delivery:        start a ballot: the link may have lost a message
//	upon suspecting q in M, or for
//	  another reason to end v (an
//	  own message is late, a learner
//	  is ready, a member leaves or
//	  is to be excluded):            start a ballot on the end of v, if v is installed
//	upon PREPARE or ACCEPT of v:     a member of v: freeze, vote with the report
//	                                 any other process: vote without a report, if the decision
//	                                 that made v is on its disk, and if v counts this disk;
//	                                 otherwise ask for that decision
//	enough(S):                       these three conditions hold:
//	                                 1. S is a majority of all processes
//	                                 2. the flush timer has expired, or S contains every member
//	                                    that is not suspected
//	                                 3. the members in S and the learners together are a majority
//	                                    of all processes
//	upon JOIN(j), frozen or not:     send the state to j, and then all that is delivered
//	upon READY of j:                 j is a learner that has caught up; if this member has
//	                                 sent its report, add j, send the report again, and start
//	                                 a ballot
//	upon INSTALL, as joiner j:       write the received state and the view to the disk together
//	upon a restart without a disk:   take a number of a disk that was never used, and join
//
// Safety. A layer delivers a message only when all members hold the message. So if any process has delivered a message,
// every member of the view has delivered it, or has it in its report. Only a member starts a ballot, and its own report
// is part of the cut. So the cut in every proposed value contains all delivered messages.
//
// There is only one next view, because any two majorities of all processes share a process, and each process votes
// once in each ballot. A vote is valid only if it comes from the disk that the view counts. A process votes on the
// end of view v only if it knows the decision that made v. So no majority can forget a view that another majority
// made.
//
// The decision that admits a process also determines which of its disks counts from then on. So a process never votes
// on one decision with two disks. Votes from the new disk are void for this decision and for all earlier decisions. The
// old disk cast no votes on later decisions, because ballots on later decisions start only after this decision. At that
// time the process has already lost the old disk.
//
// Progress. The members of a view are a majority of all processes, and all of them hold all acknowledged messages. So
// any majority with intact disks contains a member of the last view. This member can report all deliveries, and help
// the others to join. There is one exception. An admitted process holds no messages until it has received the
// decision that admitted it. Suppose that all other members crash while this decision is in flight. Then views stall
// until one of the other members restarts.
//
// An excluded process stops for good: it sends, delivers and answers nothing (fail-silent), and indicates [Excluded].
// It may rejoin, by [Config].Return or by a restart. Then it votes again, and asks a member, its sponsor, to admit it
// as a new incarnation. It delivers nothing until it is a member. The sponsor sends it the state.
//
// [New] returns one machine that contains the views and several ordered broadcasts. Each broadcast is a [Layer].
//
// Source: views and view synchrony are from Birman and Joseph (1987). In this package, a delivery needs all members,
// and a change of members needs a majority of a fixed set of processes. This combination is from Lamport, Malkhi and
// Zhou, Vertical Paxos and Primary-Backup Replication (2009).
//
// # Decisions
//
// A majority of all configured processes decides on views, and no view is smaller than a majority. Processes outside
// the view also vote. Motive: if instead a majority of the previous view decided, a system of five processes could
// shrink to two members. After a crash of all five, the system would need both of these members to continue. Cost: a
// system of five nodes stalls when three nodes are down, even if they crashed one after the other. Processes outside
// the view must receive every decision.
//
// A joiner delivers nothing until it is a member. Until then it keeps all messages from its sponsor in memory. When it
// becomes a member, it writes these messages to the disk in one record, and then delivers them. Motive: a joiner that
// crashes, or changes its sponsor, never mixes the message sequences of two members. Cost: the messages take memory. A
// joiner that crashes must receive the state again.
//
// Each start of a process gets a greater incarnation number than the start before. The host supplies the number
// (Step.Life). Motive: the other processes must distinguish the incarnations even if the process lost its disk. Cost:
// if the host also loses this number, the promises about a lost disk may break.
//
// Ordered broadcasts within views are layers of the group, not separate machines. A layer (group.Layer) has methods
// that report its messages, compute a cut from reports, and install a view. Motive: one decision determines the
// members, the joiners and the cuts of all layers, and a member must freeze all layers in one step. Cost: layers have
// an interface of their own in addition to Machine.
//
// No single message ends a view. With four nodes or more, a process accepts a decision on a view in only three cases:
//
//   - The process has accepted the decided value itself.
//   - More than a third of the processes report the decision.
//   - One process reports the decision, and repeats it in two more periods when it is asked again. A period is the time
//     between two heartbeats (Detector.Period).
//
// A process accepts a proposal only in a ballot in which it has promised to take part. It also checks that the members,
// incarnations and disks follow from the previous view. Motive: without these rules, one broken node can make all
// others give up their state. Cost: a process that was disconnected must ask several processes for the decision. If
// only one other process is left, this takes 300 ms longer. These rules do not protect against a deliberate attack.
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

// The messages. Env.Epoch of a message is the number of the sender's view, except in messages of the ballot. There it
// is the number of the view that the ballot ends. Lower kinds belong to agreement/ballot. Layers have their own
// kinds.
const (
	// Beat is a heartbeat. Body: the peers with which the sender's links are broken, as in
	// membership/detector.
	Beat parley.Kind = ballot.Last + 1 + iota
	// DecisionQuery asks a process in a later view for the decision that ended the sender's view.
	DecisionQuery
	// Join asks to become a member. Seq: the incarnation. Value: the disk.
	Join
	// Snapshot answers Join. Seq: the sponsor's position. Value: the incarnation. Body: the state above the
	// layers.
	Snapshot
	// Ready tells the sponsor that the snapshot has arrived. Seq: the incarnation.
	Ready
	// Forward passes a delivery of the sponsor to the joiner, if the delivery is also addressed to the joiner.
	// Origin: the sender. Seq: the position in the joiner's sequence, which continues from the position of the
	// snapshot. Value: the incarnation. Body: the payload.
	Forward
	// Install carries to a joiner the decision that ended the sponsor's view. Seq: the joiner's position
	// before the cut, or after the cut if the joiner is not yet a member. Value: the incarnation. Body: the
	// decision, and the snapshots of the layers.
	Install
)

// Requests to a group, in addition to those of its layers. They are local kinds.
const (
	// Leave asks the group to remove this process from the next view.
	Leave parley.Kind = parley.Local + 0x20 + iota
	// State answers SnapshotWanted. Seq: the position that the state stands for. Body: the state.
	State
	// Exclude asks the group to remove Origin from the next view, even if it is alive. Origin then does not rejoin by
	// itself, unless it has restarted since it entered the present view.
	Exclude
)

// The indications of a group, in addition to parley.Suspect and parley.View. The indication of a view has three
// fields: Seq is the view's number, Body holds its members (see parley.ReadSet), and Value is the position after
// which it begins.
const (
	// Excluded reports that this process is no longer a member. Value: 1 if it asked to leave, 2 if it was
	// excluded on request, otherwise 0.
	Excluded parley.Kind = parley.Indication + 0x20 + iota
	// SnapshotWanted asks for the state above the group, for a joiner. Origin: the joiner. Seq: the position
	// of the last delivery that the state must include. The answer is the request State.
	SnapshotWanted
	// SnapshotInstalled hands a joiner the state of its sponsor. Seq: the position. Body: the state.
	SnapshotInstalled
	// Expelled reports to members that Origin was removed from the view on request. It is not repeated when the
	// log is replayed.
	Expelled
	// ReplayStarted reports that a restarted process will now deliver again the messages in its log. Seq: the
	// position after which these messages begin.
	ReplayStarted
)

// Config must be identical on all processes. Zero fields have defaults that fit the simulator's usual delays.
// All times are in ticks.
type Config struct {
	N int
	// M is the number of crashes to tolerate. The default is the largest number that leaves a majority of all
	// processes.
	M int
	// Liars is the number of broken processes that the group survives: processes that send wrong contents by
	// accident. They cannot stop the other processes forever. With 0, which is right for n <= 3, a process believes
	// every message.
	Liars int
	// Initial is the set of members of view 1. It must contain more than half of all processes. By default it
	// contains all.
	Initial parley.Set
	// Detector configures the group's own suspicions. Its Period is how often the group sends a heartbeat and checks
	// the other members.
	Detector detector.Config
	// Flush is how long a view change waits for members that are not suspected. The default, 2500, is more than a
	// round trip.
	Flush parley.Tick
	// Wait and Stagger set the retry times of a view change: the member of rank r first waits for Wait + r*Stagger,
	// then twice as long, and so on. The defaults are 5000 and 2000. A member also starts a view change if one of its
	// own messages is undelivered for longer than Wait, or if it has reported and gets no new view within Wait.
	Wait, Stagger parley.Tick
	// Admit is how long a joiner waits for a snapshot before it asks another process. The default is 4000. First is
	// how long it waits for the first process that it asks. The wait doubles for each further process, up to Admit.
	// The default of First is Admit.
	Admit, First parley.Tick
	// Become is how long a joiner that has a snapshot waits until it is a member, or until the next delivery arrives.
	// After that it asks another process. The default is 10 * Admit. If a link loses a message to the joiner, the
	// joiner loses this time.
	Become parley.Tick
	// Queue is how many requests may wait for the next view, and how many messages of the next view a joiner keeps.
	// The default is 1024. The group refuses further requests and messages.
	Queue int
	// Payload is how many bytes a request to a layer may have. The default is 64 KiB. The group refuses larger
	// requests. The reason is that the decision that ends a view contains all messages in flight, and must fit into
	// one message of a link.
	Payload int
	// State declares that a layer above answers SnapshotWanted. Otherwise joiners receive only the state of
	// the layers.
	State bool
	// Return lets an excluded process join again, as a new incarnation.
	Return bool
	// Durable lets a crashed process resume from its log if it is still a member. If it is no longer a
	// member, it votes from its log. The layers must be Durable. After a restart the process delivers again
	// all messages that it delivered since its log was last compacted, with the same positions.
	Durable bool
	// Keep is how many deliveries are part of the durable state. KeepBytes is how many bytes of deliveries are part
	// of it, at most 8 MiB. 0 means none. A process that restarts delivers these messages again, with the same
	// positions. A process that joins receives them from its sponsor, and also delivers them.
	Keep, KeepBytes int
	// Compact is the number of log records after which the state replaces them in durable mode. The default is 1024.
	Compact int
}

// WithDefaults returns c with defaults in place of zero fields.
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

// maxTime is the upper bound of all times of a configuration: they are multiplied.
const maxTime parley.Tick = 1 << 50

// Check returns an error that names the first fault of c, or nil.
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
	case max(c.Wait, c.Stagger, c.Admit) > maxTime:
		return parley.FlagErrorf("wait", "wait %d, stagger %d, admission %d: none may be longer than %d",
			c.Wait, c.Stagger, c.Admit, maxTime)
	case c.Keep < 0 || c.Keep > 0 && (c.KeepBytes < 1 || c.KeepBytes > maxKeptBytes):
		return parley.FlagErrorf("keep", "%d deliveries of %d bytes: allowed are 1 to %d bytes",
			c.Keep, c.KeepBytes, maxKeptBytes)
	case c.Queue < 1 || c.Compact < 1 || c.Payload < 1:
		return parley.FlagErrorf("queue", "a queue of %d, a log of %d, payloads of %d: at least 1 is needed",
			c.Queue, c.Compact, c.Payload)
	}
	return c.Detector.Check()
}

// Flags declares the flags of views: n, m and return. If n changes, all n processes are members of the first
// view.
func Flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	n := c.N
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", 0, "`crashes` to tolerate (0: as many as leave a majority of the processes)")
	fs.BoolVar(&c.Return, "return", c.Return, "let an excluded process join again")
	return func(c *Config, _ parley.Naming) error {
		if c.N != n {
			c.Initial = parley.Set{}
		}
		return c.Check()
	}
}

// New returns a protocol of views that runs the given broadcasts. The caller sets its name, its flags, and further
// properties, which are not about views. New panics if c does not pass Check.
func New(c Config, services ...LayerSpec) parley.Protocol {
	c = c.WithDefaults()
	if err := c.Check(); err != nil {
		panic("group: " + err.Error())
	}
	return parley.Protocol{
		Name:       "group",
		Title:      "agreed views, and agreement on the deliveries in each view",
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

// width is how many bits of a path name a layer; 0 names the group itself.
func width(services int) int { return bits.Len(uint(services)) }

// kinds returns the names of the group's own kinds and of the layers' kinds. The path of a message tells
// which is meant.
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

// size counts only the messages of the layers: the group's own are periodic.
func size(e parley.Env, services []LayerSpec) parley.Traffic {
	if e.Path&(1<<width(len(services))-1) == 0 {
		return parley.Traffic{}
	}
	return parley.Traffic{Messages: 1}
}
