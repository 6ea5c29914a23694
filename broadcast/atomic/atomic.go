// Package atomic is atomic broadcast with message queues: a sender names the receivers of its message, and
// any two processes deliver the messages for both in the same order.
//
// The problem: reliable broadcast with total order. The order is pairwise: sets of receivers may overlap in
// any way.
//
// Both forms consist of two phases. First, the sender sends the message to its receivers. Each receiver holds
// the message, marked undeliverable, and proposes a priority greater than all priorities that it knows.
// Second, the sender chooses the highest proposal as the final priority, and sends it to the receivers. They
// mark the message deliverable. A receiver delivers a message when it is deliverable and no held message has
// a smaller priority.
//
// Why it works: the final priority of a message is at least the proposal of each receiver. So when a receiver
// delivers the head of its queue, every other message that it holds, or will hold later, gets a higher final
// priority. Therefore all processes that deliver two messages deliver them in the order of their final
// priorities.
//
// [New] is the lecture's form. Model: crashes, any number of them; asynchronous messages that are not lost,
// in any order; a detector that eventually reports every crash, and never suspects a live process. Messages
// of the crashed process may still be in flight when its crash is reported. If a coordinator crashes, the
// receivers that hold its message undeliverable take over. A process that restarts after a crash stays
// silent. The promises cover only correct processes: the form is not uniform. A process that delivered and
// crashed may have been the only process that knew a final priority; the others then choose another priority.
// A single false suspicion can break agreement and order also among correct processes. Final priorities are
// stored forever, so this form is only for study and for bounded runs.
//
// [InViews] is the form that tolerates false suspicions. Model: crashes of a minority, FIFO links. After the
// second phase the receivers log the final priority and report that to each other. They deliver a message
// when all receivers have logged its final priority. After a crash the view change completes the messages in
// flight, see membership/group. This form is uniform: take two processes, even excluded or crashed ones, and
// the messages addressed to both. The sequence of these messages that one process has delivered is a prefix
// of the sequence that the other has delivered. A delivery takes four message delays. One silent receiver
// stops deliveries until the view excludes it. Until then no sender is blocked: all receivers of a message
// hold it while it is in flight. Counts and priorities restart in each view. If they reach their maximum,
// 2^56, within a view, messages wait for the next view.
//
// Neither form promises FIFO or causal order.
//
// Source: the lecture on broadcast, atomic broadcast protocol using message queues and its failure scenario,
// from Birman and Joseph (1987). The lecture's rule takes the highest priority among the buffered messages.
// This rule breaks total order, and is corrected here: see queue.hold. The proposer's id breaks ties, and
// ballots, which the lecture does not mention, distinguish takeovers.
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

// New returns the lecture's form. It broadcasts upon problem.Request, to all, or problem.RequestTo, and
// delivers a message with its sender. It panics if c is invalid.
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
	return []parley.Promise{
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
	}
}
