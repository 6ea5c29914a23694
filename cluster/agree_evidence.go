package cluster

import (
	"encoding/json"
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
	mostAccount = 256 << 10 // bytes, about
	mostAsked   = 16        // slots at a time of which evidence is asked for
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
		if !o.room(len(text) + 48) {
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
		if !o.room(2*(len(in)+len(out)) + 4*len(path) + 40) {
			return
		}
		o.account.Tree = append(o.account.Tree, Branch{slices.Clone(path), in, out})
		for _, child := range children {
			visit(append(slices.Clip(path), child))
		}
	}
	visit(t.Root())
}

func (a Account) encode() []byte {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err) // there is nothing in it that cannot be written
	}
	return b
}

// isAccount tells whether a node's account can be read.
func isAccount(b []byte) bool {
	_, ok := decodeAccount(0, b)
	return ok
}

// decodeAccount reads what a node says it heard.
func decodeAccount(from parley.ID, b []byte) (a Account, ok bool) {
	if len(b) > 4*mostAccount || json.Unmarshal(b, &a) != nil {
		return Account{}, false
	}
	a.Node = from
	return a, true
}
