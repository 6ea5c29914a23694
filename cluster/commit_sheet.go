package cluster

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/commit/problem"
)

// sheet says what a transaction is: its name, a hash of all that it is to do, who takes
// part, the coordinator first, and what some of them are to do.
type sheet struct {
	name    string
	digest  uint64
	members []parley.ID
	parts   []part
}

type part struct {
	id   parley.ID
	body []byte
}

// place is that of a member among them, -1 as an ID if it is none.
func (t sheet) place(id parley.ID) parley.ID { return parley.ID(slices.Index(t.members, id)) }

func (t sheet) has(id parley.ID) bool { return slices.Contains(t.members, id) }

// part is what a node is to do, if anything.
func (t sheet) part(id parley.ID) (body []byte, has bool) {
	for _, p := range t.parts {
		if p.id == id {
			return p.body, true
		}
	}
	return nil, false
}

// only is the sheet with the part of one node alone.
func (t sheet) only(id parley.ID) sheet {
	parts := t.parts
	t.parts = nil
	for _, p := range parts {
		if p.id == id {
			t.parts = []part{p}
		}
	}
	return t
}

// size is how many bytes its parts have.
func (t sheet) size() int {
	size := 0
	for _, p := range t.parts {
		size += len(p.body)
	}
	return size
}

func (t sheet) encode() []byte {
	b := make([]byte, 0, 32+len(t.name)+2*len(t.members)+t.size()+8*len(t.parts))
	b = append(binary.AppendUvarint(b, uint64(len(t.name))), t.name...)
	b = binary.BigEndian.AppendUint64(b, t.digest)
	b = binary.AppendUvarint(b, uint64(len(t.members)))
	for _, id := range t.members {
		b = binary.AppendUvarint(b, uint64(id))
	}
	b = binary.AppendUvarint(b, uint64(len(t.parts)))
	for _, p := range t.parts {
		b = binary.AppendUvarint(b, uint64(p.id))
		b = append(binary.AppendUvarint(b, uint64(len(p.body))), p.body...)
	}
	return b
}

// readSheet reads one of a system of n nodes: members but the first are in order, and so
// are parts, which members alone have.
func readSheet(b []byte, n int) (t sheet, ok bool) {
	r := numbers{b: b}
	t.name = string(r.bytes(MaxTx))
	if len(r.b) < 8 {
		return t, false
	}
	t.digest, r.b = binary.BigEndian.Uint64(r.b), r.b[8:]
	for range r.next(uint64(n)) {
		id := parley.ID(r.next(uint64(n - 1)))
		if k := len(t.members); k > 0 && (id == t.members[0] || k > 1 && id <= t.members[k-1]) {
			return t, false
		}
		t.members = append(t.members, id)
	}
	for range r.next(uint64(len(t.members))) {
		p := part{id: parley.ID(r.next(uint64(n - 1))), body: r.bytes(MaxPart)}
		if k := len(t.parts); !t.has(p.id) || k > 0 && p.id <= t.parts[k-1].id {
			return t, false
		}
		t.parts = append(t.parts, p)
	}
	return t, !r.bad && len(r.b) == 0 && t.name != "" && len(t.members) > 0
}

// numbers reads numbers and byte strings. After what does not fit it is bad, and all is 0.
type numbers struct {
	b   []byte
	bad bool
}

func (r *numbers) next(limit uint64) uint64 {
	if r.bad {
		return 0
	}
	x, rest, err := parley.ReadUvarint(r.b, limit)
	if err != nil {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = rest
	return x
}

func (r *numbers) bytes(limit int) []byte {
	size := r.next(uint64(min(limit, len(r.b))))
	if r.bad || size > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:size:size]
	r.b = r.b[size:]
	return b
}

// encodeNumbers writes a row of numbers that grow, each as its distance from the one before.
func encodeNumbers(list []uint64) []byte {
	var b []byte
	last := uint64(0)
	for _, x := range list {
		b = binary.AppendUvarint(b, x-last)
		last = x
	}
	return b
}

// readNumbers reads one of at most so many.
func readNumbers(b []byte, most int) (list []uint64, ok bool) {
	r := numbers{b: b}
	last := uint64(0)
	for len(r.b) > 0 && len(list) <= most {
		step := r.next(1<<56 - 1)
		if last += step; r.bad || step == 0 && len(list) > 0 || last >= 1<<56 {
			return nil, false
		}
		list = append(list, last)
	}
	return list, !r.bad && len(list) <= most
}

// ending is why a transaction was aborted, as far as it is known.
type ending struct {
	by    parley.ID // who said no
	text  string    // "": it is not known who did
	taken taking    // for a transaction has the name
}

// maxWhy is how many bytes of a reason are told.
const maxWhy = 200

func (e ending) encode(name string) []byte {
	b := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(e.by)), uint64(e.taken))
	return append(b, e.text...)
}

// readEnding reads what this node has written.
func readEnding(b []byte) (name string, e ending) {
	r := numbers{b: b}
	name = string(r.bytes(MaxTx))
	e.by, e.taken = parley.ID(r.next(1<<16-1)), taking(r.next(uint64(takenByAbort)))
	e.text = string(r.b)
	return name, e
}

// past are the last transactions that have ended at a node.
type past struct {
	most int
	list []*ended // the oldest first, behind those that are nil
	head int
	at   map[parley.Path]*ended
	by   map[string]*ended
}

type ended struct {
	path    parley.Path
	name    string
	digest  uint64
	outcome problem.Outcome
	why     ending
}

func newPast(most int) past {
	return past{most: most, at: make(map[parley.Path]*ended), by: make(map[string]*ended)}
}

func (p *past) named(name string) *ended { return p.by[name] }

// add remembers one, and forgets the oldest if they are too many. What did not get its name
// is not found by it.
func (p *past) add(e *ended) {
	if p.at[e.path] != nil {
		return
	}
	p.at[e.path] = e
	if p.by[e.name] == nil && e.why.taken == free {
		p.by[e.name] = e
	}
	p.list = append(p.list, e)
	if len(p.list)-p.head > p.most {
		old := p.list[p.head]
		p.list[p.head] = nil
		p.head++
		delete(p.at, old.path)
		if p.by[old.name] == old {
			delete(p.by, old.name)
		}
	}
	if p.head > p.most {
		p.list = append([]*ended(nil), p.list[p.head:]...)
		p.head = 0
	}
}

func (p *past) state(v *parley.Vars) {
	list := p.list[p.head:]
	if v.Loading() {
		list = nil
	}
	if v.Skips() {
		return
	}
	parley.Slice(v, "past", &list, func(_ int, x **ended) {
		if *x == nil {
			*x = new(ended)
		}
		e := *x
		parley.Num(v, "path", &e.path)
		visitText(v, "name", &e.name)
		parley.Num(v, "digest", &e.digest)
		parley.Num(v, "outcome", &e.outcome)
		e.why.state(v)
	})
	if v.Loading() {
		*p = newPast(p.most)
		for _, e := range list {
			p.add(e)
		}
	}
}

func (e *ending) state(v *parley.Vars) {
	v.ID("by", &e.by)
	visitText(v, "why", &e.text)
	taken := e.taken != free // of what is over more is not asked
	if v.Bool("taken", &taken); v.Loading() {
		e.taken = free
		if taken {
			e.taken = takenPerhaps
		}
	}
}

// single is the machine of a transaction without others: what the one node says is done.
type single struct {
	parley.Base
	committed bool
}

// Request is the vote, and decides.
func (a *single) Request(s *parley.Step, m parley.Msg) {
	yes, _ := problem.Vote(m.Body)
	if a.committed = yes; yes {
		s.Append([]byte("committed"))
	}
	a.decide(s)
}

// Start: what is in no log was aborted.
func (a *single) Start(s *parley.Step) {
	if s.Restart {
		a.committed = a.committed || len(s.Log) > 0
		a.decide(s)
	}
}

func (a *single) decide(s *parley.Step) {
	outcome := problem.Abort
	if a.committed {
		outcome = problem.Commit
	}
	s.Deliver(s.Self, outcome.Decided(s.Self))
}

// State visits the one variable.
func (a *single) State(v *parley.Vars) { v.Durable(func() { v.Bool("committed", &a.committed) }) }

func visitText(v *parley.Vars, name string, text *string) {
	b := []byte(*text)
	if v.Bytes(name, &b); v.Loading() {
		*text = string(b)
	}
}
