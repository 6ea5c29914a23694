// Package watch names silent processes in the synchronous model.
//
// Problem: if a process is silent to all or to some processes, the others must detect and name it.
//
// Model: synchronous rounds, crash and omission faults.
//
// Source: the lecture (docs/explanation/sources.md), model of processor failures: in the synchronous model,
// omission can be detected.
//
// Why it works: in every round each process sends to every other process, and a message arrives in the round in which
// it is sent. If process p does not receive q's message, then either q has not sent the message or p has not received
// it. So if p is correct, q is faulty. This argument needs rounds. Without rounds a process never knows that a
// message is missing, and cannot distinguish a silent process from a slow process. Then a detector can only guess
// (see membership/detector).
//
// Correct processes need not name the same processes, because a faulty process may omit messages to one process and
// send to another. A named process need not be faulty, because the process that names it may itself omit to receive
// messages.
package watch

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/lockstep"
)

// Config must be identical on all processes.
type Config struct {
	N      int
	Rounds int // number of watched rounds, at least 1
}

const alive parley.Kind = 1 // carries nothing: its sender is alive

// The names of the properties.
const (
	Accuracy = "accuracy"
	Named    = "naming"
)

// New returns the protocol as machines that keep the schedule. It panics if c is invalid, as Rounds does.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, func(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
		fs.IntVar(&c.N, "n", c.N, "number of `processes`")
		fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds to watch, 1 to 1000")
		return func(c *Config, _ parley.Naming) error {
			if err := parley.CheckN(c.N, 2); err != nil || c.Rounds >= 1 && c.Rounds <= 1000 {
				return err
			}
			return parley.FlagErrorf("rounds", "%d rounds: allowed are 1 to 1000", c.Rounds)
		}
	}, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds. It panics if c.N < 2 or c.Rounds < 1.
func Rounds(c Config) lockstep.Protocol {
	if c.N < 2 || c.N > parley.MaxProcesses || c.Rounds < 1 {
		panic(fmt.Sprintf("watch: n = %d, %d rounds", c.N, c.Rounds))
	}
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "watch", Title: "detection of silent processes in rounds",
			Paper:  "lecture, model of processor failures",
			Faults: parley.OmissionFaults, Kinds: []string{"", "ALIVE"}, N: c.N, M: c.N - 1,
			Properties: properties,
			Promises: func(parley.RunConditions) []parley.Promise {
				return []parley.Promise{
					{Property: Accuracy, Holds: true, Because: "what a correct process sends in a round arrives in that round"},
					{Property: Named, Because: "a single run need not show this"},
				}
			},
			Cost: func(n, _ int) parley.Cost {
				each := parley.Traffic{Messages: uint64(n * (n - 1))}
				return parley.Cost{Rounds: c.Rounds, PerRound: slices.Repeat([]parley.Traffic{each}, c.Rounds)}
			},
			Size: func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
			Explain: func(_ parley.Env, _ parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
				return func(yield func(string) bool) { yield("ALIVE") }
			},
		},
		Last: c.Rounds - 1,
		New:  func(parley.ID) lockstep.Rounds { return new(process) },
	}
}

type process struct {
	heard parley.Set // in this round
	named parley.Set
}

// Request does nothing: there are no requests.
func (p *process) Request(*parley.Step, parley.Msg) {}

// Emit: send to every other.
func (p *process) Emit(s *parley.Step, _ int) {
	p.heard = parley.SetOf(s.Self)
	s.SendAll(parley.Msg{Kind: alive})
}

// Absorb: a sender is alive.
func (p *process) Absorb(s *parley.Step, _ int, from parley.ID, m parley.Msg) {
	if m.Kind != alive || !p.heard.Add(from) {
		s.Refuse(from, "no message of a watch, or a second one")
	}
}

// Close: name, once, each process that was not heard.
func (p *process) Close(s *parley.Step, r int) {
	for id := range parley.Everyone(s.N).Minus(p.heard).All() {
		if p.named.Add(id) {
			s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id, Seq: uint64(r)})
		}
	}
}

func (p *process) State(v *parley.Vars) {
	v.Set("heard", &p.heard)
	v.Set("named", &p.named)
}

var properties = []parley.Property{
	{
		Name: Accuracy, Mode: parley.Always,
		Says: "no correct process reports that a correct process was silent",
		Check: func(h *parley.History) error {
			for i := range h.Indications {
				d := &h.Indications[i]
				if d.Msg.Kind == parley.Suspect && h.Correct(d.At) && h.Correct(d.Msg.Origin) {
					return fmt.Errorf("%s names %s in round %d", h.Name(d.At), h.Name(d.Msg.Origin), d.Msg.Seq)
				}
			}
			return nil
		},
	},
	{
		Name: Named, Mode: parley.Sometimes,
		Says: "some process is reported as silent",
		Check: func(h *parley.History) error {
			if !slices.ContainsFunc(h.Indications, func(i parley.ExternalEvent) bool { return i.Msg.Kind == parley.Suspect }) {
				return errors.New("nobody was named")
			}
			return nil
		},
	},
}
