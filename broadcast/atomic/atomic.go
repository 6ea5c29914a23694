// Package atomic implements atomic broadcast with message queues. A sender names the receivers of its message. Any
// two processes deliver the messages that are addressed to both in the same order.
//
// The problem: reliable broadcast with total order, although the receivers may differ from message to message. The
// order is pairwise: it covers, for any two processes, the messages that are addressed to both.
//
// There are two forms of the protocol, and both have two phases. In the first phase, the sender sends the message to
// its receivers. Each receiver puts the message into its queue, marks it undeliverable, and proposes a priority that
// is greater than all priorities that the receiver knows. In the second phase, the sender chooses the highest
// proposal as the final priority, and sends the final priority to the receivers. They mark the message deliverable. A
// receiver delivers a deliverable message when no message in its queue has a smaller priority.
//
// Why it works: the final priority of a message is at least as high as the proposal of each receiver. Suppose that
// a receiver delivers a message. Every message that is still in its queue has a higher final priority, or will get
// one. The same is true of every message that it receives later. Therefore processes deliver messages in the order
// of their final priorities.
//
// [New] is the form of the lecture (docs/explanation/sources.md). Model: any number of processes crash. Messages are
// asynchronous; links may reorder them, but do not lose them. A detector eventually reports every crash, and never
// suspects a live process. When a crash is reported, messages of the crashed process may still be in flight. Suppose
// that a sender crashes before it has sent the final priority. Then some receivers take over the role of the sender:
// each receiver whose queue still has the message as undeliverable. A process that restarts after a crash stays silent.
//
// The promises of [New] cover only correct processes, so this form is not uniform. Suppose that a process delivers
// a message and crashes, and that no other process knows the message's final priority. Then the others choose
// another priority. A single false suspicion can break agreement and order even among correct processes. Final
// priorities are stored forever, so use this form only for study and for bounded runs.
//
// [InViews] is the form that tolerates false suspicions. Model: a minority of the processes may crash, and links are
// FIFO. After the second phase each receiver logs the final priority, and reports this to the other receivers. A
// receiver delivers the message when all receivers have logged its final priority. After a crash, the processes agree
// on a new view, that is, on the set of members. This view change completes the messages in flight (see
// membership/group).
//
// [InViews] is uniform. Consider any two processes, which may be excluded or crashed, and only the messages that are
// addressed to both. Then the sequence that one process has delivered is a prefix of the sequence that the other
// process has delivered. A delivery takes four message delays. A silent receiver stops deliveries until a view
// excludes it. Meanwhile senders can continue to send, and receivers keep the messages in their queues. Counts and
// priorities restart in each view. If they reach their maximum, 2^56, within a view, messages wait for the next view.
//
// Neither form promises FIFO or causal order.
//
// Source: the lecture on broadcast, atomic broadcast protocol using message queues and its failure scenario, from
// Birman and Joseph (1987). If two priorities are equal, the IDs of their proposers decide the order. Parley
// differs from the lecture in two ways. First, the lecture's rule takes the highest priority among the buffered
// messages, which breaks total order; see queue.hold for the correction. Second, if several receivers take over,
// each uses its own ballot. The lecture has no ballots.
package atomic

import (
	"flag"

	"parley"
	"parley/broadcast/problem"
)

// Config must be identical on all processes of the lecture's form.
type Config struct {
	N int // processes
	// Detector declares that every process is notified of crashes, by the detector of a stack or by the host.
	// Without it no eventual property is promised of runs with crashes.
	Detector bool
}

// New returns the lecture's form. A problem.Request broadcasts to all processes, and a problem.RequestTo to named
// receivers. The protocol delivers a message with its sender. New panics if c is invalid.
func New(c Config) parley.Protocol {
	if err := parley.CheckN(c.N, 1); err != nil {
		panic("atomic: " + err.Error())
	}
	p := parley.Protocol{
		Name:   "atomic",
		Title:  "atomic broadcast to selected receivers, in two phases with takeover",
		Paper:  "lecture, atomic broadcast using message queues",
		Faults: parley.CrashFaults,
		Kinds:  kinds,
		N:      c.N,
		Serves: true,
		New:    func(self parley.ID) parley.Machine { return &process{n: c.N, self: self} },
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.TotalOrder,
			problem.UniformAgreement, problem.UniformTotalOrder, problem.Delivery),
		Promises: c.promises,
		Cost:     cost,
		Size:     func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:  explain(c.N, "ballot"),
		Flags:    parley.Flags(c, flags, New),
	}
	if c.Detector {
		p.M = c.N - 1
	}
	return p
}

// flags declares the flags of the lecture's form.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	return func(c *Config, _ parley.Naming) error { return parley.CheckN(c.N, 1) }
}

// cost counts the messages on links of one broadcast to all, including the sender, without faults: the
// message, the proposals and the final priority.
func cost(n, _ int) parley.Cost {
	one := parley.Traffic{Messages: uint64(n - 1)}
	return parley.Cost{Rounds: 3, PerRound: []parley.Traffic{one, one, one}}
}

// promises returns what holds among correct processes.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	order := "" // why total order may break
	switch {
	case a.Processes.Suspected:
		order = "a process was suspected although it had not crashed, and others took over from it"
	case a.Processes.Restarted:
		order = "a process that restarts takes no further part, and its deliveries may be lost"
	}
	end := order
	switch {
	case order != "":
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		end = "messages were lost, and no process sends them again"
	case a.Faulty > 0 && !c.Detector:
		end = "no detector reports crashes, and the sender waits for all receivers"
	}
	const uniform = "a process that delivers a message and crashes may be the only process that knows " +
		"the final priority"
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Validity, "a sender that is up receives the answers of all receivers "+
			"that are up", end),
		parley.Promised(problem.Agreement, "a process that holds a message takes it over from a crashed coordinator", end),
		parley.Promised(problem.Integrity, "each process remembers every delivered message with its "+
			"final priority", ""),
		parley.Promised(problem.TotalOrder, "the final priority of a message is higher than the "+
			"priorities that its receivers have delivered before", order),
		parley.Promised(problem.UniformAgreement, "", uniform),
		parley.Promised(problem.UniformTotalOrder, "", uniform),
		parley.Promised(problem.Delivery, "processes other than the sender deliver a broadcast", end),
	}, proofs)
}
