package byzantine

import (
	"encoding/hex"
	"fmt"
	"iter"

	"parley"
	"parley/agreement/eig"
	agree "parley/agreement/problem"
	"parley/lockstep"
	"parley/mux"
)

// other returns the batch that a liar sends in place of its own: always the same for one liar, so that all
// liars can vouch for it, even if it was sent to no process.
func other(source parley.ID) []byte {
	return encode(1, [][]byte{fmt.Appendf(nil, "lie of %d", source)})
}

// otherThan returns what a liar sends in place of a batch, or of its claim: a claim of more deliveries than
// possible.
func otherThan(body []byte, source parley.ID, n int) []byte {
	if _, numbers, ok := readClaim(body, n); ok {
		for i := range numbers {
			numbers[i] += 1 << 40
		}
		return claim(1<<60, numbers)
	}
	return other(source)
}

// lies: in round 0 a liar may send another batch, malformed bytes, or nothing, differently to each receiver.
// Later it may relay, along each path, what it holds, the digest of the source's other batch, whether any
// process holds that or not, or nothing; and it may send a wrong mark.
func lies(c Config, parts []lockstep.Protocol) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := t.Out[:0]
		for _, honest := range t.Honest {
			switch honest.Msg.Kind {
			case Batch:
				switch s.Choose(4) {
				case 0:
					out = append(out, honest)
				case 1:
					honest.Msg.Body = otherThan(honest.Msg.Body, t.Self, c.N)
					out = append(out, honest)
				case 2:
					honest.Msg.Body = honest.Msg.Body[:len(honest.Msg.Body)-1]
					out = append(out, honest)
				}
			case Heard:
				if s.Choose(2) == 0 {
					out = append(out, honest)
				} else if s.Choose(2) == 0 {
					honest.Msg.Value++
					out = append(out, honest)
				}
			case eig.Level:
				if m, said := lieLevel(s, c, len(parts), t, honest); said {
					honest.Msg = m
					out = append(out, honest)
				}
			}
		}
		return out
	}
}

func lieLevel(s *parley.Step, c Config, parts int, t *parley.Turn, honest parley.Outgoing) (parley.Msg, bool) {
	i, _ := mux.Part(honest.Path, parts)
	in := instance(c, parley.ID(i))
	var held [][]byte
	for _, v := range eig.Items(in, parley.Env{From: t.Self, Round: t.Round}, honest.Msg) {
		held = append(held, v)
	}
	return eig.Message(in, t.Self, t.Round, func([]parley.ID) []byte {
		v := held[0]
		held = held[1:]
		switch s.Choose(3) {
		case 0:
			return append([]byte{}, v...)
		case 1:
			return digest(other(parley.ID(i)))
		}
		return nil
	})
}

func instance(c Config, source parley.ID) agree.Instance {
	return agree.Instance{N: c.N, M: c.M, Source: source}
}

// liesAll: a liar may answer a request for a batch with other bytes, or not at all. It may report too early
// that it is ready, send another state to a joining process, and ask to join itself.
func liesAll(slots parley.Protocol) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for i, honest := range t.Honest {
			switch honest.Msg.Kind {
			case lockstep.Frame:
				turn := *t
				turn.Memo, turn.Honest, turn.Out = nil, t.Honest[i:i+1], nil
				out = append(out, slots.Lies(s, &turn)...)
			case Fetch:
				if s.Choose(2) == 0 {
					out = append(out, honest)
				}
			case Bytes:
				switch s.Choose(3) {
				case 0:
					out = append(out, honest)
				case 1:
					honest.Msg.Body = other(honest.Msg.Origin)
					out = append(out, honest)
				}
			case Ready, Where, Join, State:
				out = append(out, lieEra(s, honest)...)
			}
		}
		return out
	}
}

func lieEra(s *parley.Step, honest parley.Outgoing) []parley.Outgoing {
	switch s.Choose(4) {
	case 0:
		return nil
	case 1:
		if honest.Msg.Value++; s.Choose(2) == 1 {
			honest.Msg.Value = anew(honest.Msg.Value)
		}
	case 2:
		switch honest.Msg.Kind {
		case Ready:
			honest.Msg.Seq = 1 - honest.Msg.Seq
		case State:
			_, numbers, _ := decodeState(honest.Msg.Body, s.N)
			honest.Msg.Body = encodeState(uint64(s.N), numbers)
		case Where:
			join := honest
			join.Msg = parley.Msg{Kind: Join, Value: honest.Msg.Value, Seq: 1 + uint64(s.Choose(3))}
			return []parley.Outgoing{honest, join}
		}
	}
	return []parley.Outgoing{honest}
}

// short shows a digest by its first bytes.
func short(d []byte) string {
	if len(d) == 0 {
		return "-"
	}
	return hex.EncodeToString(d[:min(4, len(d))])
}

// batchText lists the requests of a batch.
func batchText(body []byte, n int) string {
	if total, _, ok := readClaim(body, n); ok {
		return fmt.Sprintf("delivered %d", total)
	}
	text := "batch"
	wishes, ok := each(body, func(number uint64, request []byte) {
		text += fmt.Sprintf(" %d %s", number, parley.Printable(request))
	})
	if !ok || !eachWish(wishes, func(w wish) { text += fmt.Sprintf(", let %d in", w.whom) }) {
		return "no batch"
	}
	return text
}

// explaining is the type of an Explain function.
type explaining = func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string]

// explain shows batches by their contents, and relayed values as eig does: the digest and the path.
func explain(c Config, parts []lockstep.Protocol) explaining {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			if m.Kind == Batch && e.Round == 0 {
				yield(batchText(m.Body, c.N))
				return
			}
			i, _ := mux.Part(e.Path, len(parts))
			if m.Kind != eig.Level || i >= len(parts) {
				return
			}
			for path, v := range eig.Items(instance(c, parley.ID(i)), e, m) {
				if !yield("{" + short(v) + "," + agree.PathText(path, c.N, name) + "}") {
					return
				}
			}
		}
	}
}

// explainAll is explain for frames, and also covers messages outside frames.
func explainAll(c Config, slots parley.Protocol) explaining {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			switch {
			case m.Kind == Fetch && e.From != e.To:
				yield(fmt.Sprintf("#%d: who has %s of %s?", m.Value, short(m.Body), name(m.Origin)))
			case m.Kind == Bytes && e.From != e.To:
				yield(fmt.Sprintf("#%d: %s of %s", m.Value, batchText(m.Body, c.N), name(m.Origin)))
			case m.Kind == Where && e.From != e.To:
				yield(fmt.Sprintf("out, ready for era %d: which is it?", m.Value))
			case m.Kind == Join && e.From != e.To:
				yield(fmt.Sprintf("let me in behind era %d", m.Value))
			case m.Kind == Ready && e.From != e.To && m.Seq == 1:
				yield(fmt.Sprintf("out, and ready for era %d", m.Value))
			case m.Kind == Ready && e.From != e.To:
				yield(fmt.Sprintf("ready for era %d", m.Value))
			case m.Kind == State && e.From != e.To:
				total, _, _ := decodeState(m.Body, c.N)
				yield(fmt.Sprintf("era %d begins behind position %d", m.Value, total))
			case m.Kind == parley.Carried:
				yield(parley.Printable(m.Body))
			default:
				slots.Explain(e, m, name)(yield)
			}
		}
	}
}
