package lockstep

import (
	"iter"

	"parley"
)

// frames opens the frames of a protocol for those who want to see, rename or
// falsify what is in them.
type frames struct{ p Protocol }

// open returns the messages of a frame, none if it does not parse.
func open(body []byte) []parley.Sent {
	list, _ := parse(nil, body)
	var out []parley.Sent
	for _, p := range list {
		out = append(out, parley.Sent{Path: p.path, Msg: p.msg})
	}
	return out
}

func (f frames) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if f.p.Explain == nil {
			return
		}
		for e, m := range f.each(e, m) {
			for row := range f.p.Explain(e, m, name) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

func (f frames) size(e parley.Env, m parley.Msg) parley.Traffic {
	var sum parley.Traffic
	if f.p.Size != nil {
		for e, m := range f.each(e, m) {
			sum = sum.Plus(f.p.Size(e, m))
		}
	}
	return sum
}

// each goes through what m holds: the messages of a frame, or the own copy that
// a process keeps, which is in no frame.
func (f frames) each(e parley.Env, m parley.Msg) iter.Seq2[parley.Env, parley.Msg] {
	return func(yield func(parley.Env, parley.Msg) bool) {
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
	if f.p.Rename == nil {
		return m
	}
	e.Round = int(m.Seq)
	var body []byte
	for _, sent := range open(m.Body) {
		e.Path = sent.Path
		body = parley.AppendMsg(body, sent.Path, f.p.Rename(e, sent.Msg, perm))
	}
	m.Body = body
	return m
}

// lies opens the frame of the turn, lets the protocol lie about what is in it,
// and closes it again. If nothing is left of something, the frame is missing;
// a process that had nothing to say and says nothing still sends its frame.
func (f frames) lies(s *parley.Step, t *parley.Turn) []parley.Sent {
	inner := *t
	inner.Honest = nil
	for _, sent := range t.Honest {
		inner.Round = int(sent.Msg.Seq)
		inner.Honest = append(inner.Honest, open(sent.Msg.Body)...)
	}
	inner.Seen = func(yield func(parley.Got) bool) {
		for got := range t.Seen {
			for _, sent := range open(got.Msg.Body) {
				if !yield(parley.Got{From: got.From, To: got.To, Round: int(got.Msg.Seq), Path: sent.Path, Msg: sent.Msg}) {
					return
				}
			}
		}
	}
	said := f.p.Lies(s, &inner)
	if len(said) == 0 && len(inner.Honest) > 0 {
		return nil
	}
	var body []byte
	for _, sent := range said {
		body = parley.AppendMsg(body, sent.Path, sent.Msg)
	}
	return []parley.Sent{{Msg: parley.Msg{Kind: Frame, Seq: uint64(inner.Round), Body: body}}}
}
