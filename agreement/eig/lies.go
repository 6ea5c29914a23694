package eig

import (
	"iter"
	"slices"

	"parley"
)

// Say is an adversary. For each message, as the article counts messages, it returns what the last process of the path
// sends to one receiver. This process is faulty. The argument held is the value that it would send honestly. A nil
// result means that nothing is sent.
type Say func(path []parley.ID, to parley.ID, held []byte) []byte

// Items iterates over the messages of the article that one message of this package contains. Each of them is a path,
// which ends with the sender, and a value.
func Items(c Config, e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] {
	return func(yield func([]parley.ID, []byte) bool) {
		if m.Kind == Order {
			yield([]parley.ID{c.Source}, m.Body)
			return
		}
		if !due(c, e) {
			return
		}
		l, why := decodeLevel(m.Body, slots(c.N, e.Round), c.Default)
		if why != "" {
			return
		}
		i := 0
		for path := range Relayed(c, e.From, e.Round) {
			if !yield(path, l.dict[l.codes.at(i, l.width)]) {
				return
			}
			i++
		}
	}
}

// due reports whether this sender can send a level in this round.
func due(c Config, e parley.Env) bool {
	return e.Round >= 1 && e.Round <= c.Last() && e.From != c.Source
}

// Relayed iterates, in lexicographic order, over the paths that a lieutenant relays in round r. Each path ends with
// the lieutenant. The memory of the path is reused.
func Relayed(c Config, from parley.ID, r int) iter.Seq[[]parley.ID] {
	return func(yield func([]parley.ID) bool) {
		if from == c.Source || r < 1 {
			return
		}
		self := number(c.Source, from)
		full := make([]parley.ID, r+1)
		full[0], full[r] = c.Source, from
		w, more := paths{l: c.N - 1}, true
		w.used[self] = true
		w.each(r-1, func() {
			for i, q := range w.path {
				full[i+1] = id(c.Source, q)
			}
			more = more && yield(full)
		})
	}
}

// Message returns what process from sends in round r if say gives the value of every path. It reports whether
// anything is sent. A missing value among other values becomes the default, because its receiver would use the
// default.
func Message(c Config, from parley.ID, r int, say func(path []parley.ID) []byte) (parley.Msg, bool) {
	if from == c.Source {
		v := say([]parley.ID{from})
		return parley.Msg{Kind: Order, Body: v}, r == 0 && v != nil
	}
	if r == 0 {
		return parley.Msg{}, false
	}
	said := false
	var values [][]byte
	for path := range Relayed(c, from, r) {
		v := say(path)
		said = said || v != nil
		if v == nil {
			v = c.Default
		}
		values = append(values, v)
	}
	return parley.Msg{Kind: Level, Seq: uint64(r), Body: levelOf(c.Default, values)}, said
}

// Coded returns what a lieutenant sends in round r if the i-th path that it relays, in lexicographic order, has the
// value words[codes[i]]. The first word is the default, and the others are in order. Coded is a fast form of Message,
// for many adversaries in a row.
func Coded(r int, words [][]byte, codes []byte) parley.Msg {
	return parley.Msg{Kind: Level, Seq: uint64(r), Body: encodeLevel(words, codes, 1)}
}

func levelOf(otherwise []byte, values [][]byte) []byte {
	t := tree{dict: dict{otherwise}, width: 1}
	t.learn(values)
	codes := make(column, len(values)*t.width)
	for i, v := range values {
		codes.put(i, t.width, t.dict.code(v))
	}
	return encodeLevel(t.dict, codes, t.width)
}

// Tell makes a faulty process send what an adversary says. It is for a faulty.Behavior at the level of rounds.
func Tell(c Config, say Say) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, honest := range t.Honest {
			var held [][]byte
			for _, v := range Items(c, parley.Env{From: t.Self, Round: t.Round}, honest.Msg) {
				held = append(held, v)
			}
			m, said := Message(c, t.Self, t.Round, func(path []parley.ID) []byte {
				v := say(path, t.To, held[0])
				held = held[1:]
				return v
			})
			if said {
				out = append(out, parley.Outgoing{Path: honest.Path, Msg: m})
			}
		}
		return out
	}
}

// lies: for each path a faulty process may send the value it holds, any other of the
// alphabet, or nothing.
func lies(c Config) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, honest := range t.Honest {
			var said bool
			m := honest.Msg
			if m.Kind == Order {
				m.Body, said = c.Lie(s, m.Body)
			} else {
				m.Body, said = lieLevel(s, c, t.Round, m.Body)
			}
			if said {
				out = append(out, parley.Outgoing{Path: honest.Path, Msg: m})
			}
		}
		return out
	}
}

// lieLevel is Lie for each path of a level, in codes.
func lieLevel(s *parley.Step, c Config, round int, body []byte) (told []byte, said bool) {
	l, why := decodeLevel(body, slots(c.N, round), c.Default)
	if why != "" {
		return body, true
	}
	t := tree{c: c, dict: dict{c.Default}, width: 1}
	t.learn(c.Values())
	codes := slices.Clone(t.translate(l))
	others := make([][]uint32, len(t.dict))
	for code, held := range t.dict {
		for _, v := range c.Others(held) {
			others[code] = append(others[code], t.dict.code(v))
		}
	}
	for i := range len(codes) / t.width {
		code := codes.at(i, t.width)
		switch k := s.Choose(len(others[code]) + 2); k {
		case 0:
			said = true
		case len(others[code]) + 1:
			codes.put(i, t.width, 0)
		default:
			codes.put(i, t.width, others[code][k-1])
			said = true
		}
	}
	return encodeLevel(t.dict, codes, t.width), said
}

// size counts the messages of the article in one message of this package: one value
// with its path each.
func size(c Config) func(e parley.Env, m parley.Msg) parley.Traffic {
	return func(e parley.Env, m parley.Msg) parley.Traffic {
		if m.Kind == Order {
			return parley.Traffic{Messages: 1, Bits: parley.ValueBits(m.Body) + parley.IDBits(c.N)}
		}
		if !due(c, e) {
			return parley.Traffic{}
		}
		l, why := decodeLevel(m.Body, slots(c.N, e.Round), c.Default)
		if why != "" {
			return parley.Traffic{}
		}
		n := len(l.codes) / l.width
		sum := parley.Traffic{Messages: uint64(n), Bits: uint64(n) * uint64(e.Round+1) * parley.IDBits(c.N)}
		for i := range n {
			sum.Bits += parley.ValueBits(l.dict[l.codes.at(i, l.width)])
		}
		return sum
	}
}

// rename permutes the processes that a message names, including the source.
func rename(c Config) func(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	return func(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
		if m.Kind != Level || !due(c, e) {
			return m
		}
		l, why := decodeLevel(m.Body, slots(c.N, e.Round), c.Default)
		if why == "" {
			codes := renameColumn(c, l.codes, l.width, e.Round, e.From, perm)
			m.Body = encodeLevel(l.dict, codes, l.width)
		}
		return m
	}
}

// renameColumn permutes the entries of what a process relayed in round r.
func renameColumn(c Config, b column, width, r int, from parley.ID, perm []parley.ID) column {
	out := make(column, len(b))
	renamed := make([]int, r-1)
	i := 0
	for path := range Relayed(c, from, r) {
		for j, id := range path[1:r] {
			renamed[j] = number(perm[c.Source], perm[id])
		}
		out.put(rank(renamed, c.N-1, number(perm[c.Source], perm[from])), width, b.at(i, width))
		i++
	}
	return out
}
