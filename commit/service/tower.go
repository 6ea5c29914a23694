package service

import (
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley"
	"parley/commit/problem"
	"parley/commit/quorum"
	"parley/commit/twophase"
	"parley/stack"
)

// span is the length of a run in Deltas: a blocked process repeats its question forever.
const span = 200

// Tower returns a service with participants on top, as a protocol that runs by itself. Requests for transactions go
// to the coordinators (see NewParticipant). An empty set means process 0. Tower panics if c.Check fails.
func Tower(c Config, coordinators parley.Set) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("service: " + err.Error())
	}
	if coordinators == (parley.Set{}) {
		coordinators = parley.SetOf(0)
	}
	c = c.withDefaults()
	beneath := New(c)
	p := stack.New(beneath, NewParticipant(c.N, false))
	p.Name, p.Title, p.Paper = beneath.Name, beneath.Title, beneath.Paper
	p.Proposers, p.Span = coordinators, span*c.Delta
	p.Properties = Judging{Of: problem.Uniform, Majority: c.Majority}.Properties()
	p.Promises = c.promises
	p.M = c.faults()
	p.Progress = progress(c.N)
	p.Flags = parley.Flags(towerConfig{c, coordinators}, flags, func(m towerConfig) parley.Protocol {
		return Tower(m.Config, m.coordinators)
	})
	return p
}

// towerConfig holds what the flags set.
type towerConfig struct {
	Config
	coordinators parley.Set
}

// flags declares the flags of the protocol.
func flags(fs *flag.FlagSet, m *towerConfig) func(*towerConfig, parley.Naming) error {
	fs.IntVar(&m.N, "n", m.N, "number of `processes`")
	fs.BoolVar(&m.Majority, "majority", m.Majority, "decide by majorities of the participants instead "+
		"of two-phase commit")
	check := problem.DeltaFlag(fs, &m.Delta)
	list := fs.String("coordinators", "", "`processes` that begin transactions, as in P1,P2 (default: the "+
		"first process); set --values to the name of the transaction and the votes of all processes, as "+
		"in 'pay yyn'")
	return func(m *towerConfig, naming parley.Naming) error {
		m.Votes = 0 // derived from delta
		if *list != "" {
			m.coordinators = parley.Set{}
			for _, name := range strings.Split(*list, ",") {
				id, err := naming(name)
				if err == nil && int(id) >= m.N {
					err = fmt.Errorf("%s: there are %d processes", name, m.N)
				}
				if err != nil {
					return &parley.FlagError{Flag: "coordinators", Err: err}
				}
				m.coordinators.Add(id)
			}
		}
		return check(m.Delta, m.Check())
	}
}

// faults returns how many processes may crash for good, if all take part in each transaction.
func (c Config) faults() int {
	if c.Majority {
		return (c.N - 1) / 2
	}
	return c.N - 1
}

// inner returns the protocol of a transaction of n members.
func (c Config) inner(n int) parley.Protocol {
	if c.Majority {
		return quorum.New(quorum.Config{N: n, M: (n - 1) / 2, Delta: c.Delta})
	}
	return twophase.New(twophase.Config{N: n, Delta: c.Delta})
}

// promises returns the promises of each transaction, and those of names and answers, which follow from them.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	list := c.inner(max(2, c.N)).Promises(a)
	of := make(map[string]parley.Promise)
	for _, p := range list {
		of[p.Property] = p
	}
	names, answers := of[problem.Atomicity], of[problem.Termination]
	names.Property, answers.Property = Names, Answers
	names.Proof, answers.Proof = "", ""
	if names.Holds {
		names.Because = "a process votes no if it knows the name already, and logs each yes"
	}
	list = append(list, names, answers)
	if a.Network.Doubled || a.Network.Reordered {
		for i := range list {
			list[i].Holds, list[i].Because = false, "a link doubled messages or changed their order"
		}
	}
	return list
}

// kinds returns the names of the kinds of messages: first those of the protocol of a transaction.
func (c Config) kinds() []string {
	inner := c.inner(2).Kinds
	return slices.Concat(inner, make([]string, int(msgBegin)-len(inner)), []string{"BEGIN", "DONE", "OPEN", "WHY"})
}

// size counts the messages that belong to one transaction only.
func (c Config) size(e parley.Env, m parley.Msg) parley.Traffic {
	if m.Kind < msgBegin {
		return c.inner(2).Size(e, m)
	}
	return parley.Traffic{Messages: 1}
}

// explain shows a message with its transaction.
func (c Config) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	which := func(p parley.Path) string { return fmt.Sprintf("%d of %s", NumberOf(p), name(CoordinatorOf(p))) }
	text := ""
	switch m.Kind {
	case msgBegin:
		text = which(e.Path) + " is not readable"
		if t, ok := ReadSpec(m.Body, c.N); ok {
			text = which(e.Path) + " is " + parley.Printable([]byte(t.Name))
		}
	case msgDone:
		list, _ := readNumbers(m.Body, len(m.Body))
		text = fmt.Sprintf("carried out: %d", list)
	case msgOpen:
		list, _ := readNumbers(m.Body, len(m.Body))
		text = fmt.Sprintf("open: %d, next: %d", list, m.Seq)
	case msgWhy:
		text = which(e.Path) + ": no, for: " + parley.Printable(m.Body)
	default:
		return func(yield func(string) bool) {
			for row := range c.inner(2).Explain(e, m, name) {
				if !yield(which(e.Path) + ": " + row) {
					return
				}
			}
		}
	}
	return func(yield func(string) bool) { yield(text) }
}
