package lockstep

import (
	"bytes"
	"fmt"
	"iter"

	"parley"
)

// frames opens the frames of a protocol to show, rename or falsify the messages
// in them.
type frames struct{ p Protocol }

// open returns the messages of a frame, or nil if it does not parse.
func open(body []byte) []parley.Outgoing {
	if !wellFormed(body) {
		return nil
	}
	var out []parley.Outgoing
	for len(body) > 0 {
		var sent parley.Outgoing
		sent.Path, sent.Msg, body, _ = parley.ReadMsg(body)
		out = append(out, sent)
	}
	return out
}

func (f frames) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for e, m := range f.each(e, m) {
			for row := range f.p.Explain(e, m, name) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

// explainPlainly returns the Explain of a protocol that has none: for each message the name of
// its kind, and its body or value. A message of a local kind has no row.
func explainPlainly(kinds []string) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			if m.Kind >= parley.Local {
				return
			}
			row := fmt.Sprintf("kind %d", m.Kind)
			if int(m.Kind) < len(kinds) {
				row = kinds[m.Kind]
			}
			switch {
			case len(m.Body) > 0:
				row += " " + parley.Printable(m.Body)
			case m.Value > 0:
				row += fmt.Sprintf(" %d", m.Value)
			}
			yield(row)
		}
	}
}

func (f frames) size(e parley.Env, m parley.Msg) parley.Traffic {
	var sum parley.Traffic
	for e, m := range f.each(e, m) {
		sum = sum.Plus(f.p.Size(e, m))
	}
	return sum
}

// each iterates over the messages of a frame, or yields the own copy that a process
// keeps, which is in no frame.
func (f frames) each(e parley.Env, m parley.Msg) iter.Seq2[parley.Env, parley.Msg] {
	return func(yield func(parley.Env, parley.Msg) bool) {
		if m.Seq > uint64(f.p.Last) {
			return // of a round that does not exist: from a faulty process, or a file
		}
		e.Round = int(m.Seq)
		if e.From == e.To {
			yield(e, m)
			return
		}
		for _, sent := range open(m.Body) {
			e.Path = sent.Path
			if !yield(e, sent.Msg) {
				return
			}
		}
	}
}

func (f frames) rename(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	if f.p.Rename == nil && f.p.RenameAll == nil || m.Seq > uint64(f.p.Last) {
		return m
	}
	e.Round = int(m.Seq)
	var body []byte
	for _, sent := range f.p.Renamed(e, open(m.Body), perm) {
		body = parley.AppendMsg(body, sent.Path, sent.Msg)
	}
	m.Body = body
	return m
}

// lies opens each frame of the turn, lets the protocol lie about the messages in
// it, and closes it again. If messages were there and none is left, the frame is
// missing; if there were none, the empty frame is still sent.
func (f frames) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	o, known := t.Memo.(*turnMemo)
	if !known {
		o = &turnMemo{said: make([]parley.Outgoing, 0, 4), turn: *t}
		o.turn.Seen = func(yield func(parley.Received) bool) { eachSeen(t, yield) }
		t.Memo = o
	}
	o.out = o.out[:0]
	for _, frame := range t.Honest {
		o.open(frame.Msg.Body)
		o.turn.To, o.turn.Round = t.To, int(frame.Msg.Seq)
		o.honest = append(o.honest[:0], o.parts...)
		o.turn.Honest, o.turn.Out = o.honest, o.said[:0]
		said := f.p.Lies(s, &o.turn)
		if len(said) == 0 && len(o.parts) > 0 {
			continue
		}
		frame.Msg.Body = o.close(said)
		o.out = append(o.out, frame)
	}
	return o.out
}

// eachSeen iterates over the messages of the frames that a coalition has received.
func eachSeen(t *parley.Turn, yield func(parley.Received) bool) {
	for got := range t.Seen {
		for _, sent := range open(got.Msg.Body) {
			if !yield(parley.Received{From: got.From, To: got.To, Round: int(got.Msg.Seq), Path: sent.Path, Msg: sent.Msg}) {
				return
			}
		}
	}
}

// turnMemo is what one turn keeps for the next, to another receiver: in most turns
// the honest frame is the same, and the lie is one of a few.
type turnMemo struct {
	body   []byte
	parts  []parley.Outgoing // of the frame with this body
	turn   parley.Turn
	out    []parley.Outgoing
	said   []parley.Outgoing
	honest []parley.Outgoing // a copy of parts, which Lies may overwrite
	buf    []byte
	closed [][]byte // bodies encoded so far
}

func (o *turnMemo) open(body []byte) {
	if len(body) == 0 || len(o.body) != len(body) || &o.body[0] != &body[0] {
		o.body, o.parts = body, open(body)
	}
}

const maxBodies = 4

// close returns the body of a frame with the given messages.
func (o *turnMemo) close(said []parley.Outgoing) []byte {
	if len(said) == 0 {
		return nil
	}
	if len(said) == 1 && len(said[0].Msg.Body) > 1<<10 {
		return parley.AppendMsg(nil, said[0].Path, said[0].Msg) // too long to compare
	}
	o.buf = o.buf[:0]
	for _, sent := range said {
		o.buf = parley.AppendMsg(o.buf, sent.Path, sent.Msg)
	}
	for _, body := range o.closed {
		if bytes.Equal(body, o.buf) {
			return body
		}
	}
	if len(o.closed) == maxBodies {
		o.closed = o.closed[:0]
	}
	o.closed = append(o.closed, bytes.Clone(o.buf))
	return o.closed[len(o.closed)-1]
}

// Open returns the messages in a frame, or nil if m is malformed or not a frame.
func Open(m parley.Msg) []parley.Outgoing {
	if m.Kind != Frame {
		return nil
	}
	return open(m.Body)
}
