package service

import (
	"encoding/binary"

	"parley"
	"parley/commit/problem"
)

// AbortReason says why a transaction was aborted, as far as the process knows.
type AbortReason struct {
	By    parley.ID // the process that voted no
	Text  string    // its reason; "" if the process that voted no is unknown
	Claim NameClaim // what is known of another transaction that holds the name
}

func (e AbortReason) encode(name string) []byte {
	b := parley.AppendBytes(nil, name)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.By)), uint64(e.Claim))
	return append(b, e.Text...)
}

// Ended returns the delivery of the outcome. The argument whom becomes its Origin.
func (e *Finished) Ended(whom parley.ID) parley.Msg {
	return parley.Msg{
		Kind: Ended, Value: uint64(e.Path), Seq: uint64(e.Outcome), Origin: whom, Body: e.Why.encode(e.Name),
	}
}

// ReadEnded reads the Body of an Ended: the name of the transaction ("" if the process uses that name for
// another transaction) and why it was aborted.
func ReadEnded(b []byte) (name string, why AbortReason) {
	r := parley.Reader{Rest: b}
	name = string(r.Take(r.Number(MaxName)))
	why.By, why.Claim = r.ID(1<<16), NameClaim(r.Number(uint64(TakenByAbort)))
	why.Text = string(r.Rest)
	return name, why
}

// Finished is a transaction with an outcome.
type Finished struct {
	Path    parley.Path
	Name    string
	Digest  uint64
	Outcome problem.Outcome
	Why     AbortReason
}

// History holds the transactions that most recently got their outcome at a process.
type History struct {
	most int
	list []*Finished // oldest first
	at   map[parley.Path]*Finished
	by   map[string]*Finished
}

// NewHistory returns a history that holds at most the given number of transactions.
func NewHistory(most int) History {
	return History{most: most, at: make(map[parley.Path]*Finished), by: make(map[string]*Finished)}
}

// Named returns the transaction that holds name, or nil if none is known.
func (p *History) Named(name string) *Finished { return p.by[name] }

// Add remembers e, and forgets the oldest transaction if there are too many. If another transaction holds the name of
// e, the Claim of e is not Free, and Named does not return e.
func (p *History) Add(e *Finished) {
	if p.at[e.Path] != nil {
		return
	}
	p.at[e.Path] = e
	switch {
	case e.Why.Claim != Free:
	case p.by[e.Name] != nil:
		e.Why.Claim = TakenPerhaps
	default:
		p.by[e.Name] = e
	}
	p.list = append(p.list, e)
	if len(p.list) > p.most {
		old := p.list[0]
		p.list[0], p.list = nil, p.list[1:]
		delete(p.at, old.Path)
		if p.by[old.Name] == old {
			delete(p.by, old.Name)
		}
	}
}

// State visits the history.
func (p *History) State(v *parley.Vars) {
	list := p.list
	if v.Loading() {
		list = nil
	}
	if v.Skips() {
		return
	}
	parley.Slice(v, "history", &list, func(_ int, x **Finished) {
		if *x == nil {
			*x = new(Finished)
		}
		e := *x
		parley.Num(v, "path", &e.Path)
		visitText(v, "name", &e.Name)
		parley.Num(v, "digest", &e.Digest)
		parley.Num(v, "outcome", &e.Outcome)
		e.Why.state(v)
	})
	if v.Loading() {
		*p = NewHistory(p.most)
		for _, e := range list {
			p.Add(e)
		}
	}
}

func (e *AbortReason) state(v *parley.Vars) {
	v.ID("by", &e.By)
	visitText(v, "why", &e.Text)
	taken := e.Claim != Free // a finished transaction needs no more
	if v.Bool("taken", &taken); v.Loading() {
		e.Claim = Free
		if taken {
			e.Claim = TakenPerhaps
		}
	}
}

func visitText(v *parley.Vars, name string, text *string) {
	b := []byte(*text)
	if v.Bytes(name, &b); v.Loading() {
		*text = string(b)
	}
}
