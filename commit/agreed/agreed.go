// Package agreed implements commit over Byzantine agreement: atomic commitment that never blocks, even if some
// processes lie.
//
// The problem is atomic commitment (package problem) among the correct processes. All of them commit or all abort,
// and they commit only if each of them has voted yes. A faulty process may prevent a commit, because the others
// cannot distinguish its no from the no of a correct process. But a faulty process cannot make correct processes
// decide differently.
//
// The protocol uses a Byzantine agreement, which determines the bound, the rounds, the messages and the fault model.
// For example, with oral (unsigned) messages the bound is n > 3m, and there are m+1 rounds. The model is synchronous:
// rounds end at fixed times, and no process waits for another. A process that crashes counts as faulty, and takes no
// part after a restart. The properties do not cover its decision. There is no coordinator and no log.
//
// The processes agree on the vector of all votes, by interactive consistency. A missing vote counts as a no. Then
// each process commits if all entries are yes, and otherwise aborts.
//
// Why it works: the vectors of correct processes are equal, so their outcomes are equal. In every vector, the entry
// of a correct process is its vote. If no process is faulty and all vote yes, all entries are yes, so all commit.
//
// Source: the lecture (docs/explanation/sources.md), "Relations Among the Agreement Problems", question 1. The idea
// of committing by Byzantine agreement is from Dolev and Strong (1982), "Distributed commit with bounded waiting".
package agreed

import (
	"bytes"
	"flag"
	"strings"

	"parley"
	"parley/agreement/interactive"
	agreement "parley/agreement/problem"
	"parley/commit/problem"
	"parley/lockstep"
)

// Config configures one transaction.
type Config struct {
	// N is the number of processes. All of them vote. M is how many of them may be faulty.
	N, M int
	// Over is the agreement on each vote. nil means eig.
	Over interactive.Agreement
}

// The votes in messages: one bit.
var yes, no = []byte("1"), []byte("0")

// instance returns the instance of the agreements: a missing vote is a no, and liars may send either vote.
func (c Config) instance() agreement.Instance {
	return agreement.Instance{N: c.N, M: c.M, Default: no, Alphabet: [][]byte{no, yes}}
}

// New returns the protocol as machines that follow the schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, flags, func(c Config) parley.Protocol { return New(c, when) })
	p.Progress = progress
	return p
}

// progress implements [parley.Protocol.Progress]: all learn every vote, so one that votes yes is in doubt at once.
func progress(m parley.Msg, record bool) parley.Progress {
	if yes, _ := problem.Vote(m.Body); yes && m.Kind == parley.Propose && !record {
		return parley.Progress{Stage: parley.StageInDoubt}
	}
	return problem.Progress(m, record)
}

// Rounds returns the protocol at the level of rounds. It panics if c is invalid.
func Rounds(c Config) lockstep.Protocol {
	if err := c.instance().Check(); err != nil {
		panic("agreed: " + err.Error())
	}
	vector := interactive.Rounds(interactive.Config{Instance: c.instance(), Over: c.Over})
	p := lockstep.Derive(vector, "agreed", func(s *parley.Step, _ parley.ID, m parley.Msg) {
		votes, err := interactive.DecodeVector(m.Body)
		if err != nil {
			panic(err) // this process encoded it
		}
		s.Deliver(s.Self, Outcome(votes).Decided(0))
	})
	p.Title = "atomic commitment by agreement on all votes, with " + vector.Title
	p.Paper = "lecture, relations among the agreement problems; Dolev, Strong 1982"
	p.Properties = problem.AmongCorrect(parley.Everyone(c.N))
	p.Promises = promises(vector.Promises)
	derived, tree := p.New, p.Tree
	p.New = func(self parley.ID) lockstep.Rounds { return voter{derived(self)} }
	if tree != nil {
		p.Tree = func(r lockstep.Rounds) parley.Tree { return tree(r.(voter).Rounds) }
	}
	return p
}

// Outcome returns Commit if all votes are 1, otherwise Abort.
func Outcome(votes [][]byte) problem.Outcome {
	for _, v := range votes {
		if !bytes.Equal(v, yes) {
			return problem.Abort
		}
	}
	return problem.Commit
}

// voter converts votes to bits. A process that gets no vote votes no.
type voter struct{ lockstep.Rounds }

func (v voter) Request(s *parley.Step, m parley.Msg) {
	willing, ok := problem.Vote(m.Body)
	if m.Kind != parley.Propose || !ok {
		s.Refuse(s.Self, "not a vote")
		return
	}
	m.Body = no
	if willing {
		m.Body = yes
	}
	v.Rounds.Request(s, m)
}

// promises derives the promises of the outcome from those of the vector.
func promises(of func(parley.RunConditions) []parley.Promise) func(parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		vector := make(map[string]parley.Promise)
		for _, p := range of(a) {
			vector[p.Property] = p
		}
		out := func(property, from, because, unless string) parley.Promise {
			p := vector[from]
			switch {
			case unless != "":
				p.Holds, p.Because = false, unless
			case p.Holds:
				p.Because = because + "; " + p.Because
			}
			p.Property, p.Proof = property, "" // the one in of is about vectors
			return p
		}
		late := missed(a)
		trivial, absent := late, ""
		if a.Faulty > 0 {
			trivial = "a process is faulty, and its vote may count as a no"
		}
		if a.Processes.Restarted || a.Processes.Paused {
			absent = "a process that was down or paused when a round ended takes no further part"
		}
		return []parley.Promise{
			out(problem.Atomicity, agreement.Agreement, "equal vectors give equal outcomes", late),
			out(problem.Validity, agreement.Validity, "a correct process's entry is its vote", late),
			out(problem.NonTriviality, agreement.Validity, "all entries are yes", trivial),
			out(problem.Stability, agreement.Integrity, "each vector gives one outcome", absent),
			out(problem.Termination, agreement.Termination, "each vector gives one outcome", absent),
			out(problem.NonBlocking, agreement.Termination, "no process waits for another", ""),
		}
	}
}

// missed returns what made correct processes miss messages of correct ones, beyond the counted faults.
func missed(a parley.RunConditions) string {
	switch {
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "a message was lost: its sender or its receiver counts as faulty"
	case a.Network.Late:
		return "a message arrived after the end of its round: its sender or its receiver counts as faulty"
	case a.Processes.Paused || a.Processes.Restarted:
		return "a process was down or paused when a round ended: it counts as faulty"
	}
	return ""
}

// flags declares the flags. The default of m is the largest value that the bound allows.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	_, usual, _ := strings.Cut(Rounds(*c).Title, ", each by ")
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	m := fs.Int("m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	over := fs.String("over", "",
		"algorithm that agrees on each vote: `"+strings.Join(interactive.Names(), "|")+"` (default: "+usual+")")
	return func(c *Config, _ parley.Naming) (err error) {
		if *over != "" {
			if c.Over, err = interactive.Over(*over); err != nil {
				return &parley.FlagError{Flag: "over", Err: err}
			}
		}
		c.M = 0
		if err := c.instance().Check(); err != nil {
			return err
		}
		switch {
		case *m >= 0:
			c.M = *m
		case *m < -1:
			return parley.FlagErrorf("m", "the number is negative: allowed are 0 and more")
		default:
			c.M = c.most()
		}
		return c.instance().Check()
	}
}

// most returns the largest m that the agreement allows for n.
func (c Config) most() int {
	bound := Rounds(c).Bound
	m := max(c.N-2, 0)
	for m > 0 && bound != nil && bound(c.N, m) != nil {
		m--
	}
	return m
}
