// Package atomic is atomic broadcast with message queues: messages go to the
// receivers that the sender names, and any two processes deliver those that are
// for both in the same order.
//
// The problem: reliable broadcast with total order. The order is pairwise: sets of
// receivers may overlap as they like.
//
// The two phases, of which both forms consist. The sender hands the message to its
// receivers. Each holds it, undeliverable, and proposes a priority above all that it
// knows of. The sender chooses the highest proposal as the final priority and tells
// the receivers, who mark the message deliverable. A message is delivered when it is
// deliverable and no message held has a smaller priority.
//
// Why it works: the final priority of a message is at least what each receiver
// proposed. So when a receiver delivers the head of its queue, everything else that
// it holds will end up behind it, and so will what it does not hold yet. All that
// deliver two messages therefore deliver them by their final priorities.
//
// [New] is the lecture's form. Model: crashes, any number of them; asynchronous
// messages that are not lost, in any order; a detector that tells of every crash,
// sooner or later, and never of a process that lives; messages of the crashed process
// may still be on their way. If a coordinator crashes, the receivers that hold its
// message undeliverable take over. Who comes back after a crash stays silent. What is promised holds of
// correct processes: the form is not uniform. A process that delivered and crashed
// may have been the only one to know a final priority, and the others then choose
// another. With one false suspicion agreement and order break among correct
// processes too. Final priorities are remembered for ever: a form to study, and to
// use for bounded runs.
//
// [InViews] is the form for false suspicions. Model: crashes of a minority of each
// view, FIFO links. After the second phase receivers log the final priority and tell
// each other, and deliver what all have logged; takeover is the change of the view,
// see membership/group. It is uniform: of the messages for both of two processes,
// excluded and crashed ones too, what one has delivered begins with what the other
// has. Four message delays, and it stops at one silent receiver until the view
// excludes it. Nobody is held back until then: what is under way is held by all that it
// is for. Counts and priorities begin again in each view; should they come to their
// end within one, 2^56, then messages wait for the next.
//
// Neither form promises FIFO or causal order.
//
// Source: the lecture on broadcast, atomic broadcast protocol using message queues
// and its failure scenario, from Birman and Joseph (1987). The lecture's rule for a
// priority, the highest among the buffered messages, breaks total order and is
// corrected: see queue.hold. Ties are for the proposer's id to break, and takeovers
// are told apart by ballots, of which the lecture does not speak.
package atomic

import (
	"flag"

	"parley"
	"parley/broadcast/problem"
)

// Config is one system of the lecture's form.
type Config struct {
	N int // processes
	// Detector tells that crashes are indicated to every process, by the detector of
	// a stack or by the host. Without it nothing that is to happen in the end is
	// promised of runs with crashes.
	Detector bool
}

// New returns the lecture's form. It carries what it is asked to by
// problem.Request, to all, or problem.RequestTo, and delivers it with its sender.
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

// cost counts the messages on links of one broadcast to all, the sender among
// them, without faults: the message, the proposals and the final priority.
func cost(n, _ int) parley.Cost {
	one := parley.Traffic{Messages: uint64(n - 1)}
	return parley.Cost{Rounds: 3, PerRound: []parley.Traffic{one, one, one}}
}

// promises says what holds among correct processes.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	order := "" // what stands against total order
	switch {
	case a.Processes.Suspected:
		order = "a process was suspected that had not crashed, and others took over from it"
	case a.Processes.Restarted:
		order = "a process that comes back takes no further part, and what it delivered may be lost"
	}
	end := order
	switch {
	case order != "":
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		end = "messages are lost, and nothing is sent again"
	case a.Faulty > 0 && !c.Detector:
		end = "nobody tells of crashes, and the sender waits for all receivers"
	}
	const uniform = "a process that delivers and crashes may be the only one to know the final priority"
	return []parley.Promise{
		parley.Promised(problem.Validity, "a sender that is up hears from all receivers that are up", end),
		parley.Promised(problem.Agreement, "a process that holds a message takes it over from a crashed coordinator", end),
		parley.Promised(problem.Integrity, "what was delivered is remembered with its final priority", ""),
		parley.Promised(problem.TotalOrder, "a final priority is higher than any that its receivers have delivered", order),
		parley.Promised(problem.UniformAgreement, "", uniform),
		parley.Promised(problem.UniformTotalOrder, "", uniform),
		parley.Promised(problem.Delivery, "processes other than the sender deliver a broadcast", end),
	}
}
