package stream

import (
	"bytes"
	"encoding/binary"
	"slices"

	"parley"
	"parley/lockstep"
)

// Evidence is what one process reports about an agreement: the values that it received, and how it resolved them. It
// proves nothing, because a faulty process may report anything.
type Evidence struct {
	Node     parley.ID       `json:"node"`
	Received []ReceivedValue `json:"heard"`
	// Tree is the information tree of the process, if the algorithm has one.
	Tree []Branch `json:"tree,omitempty"`
	// Cut says that there was more than Evidence has room for.
	Cut bool `json:"cut,omitempty"`
}

// ReceivedValue is one value that a process received, in the notation of the algorithm's paper.
type ReceivedValue struct {
	Round int       `json:"round"`
	From  parley.ID `json:"from"`
	Text  string    `json:"text"`
}

// Branch is one node of an information tree.
type Branch struct {
	Path []parley.ID `json:"path"` // the source first, the last relayer last
	In   []byte      `json:"in"`   // what was received along it
	Out  []byte      `json:"out"`  // the value that this and the branches below resolved to
}

// The limits of evidence. A faulty source may ask for it in every slot.
const (
	maxEvidence = 64 << 10 // bytes, approximately
	// MaxEvidenceRequests is how many requests of a source that want evidence may be in flight.
	MaxEvidenceRequests = 16
	maxRecorded         = 32 // slots whose evidence a process keeps: slots end later than requests
)

// The bytes counted for one received value and for one branch, besides the bytes in it.
const (
	receivedCost = 48
	branchCost   = 64
)

// evidenceRecorder makes the evidence of a slot that is not over.
type evidenceRecorder struct {
	name     func(parley.ID) string
	evidence Evidence
	size     int
}

// room reports whether there is room for size more bytes, and counts them.
func (o *evidenceRecorder) room(size int) bool {
	if o.size+size > maxEvidence {
		o.evidence.Cut = true
		return false
	}
	o.size += size
	return true
}

func (o *evidenceRecorder) hear(p *lockstep.Protocol, e parley.Env, m parley.Msg) {
	if p.Explain == nil {
		return
	}
	for text := range p.Explain(e, m, o.name) {
		if !o.room(len(text) + receivedCost) {
			return
		}
		o.evidence.Received = append(o.evidence.Received, ReceivedValue{e.Round, e.From, text})
	}
}

func (o *evidenceRecorder) tree(p *lockstep.Protocol, r lockstep.Rounds) {
	if p.Tree == nil {
		return
	}
	t := p.Tree(r)
	var visit func(path []parley.ID)
	visit = func(path []parley.ID) {
		in, out, children := t.Node(path)
		if !o.room(len(in) + len(out) + 2*len(path) + branchCost) {
			return
		}
		o.evidence.Tree = append(o.evidence.Tree, Branch{slices.Clone(path), in, out})
		for _, child := range children {
			visit(append(slices.Clip(path), child))
		}
	}
	visit(t.Root())
}

// encode writes evidence: a byte that is 1 if it is cut; each received value after a 0:
// round, sender, text; and each branch after a 1: path, in, out. Byte strings follow
// their length; byte strings that may be missing follow their length plus one, or are a 0.
func (a Evidence) encode() []byte {
	b := []byte{0}
	if a.Cut {
		b[0] = 1
	}
	for _, h := range a.Received {
		b = binary.AppendUvarint(append(b, 0), uint64(h.Round))
		b = binary.AppendUvarint(b, uint64(h.From))
		b = parley.AppendBytes(b, h.Text)
	}
	for _, t := range a.Tree {
		b = binary.AppendUvarint(append(b, 1), uint64(len(t.Path)))
		for _, id := range t.Path {
			b = binary.AppendUvarint(b, uint64(id))
		}
		b = appendValues(b, [][]byte{t.In, t.Out})
	}
	return b
}

// DecodeEvidence reads the evidence of a process. It refuses evidence that no correct process sends. It takes memory
// only for what b contains.
func DecodeEvidence(from parley.ID, b []byte) (a Evidence, ok bool) {
	if len(b) == 0 || b[0] > 1 || len(b) > 2*maxEvidence {
		return Evidence{}, false
	}
	a = Evidence{Node: from, Cut: b[0] == 1}
	r, all := parley.Reader{Rest: b[1:]}, evidenceRecorder{}
	for len(r.Rest) > 0 && !r.Bad {
		switch what := r.Take(1)[0]; {
		case what == 0 && len(a.Tree) == 0:
			h := ReceivedValue{int(r.Number(1 << 10)), r.ID(MaxProcesses), string(r.Bytes())}
			r.Bad = r.Bad || !all.room(len(h.Text)+receivedCost)
			a.Received = append(a.Received, h)
		case what == 1:
			var t Branch
			for range r.Number(MaxFaults + 2) {
				t.Path = append(t.Path, r.ID(MaxProcesses))
			}
			t.In, t.Out = bytes.Clone(optional(&r)), bytes.Clone(optional(&r))
			r.Bad = r.Bad || !all.room(len(t.In)+len(t.Out)+2*len(t.Path)+branchCost)
			a.Tree = append(a.Tree, t)
		default:
			r.Bad = true
		}
	}
	if r.Bad {
		return Evidence{}, false
	}
	return a, true
}
