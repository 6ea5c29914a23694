package sm

import (
	"iter"
	"slices"

	"parley"
)

// explain writes a message as the lecture does, v:0:j1:...:jk.
func explain(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	ch, why := decode(m.Body, nil)
	if why != "" {
		return slices.Values[[]string](nil)
	}
	row := parley.Printable(ch.value)
	for _, l := range ch.links {
		row += ":" + name(l.signer)
	}
	return slices.Values([]string{row})
}

func size(c Config) func(e parley.Env, m parley.Msg) parley.Traffic {
	return func(_ parley.Env, m parley.Msg) parley.Traffic {
		ch, why := decode(m.Body, nil)
		if why != "" {
			return parley.Traffic{}
		}
		signers := uint64(len(ch.links))
		return parley.Traffic{
			Messages: 1, Bits: parley.ValueBits(ch.value) + signers*parley.IDBits(c.N), Signatures: signers,
		}
	}
}

func rename(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	m.Body = renameBody(m.Body, perm)
	return m
}

// renameBody leaves the signatures out, because the signatures of other processes
// cannot be computed. What correct processes and Lies sign is a function of the
// rest of the chain, so that states that are equal up to renaming stay equal.
// They are equal in V; which of several chains for a new value is first, and is
// relayed, depends on the order of the senders and changes with their names.
func renameBody(body []byte, perm []parley.ID) []byte {
	ch, why := decode(body, nil)
	if why != "" {
		return body
	}
	for i, l := range ch.links {
		if int(l.signer) < len(perm) {
			l.signer = perm[l.signer]
		}
		ch.links[i] = link{signer: l.signer}
	}
	return ch.encode()
}
