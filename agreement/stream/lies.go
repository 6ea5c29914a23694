package stream

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"parley"
	"parley/lockstep"
)

// The stages that a process reports in a positionReply: see [mux.Rejoining.HandlePosition].
var stageTexts = [...]string{"is out and knows no slot", "is out", "is ready", "takes part"}

const stageParticipating = uint64(len(stageTexts) - 1)

// lieFunc returns what a faulty process sends instead of the honest messages.
type lieFunc = func(*parley.Step, *parley.Turn) []parley.Outgoing

// lies returns the lies of the algorithm, frame by frame, each with the signatures of its
// slot, and lies about positions and known names. Queries and evidence are sent
// honestly.
func lies(ofFrame lieFunc, signed bool) lieFunc {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var told []parley.Outgoing
		for i, one := range t.Honest {
			switch one.Msg.Kind {
			case lockstep.Frame:
				told = append(told, slotLies(s, t, i, ofFrame, signed)...)
			case positionReply:
				// It takes no part, at slot 0, or takes part far ahead of all others.
				told = append(told, replyLies(s, one,
					func(m *parley.Msg) { m.Value, m.Seq = 0, 1 },
					func(m *parley.Msg) { m.Value, m.Seq = m.Value+1000, stageParticipating })...)
			case namesReply:
				// It knows no name, or one that no process requested.
				told = append(told, replyLies(s, one,
					func(m *parley.Msg) { m.Body = nil },
					func(m *parley.Msg) { m.Body = []byte("\x00\x01?") })...)
			default:
				told = append(told, one)
			}
		}
		return told
	}
}

func slotLies(s *parley.Step, t *parley.Turn, i int, ofFrame lieFunc, signed bool) []parley.Outgoing {
	turn := *t
	turn.Memo, turn.Out, turn.Honest = nil, nil, t.Honest[i:i+1]
	if signed {
		before := s.Host
		s.Host = &slotSigner{Host: before, slot: t.Honest[i].Msg.Value}
		defer func() { s.Host = before }()
	}
	return ofFrame(s, &turn)
}

// replyLies returns the lies about a reply: it is changed, or not sent.
func replyLies(s *parley.Step, honest parley.Outgoing, lies ...func(*parley.Msg)) []parley.Outgoing {
	k := s.Choose(len(lies) + 2)
	if k > len(lies) {
		return nil
	}
	if k > 0 {
		lies[k-1](&honest.Msg)
	}
	return []parley.Outgoing{honest}
}

// explain shows the contents of frames.
func explain(frames func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string]) func(
	parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		if m.Kind == lockstep.Frame || e.From == e.To && m.Kind < parley.Local {
			return frames(e, m, name)
		}
		return explained(m)
	}
}

// explained shows any other message.
func explained(m parley.Msg) iter.Seq[string] {
	row := ""
	switch m.Kind {
	case evidenceQuery:
		row = fmt.Sprintf("EVIDENCE? #%d", m.Value)
	case evidenceReply:
		row = fmt.Sprintf("EVIDENCE #%d", m.Value)
	case positionQuery:
		row = fmt.Sprintf("WHERE? behind #%d", m.Seq)
	case positionReply:
		row = fmt.Sprintf("WHERE #%d, %s", m.Value, stageTexts[min(m.Seq, stageParticipating)])
	case namesQuery:
		row = fmt.Sprintf("NAMES? up to #%d", m.Value)
	case namesReply:
		var list []string
		known, _ := readNames(m.Body)
		for _, one := range known {
			list = append(list, parley.Printable([]byte(one.name)))
		}
		row = fmt.Sprintf("NAMES up to #%d: %s", m.Value, strings.Join(list, ", "))
	default:
		return slices.Values[[]string](nil)
	}
	return slices.Values([]string{row})
}
