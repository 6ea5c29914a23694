// Package interactive implements interactive consistency: agreement on the vector of the
// initial values of all processes, by one Byzantine agreement for each of them.
//
// The problem: every process has an initial value, and all correct processes must decide on the same vector.
// If process i is correct, entry i of the vector must be the initial value of process i.
//
// The Byzantine agreement determines the bound, the rounds and the fault model, because only the agreements send
// messages.
//
// All n agreements run in parallel, in the same rounds and in the same frames. Process i is the source of agreement
// i. When the last round closes, each process enters the decision of agreement i as entry i of its vector. For its
// own agreement, a process decides on its own value, because in eig, om and sm a source receives nothing about its
// value.
//
// Why it works: consider entry i. If process i is faulty, all correct processes are lieutenants of agreement i, so
// they enter the same value. If process i is correct, all other correct processes enter its value, because
// agreement i has validity. Process i enters its own value, too.
//
// Source: the lecture (docs/explanation/sources.md), "Relations Among the Agreement Problems", question 1, and
// "Interactive Consistency by Running the Byzantine Agreement Protocol". The problem is from Pease, Shostak and
// Lamport (1980).
package interactive

import (
	"flag"
	"fmt"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/mux"
)

// Config configures one instance. Its Source is not used: each process is a source.
type Config struct {
	problem.Instance
	// Over makes agreement i from an instance with Source i; nil means eig.
	Over Agreement
}

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, func(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
		complete := Flags(fs, c, func(c Config, n, m int) error { return Rounds(c).Bound(n, m) })
		fs.Lookup("source").Usage = "ignored: every `process` is a source"
		return complete
	}, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol {
	parts := c.parts()
	p := mux.OfSources("interactive", parts)
	p.Title = "interactive consistency: n Byzantine agreements, each by " + parts[0].Name
	p.Paper = "lecture, relations among the agreement problems, question 1; Pease, Shostak and Lamport 1980"
	p.Properties = problem.Vector(DecodeVector)
	p.Promises = promises(parts[0])
	inner, last := p.New, p.Last
	p.New = func(self parley.ID) lockstep.Rounds {
		v := &process{c: c, self: self, last: last, agreements: inner(self), vector: make([][]byte, c.N)}
		for i := range v.vector {
			v.vector[i] = c.Default
		}
		return v
	}
	if parts[0].Tree != nil {
		p.Tree = func(r lockstep.Rounds) parley.Tree { return r.(*process).forest(parts) }
	}
	return p
}

func (c Config) parts() []lockstep.Protocol {
	if c.Over == nil {
		c.Over = agreements[0].over
	}
	parts := make([]lockstep.Protocol, c.N)
	for i := range parts {
		in := c.Instance
		in.Source = parley.ID(i)
		parts[i] = c.Over(in)
		if !parts[i].Proposers.Has(in.Source) {
			panic(fmt.Sprintf("interactive: %s with source %d does not ask it for its value", parts[i].Name, i))
		}
	}
	return parts
}

type process struct {
	c          Config
	self       parley.ID
	last       int
	agreements lockstep.Rounds

	given  bool     // the initial value has arrived
	vector [][]byte // the default where nothing is decided yet
	done   bool     // the vector is complete
}

// Request: the initial value, which is the order in this process's own agreement.
// The first is final.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && !p.given && len(m.Body) <= problem.MaxValue {
		p.given = true
		p.agreements.Request(s, m)
	}
}

// Emit: a process without an initial value starts with the default.
func (p *process) Emit(s *parley.Step, r int) {
	if r == 0 && !p.given {
		p.Request(s, parley.Msg{Kind: parley.Propose, Body: p.c.Default})
	}
	p.enter(s, func() { p.agreements.Emit(s, r) })
}

func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	p.enter(s, func() { p.agreements.Absorb(s, r, from, m) })
}

// Close: when the last round is over, the vector is complete.
func (p *process) Close(s *parley.Step, r int) {
	p.enter(s, func() { p.agreements.Close(s, r) })
	if r == p.last {
		p.done = true
		s.Deliver(p.self, parley.Msg{Kind: parley.Decide, Body: EncodeVector(p.vector)})
	}
}

// enter runs a clause of the agreements and enters their decisions into the vector.
func (p *process) enter(s *parley.Step, clause func()) {
	mark := s.Mark()
	clause()
	for _, e := range lockstep.Delivered(s, mark) {
		if i, _ := mux.Part(e.Path, p.c.N); e.Msg.Kind == parley.Decide {
			p.vector[i] = e.Msg.Body
		}
	}
}

func (p *process) State(v *parley.Vars) {
	v.Bool("given", &p.given)
	parley.PerProcess(v, "vector", p.vector, func(_ parley.ID, entry *[]byte) { v.Bytes("entry", entry) })
	v.Bool("done", &p.done)
	v.Machine("agreements", p.agreements)
}

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Agreement: "Each entry of the vector is decided by a Byzantine agreement of its own, whose source is one " +
		"of the processes. In each of these agreements all correct processes decide the same, so they have the same vector.",
	problem.Validity: "Each entry of the vector is decided by a Byzantine agreement of its own, whose source is one " +
		"of the processes. If the source is correct, all correct processes decide on its value, which is its entry.",
}

// promises derives the promises for the vector from those of one agreement.
func promises(part lockstep.Protocol) func(a parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		of := func(property string, sourceFaulty bool) parley.Promise {
			a.SourceFaulty = sourceFaulty
			if part.Promises != nil {
				for _, p := range part.Promises(a) {
					if p.Property == property {
						p.Because = "n agreements run side by side; " + p.Because
						p.Proof = "" // the proof for one agreement
						return p
					}
				}
			}
			return parley.Promise{Property: property, Because: "nothing is known about " + part.Name}
		}
		validity := of(problem.Validity, false)
		// If the source is correct, agreement on its entry follows from validity.
		agreement := of(problem.Agreement, a.Faulty > 0)
		if agreement.Holds && !validity.Holds {
			agreement.Holds, agreement.Because = false, validity.Because
		}
		return parley.Proved([]parley.Promise{
			agreement, validity,
			{Property: problem.Termination, Holds: true, Because: "rounds end at fixed times, no matter which messages arrive"},
			{Property: problem.Integrity, Holds: true, Because: "the vector is delivered once, when the last round closes"},
		}, proofs)
	}
}
