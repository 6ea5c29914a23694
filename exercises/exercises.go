// Package exercises makes protocols from the machines that students write. Such a protocol has the properties, the
// promises and the lies of the protocol that the exercise is about, and the machine of the student.
// "parley exercise new" writes a module with a machine that has holes, and "parley exercise check" grades it.
//
// # Decisions
//
// A student writes only a machine. The properties, the promises and the lies come from Parley. Motive: no mistake of a
// student can change the properties that judge the machine. Cost: an exercise does not teach how to state properties.
// The tutorial "Check a protocol" does.
package exercises

import (
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/om"
	agreement "parley/agreement/problem"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	broadcast "parley/broadcast/problem"
	"parley/commit/problem"
	"parley/commit/twophase"
	"parley/lockstep"
	"parley/stack"
)

// Prefix begins the names of protocols that students write.
const Prefix = "my-"

// OM returns agreement by oral messages with the machines of a student.
func OM(machine func(c agreement.Instance, self parley.ID) lockstep.Rounds) parley.Protocol {
	var of func(c agreement.Instance) parley.Protocol
	of = func(c agreement.Instance) parley.Protocol {
		p := om.Rounds(c)
		p.Name, p.Title, p.Tree = Prefix+"om", "exercise: "+p.Title, nil
		p.Rename, p.RenameAll = nil, nil // a student's State names no processes
		p.New = func(self parley.ID) lockstep.Rounds { return machine(c, self) }
		made := lockstep.Of(p, lockstep.Simulated)
		made.Flags = parley.Flags(c, agreement.OralFlags, of)
		return made
	}
	return of(agreement.Instance{N: 4, M: 1, Default: []byte("0")})
}

// FIFO returns FIFO broadcast over diffusion with the machines of a student.
func FIFO(machine func(n int, self parley.ID) parley.Machine) parley.Protocol {
	var of func(c diffusion.Config) parley.Protocol
	of = func(c diffusion.Config) parley.Protocol {
		beneath := diffusion.New(c)
		p := fifo.New(fifo.Config{N: c.N, Beneath: beneath.Promises, Uniform: c.Uniform})
		p.New = func(self parley.ID) parley.Machine { return machine(c.N, self) }
		p.Promises = onceOnly(p.Promises)
		p.Explain = func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{fmt.Sprintf("#%d %s", m.Seq, parley.Printable(m.Body))})
		}
		p = stack.New(beneath, p)
		p.Rename = nil // a student's State names no processes
		p.Name, p.Title = Prefix+"fifo", "exercise: FIFO broadcast over diffusion"
		p.Flags = parley.Flags(c, diffusion.Flags, of)
		return p
	}
	return of(diffusion.Config{N: 4})
}

// onceOnly returns promises for machines that keep nothing when they crash: none holds if a process restarts.
func onceOnly(promises func(parley.RunConditions) []parley.Promise) func(parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		all := promises(a)
		for i := range all {
			if a.Processes.Restarted || a.Processes.LostDisk {
				all[i] = parley.Promised(all[i].Property, "", "the machine of the exercise does not handle restarts")
			}
		}
		return all
	}
}

// Priorities returns atomic broadcast by agreed priorities with the machines of a student.
func Priorities(machine func(n int, self parley.ID) parley.Machine) parley.Protocol {
	var of func(n int) parley.Protocol
	of = func(n int) parley.Protocol {
		return parley.Protocol{
			Name: Prefix + "priorities", Title: "exercise: atomic broadcast by agreed priorities, without crashes",
			Paper:  "lecture, atomic broadcast using message queues; Birman, Joseph 1987",
			Faults: parley.CrashFaults, Kinds: []string{"", "DATA", "PROPOSAL", "FINAL"}, N: n, Serves: true,
			New: func(self parley.ID) parley.Machine { return machine(n, self) },
			Properties: broadcast.Of(broadcast.Validity, broadcast.Agreement, broadcast.Integrity, broadcast.TotalOrder,
				broadcast.Delivery),
			Promises: promisePriorities,
			Explain: func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
				text := fmt.Sprintf("#%d %s", m.Seq, parley.Printable(m.Body))
				if m.Kind != 1 {
					text = fmt.Sprintf("#%d priority %d", m.Seq, m.Value)
				}
				return slices.Values([]string{text})
			},
			Flags: parley.Flags(n, func(fs *flag.FlagSet, n *int) func(*int, parley.Naming) error {
				fs.IntVar(n, "n", *n, "number of `processes`")
				return func(n *int, _ parley.Naming) error { return parley.CheckN(*n, 2) }
			}, of),
		}
	}
	return of(4)
}

// promisePriorities promises everything if no process crashes and links neither lose nor double messages.
func promisePriorities(a parley.RunConditions) []parley.Promise {
	unless := ""
	switch {
	case a.Faulty > 0 || a.Processes.Restarted || a.Processes.LostDisk:
		unless = "a process crashed, and the exercise has no takeover"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected || a.Network.Doubled:
		unless = "links lost or doubled messages"
	}
	var all []parley.Promise
	for _, property := range []string{broadcast.Validity, broadcast.Agreement, broadcast.Integrity, broadcast.TotalOrder} {
		all = append(all, parley.Promised(property, "the processes deliver messages in the order of their final priorities, "+
			"which are all different", unless))
	}
	return append(all, broadcast.Promise(a, broadcast.Delivery, ""))
}

// TwoPhase returns two-phase commit with the machines of a student.
func TwoPhase(machine func(n int, self parley.ID) parley.Machine) parley.Protocol {
	var of func(n int) parley.Protocol
	of = func(n int) parley.Protocol {
		p := twophase.New(twophase.Config{N: n})
		p.Name, p.Title = Prefix+"twophase", "exercise: atomic commitment in two phases, without restarts"
		p.Kinds = []string{"", "VOTE-REQ", "VOTE", "DECISION"}
		p.New = func(self parley.ID) parley.Machine { return machine(n, self) }
		p.Properties = slices.DeleteFunc(p.Properties, func(q parley.Property) bool { return q.Name == problem.NonBlocking })
		promises := onceOnly(p.Promises)
		p.Promises = func(a parley.RunConditions) []parley.Promise {
			all := promises(a)
			for i := range all {
				if all[i].Holds { // the reasons of the catalog are about its log
					all[i].Because = "two phases are enough if no process restarts (Bernstein, Hadzilacos, Goodman 1987, section 7.4)"
				}
			}
			return all
		}
		p.Cost, p.Size = nil, nil
		p.Flags = parley.Flags(n, func(fs *flag.FlagSet, n *int) func(*int, parley.Naming) error {
			fs.IntVar(n, "n", *n, "number of `processes`, with the coordinator")
			return func(n *int, _ parley.Naming) error { return parley.CheckN(*n, 2) }
		}, of)
		return p
	}
	return of(4)
}
