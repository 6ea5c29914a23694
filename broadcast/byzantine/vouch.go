package byzantine

import (
	"crypto/sha256"

	"parley"
	"parley/agreement/eig"
	"parley/lockstep"
	"parley/mux"
)

// The messages of rounds. Those of later rounds are levels of eig, with the number of
// the agreement in their path.
//
// Batch, in round 0: what this process wants to be delivered. Body: a batch.
const Batch parley.Kind = 1

// slot is interactive consistency on the digests of batches.
func slot(c Config) lockstep.Protocol {
	parts := agreements(c)
	p := mux.OfSources("vouch", parts)
	p.Kinds = []string{"", "BATCH", "LEVEL"}
	p.Rename, p.RenameAll = nil, nil
	p.Properties, p.Cost, p.Memory = nil, nil, nil
	p.Explain, p.Lies = explain(c, parts), lies(c, parts)
	p.Size = nil
	p.Most = c.longest
	inner, last := p.New, p.Last
	p.New = func(self parley.ID) lockstep.Rounds {
		return &vouch{
			c: c, self: self, last: last, agreements: inner(self).(agreed),
			held: make([][]byte, c.N), sums: make([][]byte, c.N), digests: make([][]byte, c.N),
		}
	}
	return p
}

// envelope is more than the wire form of a message has beside its body.
const envelope = 64

// longest is how many bytes a frame of a round has at most: the batch, or of each agreement
// a value for every path of so many processes, the longest of which are digests.
func (c Config) longest(round int) int {
	if round == 0 {
		return c.Batch + envelope
	}
	paths := 1
	for r := range round {
		paths = min(paths*max(1, c.N-1-r), parley.MaxBody)
	}
	return min(c.N*(envelope+paths*(sha256.Size+8)), parley.MaxBody)
}

// agreements are those on each process's digest; the default, no bytes, is no batch.
func agreements(c Config) []lockstep.Protocol {
	parts := make([]lockstep.Protocol, c.N)
	for i := range parts {
		parts[i] = eig.Rounds(instance(c, parley.ID(i)))
	}
	return parts
}

// agreed are the agreements side by side.
type agreed interface {
	lockstep.Rounds
	lockstep.Reusable
}

// vouch is one process in one slot.
type vouch struct {
	c          Config
	self       parley.ID
	last       int
	agreements agreed

	heard   parley.Set // whose round 0 has brought something
	held    [][]byte   // batches that came in round 0, and the own one
	sums    [][]byte   // their digests
	digests [][]byte   // decided on
}

// Request: the own batch.
func (p *vouch) Request(s *parley.Step, m parley.Msg) {
	if p.held[p.self] == nil {
		p.held[p.self], p.sums[p.self] = m.Body, digest(m.Body)
		p.agreements.Request(s, parley.Msg{Kind: parley.Propose, Body: p.sums[p.self]})
	}
}

// Emit.
func (p *vouch) Emit(s *parley.Step, r int) {
	mark := s.Mark()
	p.agreements.Emit(s, r)
	if r > 0 {
		return
	}
	// Round 0: the batch itself goes to all in the place of its digest, which whoever
	// receives it finds out by himself.
	s.Take(mark, func(e *parley.Effect) bool { return e.Op == parley.OpSend })
	if own := p.held[p.self]; own != nil {
		s.SendAll(parley.Msg{Kind: Batch, Body: own})
	}
}

// Absorb. A process holds what it received, and vouches for the digest of that alone:
// to the agreements it is the source's order. A batch that is none, or too large, is as
// good as none.
func (p *vouch) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	switch {
	case r > 0:
		p.agreements.Absorb(s, r, from, m)
	case m.Kind != Batch || s.Path != 0 || m.Origin != 0 || m.Seq != 0 || m.Value != 0:
		s.Refuse(from, "message not due in this round")
	case !p.heard.Add(from) || !well(m.Body, p.c.Batch):
		s.Refuse(from, "second or malformed batch")
	default:
		p.held[from], p.sums[from] = m.Body, digest(m.Body)
		s.Path = parley.Path(from)
		p.agreements.Absorb(s, 0, from, parley.Msg{Kind: eig.Order, Body: p.sums[from]})
		s.Path = 0
	}
}

// Close. When the last round is over each digest is known that was decided on, and with
// it the batch, if this process holds that; otherwise another correct one does.
func (p *vouch) Close(s *parley.Step, r int) {
	mark := s.Mark()
	p.agreements.Close(s, r)
	if r < p.last {
		return
	}
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op == parley.OpDeliver {
			i, _ := mux.Part(e.Path, p.c.N)
			p.digests[i] = e.Msg.Body
		}
		return e.Op == parley.OpDeliver
	})
	for i, d := range p.digests {
		source := parley.ID(i)
		switch {
		case len(d) == 0:
		case p.held[i] != nil && string(p.sums[i]) == string(d):
			s.Deliver(source, parley.Msg{Kind: parley.Carried, Origin: source, Body: p.held[i]})
		default:
			s.Deliver(source, parley.Msg{Kind: parley.Decide, Origin: source, Body: d})
		}
	}
}

// Reset is for the next slot.
func (p *vouch) Reset() {
	p.agreements.Reset()
	p.heard = parley.Set{}
	clear(p.held)
	clear(p.sums)
	clear(p.digests)
}

func (p *vouch) State(v *parley.Vars) {
	v.Set("heard", &p.heard)
	parley.PerProcess(v, "held", p.held, func(_ parley.ID, b *[]byte) { v.Bytes("batch", b) })
	parley.PerProcess(v, "sums", p.sums, func(_ parley.ID, b *[]byte) { v.Bytes("digest", b) })
	parley.PerProcess(v, "digests", p.digests, func(_ parley.ID, b *[]byte) { v.Bytes("digest", b) })
	v.Machine("agreements", p.agreements)
}
