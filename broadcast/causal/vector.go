package causal

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/broadcast/problem"
)

// Count is one place of a vector clock: the first Seq messages of an incarnation of a process.
type Count struct {
	Sender parley.ID
	Life   uint64
	Seq    uint64 // at least 1
}

// stamped is a message that waits for its predecessors.
type stamped struct {
	seq    uint64
	vector []Count
	body   []byte
}

func (w stamped) Compare(seq uint64) int { return cmp.Compare(w.seq, seq) }

// stamp broadcasts a message with the counts of all that was delivered here. The vector has no place for the
// sender's own incarnation: the message's number covers it.
func (p *process) stamp(s *parley.Step, own Message) {
	var vector []Count
	for q := range p.sender {
		for life, f := range p.sender[q].All() {
			if f.delivered > 0 && (parley.ID(q) != s.Self || life != uint64(p.me)) {
				vector = append(vector, Count{parley.ID(q), life, f.delivered})
			}
		}
	}
	s.Broadcast(parley.Msg{Kind: Stamped, Seq: own.Seq, Value: uint64(p.me), Body: AppendStamp(nil, vector, own.Body)})
}

// hold adds a message to those that wait, and delivers what is ready.
func (p *process) hold(s *parley.Step, from parley.ID, m parley.Msg) {
	vector, body, err := ReadStamp(m.Body, s.N)
	if err != nil {
		s.Refuse(from, err.Error())
		return
	}
	for _, c := range vector {
		if c.Sender == from && c.Life == m.Value {
			s.Refuse(from, "vector with a place for its own message")
			return
		}
		if c.Seq > p.delivered(c)+uint64(p.c.Window) {
			s.Refuse(from, "vector far ahead")
			return
		}
	}
	f := p.sender[from].At(m.Value)
	switch {
	case f == nil:
		s.Refuse(from, "message of a life long past")
		return
	case m.Seq <= f.delivered:
		s.Refuse(from, "message delivered before")
		return
	case m.Seq-f.delivered > uint64(p.c.Window):
		s.Refuse(from, "message past the window")
		return
	}
	if _, fresh := f.waiting.Put(m.Seq, stamped{m.Seq, vector, body}); !fresh {
		s.Refuse(from, "message that waits already")
		return
	}
	if f.waiting[0].seq == m.Seq {
		p.release(s)
	}
}

// delivered returns how many messages were delivered of the incarnation of a place of a vector. A forgotten
// incarnation counts as completely delivered.
func (p *process) delivered(c Count) uint64 {
	if f := p.sender[c.Sender].Known(c.Life); f != nil {
		return f.delivered
	}
	if p.sender[c.Sender].Forgotten(c.Life) {
		return c.Seq
	}
	return 0
}

// release delivers messages that wait for nothing more, until there are none.
func (p *process) release(s *parley.Step) {
	for more := true; more; {
		more = false
		for q := range p.sender {
			for life, f := range p.sender[q].All() {
				n := 0
				for n < len(f.waiting) && p.ready(f, &f.waiting[n]) {
					f.delivered++
					p.deliver(s, Message{Sender: parley.ID(q), Life: life, Seq: f.delivered, Body: f.waiting[n].body})
					n++
				}
				f.waiting = slices.Delete(f.waiting, 0, n)
				more = more || n > 0
			}
		}
	}
}

// ready reports whether a message is the next of its incarnation, and all that its vector counts has been
// delivered.
func (p *process) ready(f *stream, w *stamped) bool {
	return w.seq == f.delivered+1 &&
		!slices.ContainsFunc(w.vector, func(c Count) bool { return p.delivered(c) < c.Seq })
}

// showHeld shows the vector clock, and the messages that wait with what they wait for.
func (p *process) showHeld(shown *parley.Shown) {
	clock := make([]string, len(p.sender))
	for q := range p.sender {
		clock[q] = "0"
		for _, f := range p.sender[q].All() { // the last incarnation is the last one
			clock[q] = strconv.FormatUint(f.delivered, 10)
		}
	}
	shown.Derive(parley.Variable{Name: "vector clock", Kind: parley.CountVector, Value: strings.Join(clock, " ")})
	for q := range p.sender {
		for _, f := range p.sender[q].All() {
			for _, w := range f.waiting {
				waits := []string{problem.Missing(shown.Called(parley.ID(q)), f.delivered, w.seq-1)}
				for _, c := range w.vector {
					waits = append(waits, problem.Missing(shown.Called(c.Sender), p.delivered(c), c.Seq))
				}
				waits = slices.DeleteFunc(waits, func(text string) bool { return text == "" })
				shown.Derive(problem.Held(parley.ID(q), w.seq, w.body, strings.Join(waits, ", ")))
			}
		}
	}
}

func (w *stamped) state(v *parley.Vars) {
	parley.Num(v, "seq", &w.seq)
	parley.Slice(v, "vector", &w.vector, func(_ int, c *Count) {
		v.ID("sender", &c.Sender)
		parley.Num(v, "life", &c.Life)
		parley.Num(v, "seq", &c.Seq)
	})
	v.Bytes("body", &w.body)
}
