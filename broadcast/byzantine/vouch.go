package byzantine

import (
	"bytes"

	"golang.org/x/crypto/blake2b"

	"parley"
	"parley/agreement/eig"
	"parley/lockstep"
	"parley/mux"
)

// The messages of rounds. The messages of later rounds also include levels of eig, with the number of the agreement
// in their path.
//
// Batch, in round 0: what this process broadcasts. Body: a batch. Heard: in round 0, without contents, if
// there is no batch; in later rounds, the processes whose frames of the previous round arrived in time. Body:
// one bit for each process, the lowest first. In the last round, Value: the mark of what the sender has
// agreed on up to the slot in Seq; 0: there is none.
const (
	Batch parley.Kind = 1
	Heard parley.Kind = 3
)

// apart is what a slot delivers in place of batches at a process that is out from then on. Body: the reason.
const apart parley.Kind = parley.Local + 0x3F

// agreedOn returns what a process has agreed on in earlier slots: lately returns the last mark that all
// processes in step have too, with its slot; marked returns the mark of a slot, 0 if it is not known.
type agreedOn interface {
	lately() (slot, mark uint64)
	marked(slot uint64) uint64
}

// slot returns interactive consistency on the digests of batches.
func slot(c Config, of agreedOn) lockstep.Protocol {
	parts := agreements(c)
	p := mux.OfSources("vouch", parts)
	p.Kinds = []string{"", "BATCH", "LEVEL", "HEARD"}
	p.Rename, p.RenameAll = nil, nil
	p.Properties, p.Cost, p.Memory = nil, nil, nil
	p.Explain, p.Lies = explain(c, parts), lies(c, parts)
	p.Size = nil
	p.Most = c.longest
	inner, last := p.New, p.Last
	p.New = func(self parley.ID) lockstep.Rounds {
		return &vouch{
			c: c, of: of, self: self, last: last, agreements: inner(self).(agreed),
			held: make([][]byte, c.N), sums: make([][]byte, c.N), digests: make([][]byte, c.N),
		}
	}
	return p
}

// envelope bounds the bytes of a message on the wire in addition to its body.
const envelope = 64

// longest bounds the bytes of a frame of a round: the batch, or for each agreement a value for every path of
// that length; the longest values are digests.
func (c Config) longest(round int) int {
	if round == 0 {
		return c.Batch + envelope
	}
	paths := 1
	for r := range round {
		paths = min(paths*max(1, c.N-1-r), parley.MaxBody)
	}
	return min(c.N*(envelope+paths*(blake2b.Size256+8))+envelope, parley.MaxBody)
}

// agreements returns the agreements on each process's digest; the default value, no bytes, means no batch.
func agreements(c Config) []lockstep.Protocol {
	parts := make([]lockstep.Protocol, c.N)
	for i := range parts {
		parts[i] = eig.Observed(instance(c, parley.ID(i)))
	}
	return parts
}

// agreed is the agreements side by side.
type agreed interface {
	lockstep.Rounds
	lockstep.Reusable
}

// vouch is one process in one slot.
type vouch struct {
	c          Config
	of         agreedOn
	self       parley.ID
	last       int
	agreements agreed

	heard   parley.Set // processes from which round 0 has brought something
	held    [][]byte   // batches that arrived in round 0, and the own one
	sums    [][]byte   // their digests
	digests [][]byte   // decided on
	came    parley.Set // processes whose frame of this round arrived
	before  parley.Set // the same for the previous round
	told    parley.Set // processes that have reported whose frames they received
	sure    int        // how many of them received this process's frame
	apart   bool       // in some round too few frames arrived, or reached others; or it diverges
	strays  parley.Set // processes that have agreed on something else in earlier slots
}

// Request takes the own batch.
func (p *vouch) Request(s *parley.Step, m parley.Msg) {
	if p.held[p.self] == nil {
		p.held[p.self], p.sums[p.self] = m.Body, digest(m.Body)
		p.agreements.Request(s, parley.Msg{Kind: parley.Propose, Body: p.sums[p.self]})
	}
}

func (p *vouch) Emit(s *parley.Step, r int) {
	mark := s.Mark()
	p.agreements.Emit(s, r)
	if r > 0 {
		bits := make([]byte, (p.c.N+7)/8)
		for id := range p.before.All() {
			bits[id/8] |= 1 << (id % 8)
		}
		word := parley.Msg{Kind: Heard, Body: bits}
		if r == p.last {
			word.Seq, word.Value = p.of.lately()
		}
		s.SendAll(word)
		return
	}
	// Round 0: the batch itself goes to all in place of its digest, which a receiver computes itself.
	s.Take(mark, func(e *parley.Effect) bool { return e.Op == parley.OpSend })
	if own := p.held[p.self]; own != nil {
		s.SendAll(parley.Msg{Kind: Batch, Body: own})
	} else {
		s.SendAll(parley.Msg{Kind: Heard})
	}
}

// Absorb: a process holds what it received, and vouches only for the digest of that: to the agreements it is
// the source's order. A malformed or too large batch counts as none.
func (p *vouch) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	p.came.Add(from)
	switch {
	case m.Kind == Heard && s.Path == 0 && m.Origin == 0 && (m.Seq == 0 && m.Value == 0 || r > 0 && r == p.last):
		size := (p.c.N + 7) / 8
		if r == 0 {
			size = 0
		}
		if len(m.Body) != size || !p.told.Add(from) {
			s.Refuse(from, "second or malformed word of whom it heard")
			return
		}
		if r > 0 && m.Body[p.self/8]&(1<<(p.self%8)) != 0 {
			p.sure++
		}
		if own := p.of.marked(m.Seq); m.Value != 0 && own != 0 && own != m.Value {
			p.strays.Add(from)
		}
	case r > 0:
		p.agreements.Absorb(s, r, from, m)
	case m.Kind != Batch || s.Path != 0 || m.Origin != 0 || m.Seq != 0 || m.Value != 0:
		s.Refuse(from, "message not due in this round")
	case !p.heard.Add(from) || !p.well(m.Body):
		s.Refuse(from, "second or malformed batch")
	default:
		p.held[from], p.sums[from] = m.Body, digest(m.Body)
		s.Path = parley.Path(from)
		p.agreements.Absorb(s, 0, from, parley.Msg{Kind: eig.Order, Body: p.sums[from]})
		s.Path = 0
	}
}

// well reports whether bytes are a batch, or a claim, which a process sends in place of one in the first slot
// of a reset.
func (p *vouch) well(body []byte) bool {
	_, _, ok := readClaim(body, p.c.N)
	return (ok || well(body, p.c.Batch)) && len(body) <= p.c.Batch
}

// Close: after the last round it knows each digest that was decided on, and the batch, if this process holds
// it; otherwise another correct one does. A process that receives from fewer, or reaches fewer, than there
// are other correct processes is itself cut off, or too late: it may have been paused until others had
// finished, and if it had nothing to wait for, its clock does not show that.
func (p *vouch) Close(s *parley.Step, r int) {
	mark := s.Mark()
	p.agreements.Close(s, r)
	if most := p.c.N - 1 - p.c.M; r > 0 && (p.came.Len() < most || p.sure < most) {
		p.apart = true
	}
	strays := p.strays.Len() >= p.c.N-p.c.M // all correct ones, if this process is not correct
	p.apart = p.apart || strays
	p.before, p.came, p.told, p.sure = p.came, parley.Set{}, parley.Set{}, 0
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
	if p.apart {
		why := "cut off from the others in a slot"
		if strays {
			why = "has agreed on something else than others before"
		}
		s.Deliver(p.self, parley.Msg{Kind: apart, Body: []byte(why)})
		return
	}
	for i, d := range p.digests {
		source := parley.ID(i)
		switch {
		case len(d) == 0:
		case p.held[i] != nil && bytes.Equal(p.sums[i], d):
			s.Deliver(source, parley.Msg{Kind: parley.Carried, Origin: source, Value: beginning(d), Body: p.held[i]})
		default:
			s.Deliver(source, parley.Msg{Kind: parley.Decide, Origin: source, Value: beginning(d), Body: d})
		}
	}
}

// Reset prepares for the next slot.
func (p *vouch) Reset() {
	p.agreements.Reset()
	p.heard, p.came, p.before, p.told = parley.Set{}, parley.Set{}, parley.Set{}, parley.Set{}
	p.sure, p.apart, p.strays = 0, false, parley.Set{}
	clear(p.held)
	clear(p.sums)
	clear(p.digests)
}

func (p *vouch) State(v *parley.Vars) {
	v.Set("heard", &p.heard)
	v.Set("came", &p.came)
	v.Set("before", &p.before)
	v.Set("reported", &p.told)
	parley.Num(v, "sure", &p.sure)
	v.Bool("apart", &p.apart)
	v.Set("strays", &p.strays)
	parley.PerProcess(v, "held", p.held, func(_ parley.ID, b *[]byte) { v.Bytes("batch", b) })
	parley.PerProcess(v, "sums", p.sums, func(_ parley.ID, b *[]byte) { v.Bytes("digest", b) })
	parley.PerProcess(v, "digests", p.digests, func(_ parley.ID, b *[]byte) { v.Bytes("digest", b) })
	v.Machine("agreements", p.agreements)
}
