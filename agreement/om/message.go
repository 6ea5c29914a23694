package om

import (
	"iter"
	"slices"

	"parley"
)

// message makes the message with a value and its path, without the source and with the
// sender last. Receivers share its body.
func message(path, value []byte) parley.Msg {
	body := make([]byte, 0, len(path)+len(value))
	body = append(append(body, path...), value...)
	return parley.Msg{Kind: Value, Seq: uint64(len(path)), Body: body}
}

// split splits a message into path and value, and reports whether it is long enough for its path.
// An empty value is not nil, because something was sent.
func split(m parley.Msg) (path, value []byte, ok bool) {
	switch {
	case m.Kind != Value || m.Seq > uint64(len(m.Body)):
		return nil, nil, false
	case len(m.Body) == 0:
		return nil, []byte{}, true
	}
	return m.Body[:m.Seq:m.Seq], m.Body[m.Seq:], true
}

// fullPath returns the path as process IDs, with the source first.
func fullPath(c Config, path []byte) []parley.ID {
	ids := make([]parley.ID, 1, len(path)+1)
	ids[0] = c.Source
	for _, j := range path {
		ids = append(ids, parley.ID(j))
	}
	return ids
}

// Items yields the message of the lecture that a valid message of this package holds: its path, which begins with the
// source, and its value.
func Items(c Config, m parley.Msg) iter.Seq2[[]parley.ID, []byte] {
	return func(yield func([]parley.ID, []byte) bool) {
		if path, value, ok := split(m); ok {
			yield(fullPath(c, path), value)
		}
	}
}

func size(c Config) func(e parley.Env, m parley.Msg) parley.Traffic {
	return func(_ parley.Env, m parley.Msg) parley.Traffic {
		path, value, ok := split(m)
		if !ok {
			return parley.Traffic{}
		}
		return parley.Traffic{Messages: 1, Bits: parley.ValueBits(value) + uint64(len(path)+1)*parley.IDBits(c.N)}
	}
}

// rename permutes the processes of a message's path. The source stays.
func rename(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	path, _, ok := split(m)
	if !ok {
		return m
	}
	m.Body = slices.Clone(m.Body)
	for i, j := range path {
		if int(j) < len(perm) {
			m.Body[i] = byte(perm[j])
		}
	}
	return m
}
