package run

import (
	"slices"

	"parley"
)

// Lying adds simple lies to an asynchronous protocol that tolerates only crashes or omissions, and so defines
// no lies. A faulty process can then change a field of a message, send the message twice, or not send it.
// Such a protocol promises nothing against lies, and these lies show why. Lying returns any other protocol
// unchanged.
func Lying(p parley.Protocol) parley.Protocol {
	if p.Timing == parley.Synchronous || p.Faults >= parley.SignedByzantineFaults {
		return p
	}
	own := p.Lies
	p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		said := t.Honest
		if own != nil {
			asks := counter{Host: s.Host}
			s.Host = &asks
			said = own(s, t)
			if s.Host = asks.Host; asks.n > 0 {
				return said
			}
		}
		var out []parley.Outgoing
		for _, one := range said {
			all := lies(one, s.N)
			switch k := s.Choose(len(all) + 2); k {
			case len(all): // the message twice
				out = append(out, one, one)
			case len(all) + 1: // silence
			default:
				out = append(out, all[k])
			}
		}
		return out
	}
	return p
}

// counter counts the choices that a host is asked for.
type counter struct {
	parley.Host
	n int
}

func (c *counter) Choose(n int) int {
	c.n++
	return c.Host.Choose(n)
}

// lies returns what may be sent in place of a message: first the message itself, then copies with another
// Body, Value, Seq or Origin.
func lies(honest parley.Outgoing, n int) []parley.Outgoing {
	out := []parley.Outgoing{honest}
	lie := func(change func(m *parley.Msg)) {
		one := honest
		change(&one.Msg)
		out = append(out, one)
	}
	if end := len(honest.Msg.Body) - 1; end >= 0 {
		lie(func(m *parley.Msg) {
			m.Body = slices.Clone(m.Body)
			m.Body[end] ^= 1
		})
	}
	lie(func(m *parley.Msg) { m.Value ^= 1 })
	lie(func(m *parley.Msg) { m.Seq++ })
	lie(func(m *parley.Msg) { m.Origin = parley.ID((int(m.Origin) + 1) % n) })
	return out
}
