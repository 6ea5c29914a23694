package stack

import (
	"iter"
	"slices"
	"strings"

	"parley"
)

// layers are the protocols of a stack, the lowest first, with the functions that look
// into messages: the path of a message names its layer.
type layers struct {
	of   []parley.Protocol
	bits int // the number of bits of a path that name a layer
}

// layer returns the number of the layer that a path names. The path of a peer may
// name none.
func (l layers) layer(p parley.Path) int { return int(p & (1<<l.bits - 1)) }

// beneath returns the nearest serving layer beneath layer i, or -1 if there is none.
func (l layers) beneath(i int) int {
	for i--; i >= 0 && !l.of[i].Serves; i-- {
	}
	return max(i, -1)
}

// open finds the layer of a message and pops it from the path.
func (l layers) open(e parley.Env) (parley.Protocol, parley.Env) {
	i := l.layer(e.Path)
	e.Path >>= l.bits
	if i >= len(l.of) {
		return parley.Protocol{}, e
	}
	return l.of[i], e
}

func (l layers) size(e parley.Env, m parley.Msg) parley.Traffic {
	p, e := l.open(e)
	if p.Size == nil {
		return parley.Traffic{}
	}
	return p.Size(e, m)
}

func (l layers) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	i := l.layer(e.Path)
	p, inner := l.open(e)
	if p.Explain == nil {
		return func(func(string) bool) {}
	}
	return func(yield func(string) bool) {
		for row := range p.Explain(inner, m, name) {
			if !yield(l.explainCarried(i, e, m.Body, row, name)) {
				return
			}
		}
	}
}

// explainCarried replaces the bytes that layer i shows, because it carries them and does not know their
// meaning, by the explanation of the layer that had them carried. Only readers see it: the
// carrying layer must not know.
func (l layers) explainCarried(i int, e parley.Env, body []byte, row string, name func(parley.ID) string) string {
	const most = 1 << 10 // bytes searched
	for front := 0; front < min(len(body), most); front++ {
		path, m, rest, err := parley.ReadMsg(body[front:])
		above := l.layer(path)
		if err != nil || above >= len(l.of) || l.beneath(above) != i || l.of[above].Explain == nil {
			continue
		}
		bytes := parley.Printable(body[front : len(body)-len(rest)])
		at := slices.Index(strings.Fields(row), bytes)
		if at < 0 {
			continue
		}
		e.Path = path
		if words := slices.Collect(l.explain(e, m, name)); len(words) > 0 {
			row = strings.Replace(row, bytes, strings.Join(words, " "), 1)
			front = len(body) - len(rest) - 1
		}
	}
	return row
}

func (l layers) rename(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	p, e := l.open(e)
	if p.Rename == nil {
		return m
	}
	return p.Rename(e, m, perm)
}

// lies calls the Lies of every layer, even if an honest process would send nothing.
func (l layers) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for i, p := range l.of {
		part := t.Child(l.bits, parley.Path(i))
		if i < len(l.of)-1 {
			part.Body = l.body(t)
		}
		said := part.Honest
		if p.Lies != nil {
			said = p.Lies(s, part)
		}
		out = append(out, parley.Lift(slices.Clone(said), l.bits, parley.Path(i))...)
	}
	return out
}

// body returns the lie in place of something carried: the lie of the layer that had it
// carried. nil means silence.
func (l layers) body(t *parley.Turn) func(s *parley.Step, b []byte) []byte {
	return func(s *parley.Step, b []byte) []byte {
		path, m, rest, err := parley.ReadMsg(b)
		i := l.layer(path)
		if err != nil || len(rest) > 0 || i >= len(l.of) || l.of[i].Lies == nil {
			return b
		}
		part := t.Child(l.bits, parley.Path(i))
		part.Honest = []parley.Outgoing{{Path: path >> l.bits, Msg: m}}
		if i < len(l.of)-1 {
			part.Body = l.body(t)
		}
		said := l.of[i].Lies(s, part)
		if len(said) == 0 {
			return nil
		}
		return parley.AppendMsg(nil, said[0].Path.Push(l.bits, parley.Path(i)), said[0].Msg)
	}
}

func (l layers) bound(n, m int) error {
	for _, p := range l.of {
		if p.Bound != nil {
			if err := p.Bound(n, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l layers) memory() uint64 {
	var sum uint64
	for _, p := range l.of {
		if p.Memory != nil {
			sum += p.Memory()
		}
	}
	return sum
}

// tree returns the Tree of the highest layer that has one.
func (l layers) tree() func(parley.Machine) parley.Tree {
	for i, p := range slices.Backward(l.of) {
		if p.Tree != nil {
			return func(m parley.Machine) parley.Tree { return p.Tree(m.(*machine).parts[i]) }
		}
	}
	return nil
}

// kinds merges the names of the kinds of two protocols. If both name a kind, the
// message's path decides which name applies.
func kinds(a, b []string) []string {
	out := slices.Clone(a)
	for i, name := range b {
		if i == len(out) {
			out = append(out, "")
		}
		out[i] = join(out[i], name, "/")
	}
	return out
}

func join(a, b, separator string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + separator + b
}
