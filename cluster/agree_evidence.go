package cluster

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/lockstep"
)

// Account is what one node says of an agreement: what it heard, and what it made of it.
// It is no proof: a liar's account may be anything.
type Account struct {
	Node  parley.ID `json:"node"`
	Heard []Heard   `json:"heard"`
	// Tree is the node's information tree, where the algorithm has one.
	Tree []Branch `json:"tree,omitempty"`
	// Cut tells that there was more than an account has room for.
	Cut bool `json:"cut,omitempty"`
}

// Heard is one thing that a node heard, as the algorithm's paper writes it.
type Heard struct {
	Round int       `json:"round"`
	From  parley.ID `json:"from"`
	Text  string    `json:"text"`
}

// Branch is one node of an information tree.
type Branch struct {
	Path []parley.ID `json:"path"` // the source first, who told it last
	In   []byte      `json:"in"`   // what was heard along it
	Out  []byte      `json:"out"`  // what was made of that and of the branches below
}

// Accounts are bounded: a source that lies may ask for them in every slot.
const (
	mostAccount = 64 << 10 // bytes, about
	mostAsked   = 16       // of a source's questions at a time that ask for evidence
	mostNoted   = 32       // slots that a node has accounts of: they end later than questions
)

// What is counted for one thing heard, and for one branch, beside the bytes in it.
const (
	heardCost  = 48
	branchCost = 64
)

// noted is the account of a slot while it goes on.
type noted struct {
	name    func(parley.ID) string
	account Account
	size    int
}

// room tells whether there is room for so many bytes more.
func (o *noted) room(size int) bool {
	if o.size+size > mostAccount {
		o.account.Cut = true
		return false
	}
	o.size += size
	return true
}

// hear notes a message.
func (o *noted) hear(p *lockstep.Protocol, e parley.Env, m parley.Msg) {
	if p.Explain == nil {
		return
	}
	for text := range p.Explain(e, m, o.name) {
		if !o.room(len(text) + heardCost) {
			return
		}
		o.account.Heard = append(o.account.Heard, Heard{e.Round, e.From, text})
	}
}

// tree notes the information tree, if there is one.
func (o *noted) tree(p *lockstep.Protocol, r lockstep.Rounds) {
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
		o.account.Tree = append(o.account.Tree, Branch{slices.Clone(path), in, out})
		for _, child := range children {
			visit(append(slices.Clip(path), child))
		}
	}
	visit(t.Root())
}

// encode writes an account: a byte that is 1 if it is cut, and then what was heard, each
// behind a 0: round, who told it, text; and the branches, each behind a 1: path, in, out.
// Bytes have their length before them, and those that may be missing one more, or 0.
func (a Account) encode() []byte {
	b := []byte{0}
	if a.Cut {
		b[0] = 1
	}
	for _, h := range a.Heard {
		b = binary.AppendUvarint(append(b, 0), uint64(h.Round))
		b = binary.AppendUvarint(b, uint64(h.From))
		b = append(binary.AppendUvarint(b, uint64(len(h.Text))), h.Text...)
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

// decodeAccount reads what a node says it heard. It takes no account that a correct node
// does not send, nor memory for more than there is in one.
func decodeAccount(from parley.ID, b []byte) (a Account, ok bool) {
	a = Account{Node: from}
	if len(b) == 0 || b[0] > 1 || len(b) > 2*mostAccount {
		return Account{}, false
	}
	a.Cut, b = b[0] == 1, b[1:]
	room := &noted{}
	for len(b) > 0 {
		what := b[0]
		b = b[1:]
		switch {
		case what == 0 && len(a.Tree) == 0:
			var h Heard
			if h, b, ok = readHeard(b); !ok || !room.room(len(h.Text)+heardCost) {
				return Account{}, false
			}
			a.Heard = append(a.Heard, h)
		case what == 1:
			var t Branch
			if t, b, ok = readBranch(b); !ok || !room.room(len(t.In)+len(t.Out)+2*len(t.Path)+branchCost) {
				return Account{}, false
			}
			a.Tree = append(a.Tree, t)
		default:
			return Account{}, false
		}
	}
	return a, true
}

func readHeard(b []byte) (h Heard, rest []byte, ok bool) {
	round, b, err := parley.ReadUvarint(b, 1<<10)
	if err != nil {
		return h, nil, false
	}
	from, b, err := parley.ReadUvarint(b, mostNodes-1)
	if err != nil {
		return h, nil, false
	}
	size, b, err := parley.ReadUvarint(b, uint64(len(b)))
	if err != nil || size > uint64(len(b)) {
		return h, nil, false
	}
	return Heard{int(round), parley.ID(from), string(b[:size])}, b[size:], true
}

func readBranch(b []byte) (t Branch, rest []byte, ok bool) {
	count, b, err := parley.ReadUvarint(b, mostLiars+2)
	if err != nil {
		return t, nil, false
	}
	for range count {
		var id uint64
		if id, b, err = parley.ReadUvarint(b, mostNodes-1); err != nil {
			return t, nil, false
		}
		t.Path = append(t.Path, parley.ID(id))
	}
	for _, part := range []*[]byte{&t.In, &t.Out} {
		var size uint64
		if size, b, err = parley.ReadUvarint(b, uint64(len(b))+1); err != nil || size > uint64(len(b))+1 {
			return t, nil, false
		}
		if size > 0 {
			*part, b = append([]byte{}, b[:size-1]...), b[size-1:]
		}
	}
	return t, b, true
}
