package service

import (
	"hash/fnv"
	"iter"
	"strings"

	"parley"
	"parley/commit/problem"
)

// NewParticipant returns a layer above a service of n processes. It makes transactions from words, and acts as the
// participant of each process. So the service runs by itself.
//
// A Propose at the coordinator begins a transaction. Its Body is a name and a letter for each process, such as "a
// yyn". A process with y or n has a part, and votes yes or no. A process with - has no part. The letters without a
// name suffice. A single 1 or 0 stands for the votes of all processes. The name is then derived from the coordinator,
// such as t0. Each process votes as soon as it is asked to prepare. It carries out an outcome in the step in which it
// learns the outcome. If slow is set, it does so in a later step, so it may crash in between.
//
// The layer delivers what the properties of Judging need. Each delivery has the Path that the service gave. Voted is
// the vote of this process (Seq: 1 yes, 0 no; Body: the name and the letters). Decide is the outcome (Body: the
// outcome and the name, if known). Ended is an earlier outcome (same Body). Refused is a request that did not begin a
// transaction (Body: the name).
func NewParticipant(n int, slow bool) parley.Protocol {
	return parley.Protocol{
		Name: "participant", Title: "participants that vote as the request says", Paper: "Parley's own",
		N: n, M: n - 1, Faults: parley.OralByzantineFaults, Kinds: []string{""},
		New:     func(self parley.ID) parley.Machine { return &participant{n: n, self: self, slow: slow} },
		Explain: explainBlocked(n), Progress: progress(n),
	}
}

// progress implements [parley.Protocol.Progress], from what participants deliver and what the service indicates.
func progress(n int) func(parley.Msg, bool) parley.Progress {
	return func(m parley.Msg, record bool) (p parley.Progress) {
		if record {
			return p
		}
		p.Of = m.Value
		switch m.Kind {
		case Voted:
			p.Name, _, _ = strings.Cut(string(m.Body), " ")
			if m.Seq == 1 {
				p.Stage = parley.StageInDoubt
			}
		case parley.Decide:
			var outcome string
			outcome, p.Name, _ = strings.Cut(string(m.Body), " ")
			for _, o := range []problem.Outcome{problem.Commit, problem.Abort} {
				if outcome == o.String() {
					p.Stage = problem.Stage(o)
				}
			}
		case Blocked:
			p.Stage = parley.StageBlocked
			_, p.Name = ReadBlocked(m.Body, n)
		}
		return p
	}
}

// explainBlocked shows the indications of the service in a system of n processes.
func explainBlocked(n int) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			if m.Kind != Blocked {
				return
			}
			waits, of := ReadBlocked(m.Body, n)
			text := "is blocked on " + of + ", and waits for"
			for id := range waits.All() {
				text += " " + name(id)
			}
			yield(text)
		}
	}
}

type participant struct {
	parley.Base
	n       int
	self    parley.ID
	slow    bool
	applies []uint64 // paths of the outcomes that it is carrying out
}

// Request begins a transaction.
func (p *participant) Request(s *parley.Step, m parley.Msg) {
	name, votes, ok := readOrder(m.Body, p.self, p.n)
	if m.Kind != parley.Propose || !ok {
		s.Refuse(p.self, "no name with a vote for each process")
		return
	}
	s.Request(parley.Msg{Kind: Commit, Body: specOf(p.self, name, votes).Encode()})
}

// readOrder reads a request to a coordinator among n processes.
func readOrder(b []byte, coordinator parley.ID, n int) (name, votes string, ok bool) {
	words := strings.Fields(string(b))
	if len(words) == 1 {
		switch yes, all := problem.Vote([]byte(words[0])); {
		case all && yes:
			words[0] = strings.Repeat("y", n)
		case all:
			words[0] = strings.Repeat("n", n)
		}
		words = []string{"t" + coordinator.String(), words[0]}
	}
	if len(words) != 2 {
		return "", "", false
	}
	name, votes = words[0], words[1]
	return name, votes, len(name) <= MaxName && len(votes) == n && strings.Trim(votes, "yn-") == ""
}

// specOf returns a transaction with the given votes. Each part holds all of them.
func specOf(coordinator parley.ID, name, votes string) Spec {
	h := fnv.New64a()
	_, _ = h.Write([]byte(votes)) // never fails
	t := Spec{Name: name, Digest: h.Sum64(), Members: []parley.ID{coordinator}}
	for id := range parley.ID(len(votes)) {
		if votes[id] == '-' {
			continue
		}
		if id != coordinator {
			t.Members = append(t.Members, id)
		}
		t.Parts = append(t.Parts, Part{id, []byte(votes)})
	}
	return t
}

// Receive handles the deliveries of the service.
func (p *participant) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case Prepare:
		p.prepare(s, from, m)
	case Ended:
		p.end(s, from, m)
	case Refused:
		s.Deliver(from, parley.Msg{Kind: Refused, Seq: m.Seq, Body: m.Body})
	}
}

// prepare votes. For a transaction that was prepared before a crash, it delivers the vote again but does not
// repeat it to the service.
func (p *participant) prepare(s *parley.Step, from parley.ID, m parley.Msg) {
	t, ok := ReadSpec(m.Body, p.n)
	part, has := t.Part(p.self)
	if !ok || !has || len(part) != p.n {
		s.Refuse(from, "no part of this process")
		return
	}
	vote := parley.Msg{Kind: Voted, Value: m.Value}
	if part[p.self] == 'y' {
		vote.Seq = 1
	} else {
		vote.Body = []byte("votes no")
	}
	if m.Seq == 0 {
		s.Request(vote)
	}
	vote.Origin, vote.Body = from, []byte(t.Name+" "+string(part))
	s.Deliver(from, vote)
}

// end delivers an outcome, and carries it out if this process has to.
func (p *participant) end(s *parley.Step, from parley.ID, m parley.Msg) {
	name, _ := ReadEnded(m.Body)
	said := parley.Msg{Kind: parley.Decide, Value: m.Value, Origin: from, Body: []byte(problem.Outcome(m.Seq).String())}
	if name != "" {
		said.Body = append(said.Body, " "+name...)
	}
	if m.Origin == Repeated {
		said.Kind = Ended
	}
	s.Deliver(from, said)
	switch {
	case m.Origin != Participant:
	case p.slow:
		p.applies = append(p.applies, m.Value)
		s.SetTimer(0, 0)
	default:
		s.Request(parley.Msg{Kind: Applied, Value: m.Value})
	}
}

// Timeout reports the outcomes that have been carried out in the meantime.
func (p *participant) Timeout(s *parley.Step, _ parley.Timer) {
	for _, path := range p.applies {
		s.Request(parley.Msg{Kind: Applied, Value: path})
	}
	p.applies = nil
}

func (p *participant) State(v *parley.Vars) {
	parley.Slice(v, "carries out", &p.applies, func(_ int, path *uint64) { parley.Num(v, "path", path) })
}
