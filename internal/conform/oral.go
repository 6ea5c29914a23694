package conform

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/trace"
)

// oralCase is one Byzantine agreement with oral messages.
type oralCase struct {
	sourced
	Algorithm string     `json:"algorithm"`
	Sends     []oralSend `json:"sends"`
}

// oralSend is one message of a faulty process. Without a value it is not sent.
type oralSend struct {
	Path  string  `json:"path"`
	To    string  `json:"to"`
	Value *string `json:"value" null:"allowed"`
}

type oralExpect struct {
	outcome
	oralInternals
	MessagesPerRound []uint64 `json:"messages_per_round"`
}

// oralRun is a case that has been run.
type oralRun struct {
	cast
	c        problem.Instance
	protocol parley.Protocol
	items    func(e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte]
	log      *trace.Log
	trees    map[parley.ID]parley.Tree // of the correct lieutenants
}

func oral(c oralCase, want oralExpect, report reporter) {
	r := c.prepare()
	given := map[parley.ID]string{r.c.Source: c.SourceValue}
	s, log := r.run(r.protocol, given)
	r.log, r.trees = log, make(map[parley.ID]parley.Tree)
	for _, id := range r.correct(r.c.Source) {
		r.trees[id] = r.protocol.Tree(s.Machine(id))
	}
	if want.MessagesPerRound != nil {
		sent := honest(r.protocol, given)
		report("messages_per_round", byRound(want.MessagesPerRound, sent), sent)
	}
	want.outcome.compare(r.cast, r.c.Source, c.SourceValue, s, report)
	want.oralInternals.compare(r, report)
}

// maxCase is the maximum size of a case, in messages.
func (c oralCase) prepare() oralRun {
	k, in := c.sourced.prepare()
	say := script(c.Sends, k, c.M, func(path []parley.ID, to parley.ID) bool {
		return path[0] == in.Source && to != in.Source && (c.Algorithm != "om" || !slices.Contains(path, to))
	})
	r := oralRun{cast: k, c: in, protocol: lockstep.Of(oralProtocol(c.Algorithm, in, 1, say), lockstep.Simulated)}
	r.items = func(e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return eig.Items(in, e, m) }
	if c.Algorithm == "om" {
		r.items = func(_ parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return om.Items(in, m) }
	}
	return r
}

const maxCase = 20_000_000

// oralProtocol returns an oral protocol whose liars send what say says, with one run for each source, side by side.
func oralProtocol(algorithm string, c problem.Instance, sources int, say eig.Say) (p lockstep.Protocol) {
	switch algorithm {
	case "eig":
		p = eig.Rounds(c)
		p.Lies = eig.Tell(c, say)
	case "om":
		p = om.Rounds(c)
		p.Lies = om.Tell(c, say)
	default:
		fail("algorithm %q: allowed are eig and om", algorithm)
	}
	if total := p.Cost(c.N, c.M).Total().Times(uint64(sources)).Messages; total > maxCase {
		fail("a case of %d messages: allowed are %d", total, maxCase)
	}
	return p
}

// script reads sends: the path, the receiver and the value of every message. due reports whether the algorithm has
// such a message. A message to the sender itself would assert nothing, because no correct process receives it.
func script(sends []oralSend, k cast, m int, due func(path []parley.ID, to parley.ID) bool) eig.Say {
	said := make(map[string][]byte)
	for _, send := range sends {
		path := k.ids(fmt.Sprintf("sends: path %q", send.Path), strings.Split(send.Path, "."))
		to, last := k.id("sends: to", send.To), path[len(path)-1]
		key := send.Path + "." + send.To
		_, twice := said[key]
		switch {
		case !k.bad(last):
			fail("sends: path %q ends in a correct process, which follows the algorithm", send.Path)
		case to == last:
			fail("sends: path %q: %q sends to itself, which nobody correct hears", send.Path, send.To)
		case twice || len(path) > m+1 || cyclic(path) || !due(path, to):
			fail("sends: path %q to %q is no message of this algorithm, or is given twice", send.Path, send.To)
		}
		said[key] = nil
		if send.Value != nil {
			checkWord("value", *send.Value)
			said[key] = append([]byte{}, *send.Value...)
		}
	}
	return func(path []parley.ID, to parley.ID, _ []byte) []byte {
		return said[k.path(path)+"."+k.names[to]]
	}
}

func cyclic(path []parley.ID) bool {
	for i, id := range path {
		if slices.Contains(path[:i], id) {
			return true
		}
	}
	return false
}
