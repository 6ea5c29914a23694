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

// oralSend is what a faulty process says in one message; without a value it
// says nothing.
type oralSend struct {
	Path  string  `json:"path"`
	To    string  `json:"to"`
	Value *string `json:"value" null:"allowed"`
}

type oralExpect struct {
	outcome
	inside
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

func oral(raw []byte, report reporter) error {
	var c oralCase
	var want oralExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	r, err := c.prepare()
	if err != nil {
		return err
	}
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
	if err := want.outcome.compare(r.cast, r.c.Source, c.SourceValue, s, report); err != nil {
		return err
	}
	return want.inside.compare(r, report)
}

// prepare checks the case and makes its protocol.
func (c oralCase) prepare() (oralRun, error) {
	k, in, err := c.sourced.prepare()
	r := oralRun{cast: k, c: in}
	if err != nil {
		return r, err
	}
	say, err := c.script(r)
	if err != nil {
		return r, err
	}
	p, err := oralProtocol(c.Algorithm, r.c, 1, say)
	if err != nil {
		return r, err
	}
	r.protocol = lockstep.Of(p, lockstep.Simulated)
	r.items = func(e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return eig.Items(r.c, e, m) }
	if c.Algorithm == "om" {
		r.items = func(_ parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return om.Items(r.c, m) }
	}
	return r, nil
}

// maxCase is the largest case that is run, in messages.
const maxCase = 20_000_000

// oralProtocol makes an oral protocol whose liars say what say says, for as many
// runs of it side by side as there are sources.
func oralProtocol(algorithm string, c problem.Instance, sources int, say eig.Say) (lockstep.Protocol, error) {
	var p lockstep.Protocol
	switch algorithm {
	case "eig":
		p = eig.Rounds(c)
		p.Lies = eig.Tell(c, say)
	case "om":
		p = om.Rounds(c)
		p.Lies = om.Tell(c, say)
	default:
		return p, fmt.Errorf("algorithm %q: allowed are eig and om", algorithm)
	}
	if total := p.Cost(c.N, c.M).Total().Times(uint64(sources)).Messages; total > maxCase {
		return p, fmt.Errorf("a case of %d messages: allowed are %d", total, maxCase)
	}
	return p, nil
}

// script makes of the sends what each liar says.
func (c oralCase) script(r oralRun) (eig.Say, error) {
	return script(c.Sends, r.cast, c.M, func(path []parley.ID, to parley.ID) bool {
		return path[0] == r.c.Source && to != r.c.Source && (c.Algorithm != "om" || !slices.Contains(path, to))
	})
}

// script reads sends: for every message its path, its receiver and its value.
// due tells whether the algorithm knows such a message. One to the sender itself
// would assert nothing: nobody correct hears it.
func script(sends []oralSend, k cast, m int, due func(path []parley.ID, to parley.ID) bool) (eig.Say, error) {
	said := make(map[string][]byte)
	for _, send := range sends {
		path, err := k.ids(strings.Split(send.Path, "."))
		if err != nil {
			return nil, fmt.Errorf("sends: path %q: %w", send.Path, err)
		}
		to, err := k.id(send.To)
		if err != nil {
			return nil, fmt.Errorf("sends: to: %w", err)
		}
		last := path[len(path)-1]
		_, bad := k.faulty[last]
		key := send.Path + "." + send.To
		_, twice := said[key]
		switch {
		case !bad:
			return nil, fmt.Errorf("sends: path %q ends in a correct process, which follows the algorithm", send.Path)
		case to == last:
			return nil, fmt.Errorf("sends: path %q: %q sends to itself, which nobody correct hears", send.Path, send.To)
		case twice || len(path) > m+1 || cyclic(path) || !due(path, to):
			return nil, fmt.Errorf("sends: path %q to %q is no message of this algorithm, or is given twice", send.Path, send.To)
		}
		said[key] = nil
		if send.Value != nil {
			if err := checkWord("value", *send.Value); err != nil {
				return nil, err
			}
			said[key] = append([]byte{}, *send.Value...)
		}
	}
	return func(path []parley.ID, to parley.ID, _ []byte) []byte {
		return said[k.path(path)+"."+k.names[to]]
	}, nil
}

func cyclic(path []parley.ID) bool {
	for i, id := range path {
		if slices.Contains(path[:i], id) {
			return true
		}
	}
	return false
}
