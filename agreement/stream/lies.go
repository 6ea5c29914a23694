package stream

import (
	"fmt"
	"iter"
	"strings"

	"parley"
	"parley/lockstep"
)

// What a process that is asked for its position says of itself: see [mux.Returning.Find].
var standings = [...]string{"is out and knows no slot", "is out", "is ready", "takes part"}

const takesPart = uint64(len(standings) - 1)

// teller is what says something in the place of an honest process.
type teller = func(*parley.Step, *parley.Turn) []parley.Sent

// lies returns the lies of the algorithm, frame by frame, each with the signatures of its
// slot; and those about where a process is and which names it knows. Questions are asked as they
// are, and evidence is the truth.
func lies(ofFrame teller, signed bool) teller {
	return func(s *parley.Step, t *parley.Turn) []parley.Sent {
		var told []parley.Sent
		for i, one := range t.Honest {
			switch one.Msg.Kind {
			case lockstep.Frame:
				told = append(told, slotLies(s, t, i, ofFrame, signed)...)
			case positionReply:
				told = append(told, positionLies(s, one)...)
			case namesReply:
				told = append(told, namesLies(s, one)...)
			default:
				told = append(told, one)
			}
		}
		return told
	}
}

// slotLies are the lies in a frame.
func slotLies(s *parley.Step, t *parley.Turn, i int, ofFrame teller, signed bool) []parley.Sent {
	turn := *t
	turn.Memo, turn.Out, turn.Honest = nil, nil, t.Honest[i:i+1]
	if signed {
		before := s.Host
		s.Host = &slotSigner{Host: before, slot: t.Honest[i].Msg.Value}
		defer func() { s.Host = before }()
	}
	return ofFrame(s, &turn)
}

// positionLies: it is out at slot 0, or takes part far ahead of all others; or no answer.
func positionLies(s *parley.Step, honest parley.Sent) []parley.Sent {
	switch s.Choose(4) {
	case 1:
		honest.Msg.Value, honest.Msg.Seq = 0, 1
	case 2:
		honest.Msg.Value, honest.Msg.Seq = honest.Msg.Value+1000, takesPart
	case 3:
		return nil
	}
	return []parley.Sent{honest}
}

// namesLies: it knows none, or knows one that nobody asked for; or no answer.
func namesLies(s *parley.Step, honest parley.Sent) []parley.Sent {
	switch s.Choose(4) {
	case 1:
		honest.Msg.Body = nil
	case 2:
		honest.Msg.Body = []byte("\x00\x01?")
	case 3:
		return nil
	}
	return []parley.Sent{honest}
}

// explain shows a frame as what is in it.
func explain(frames func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string]) func(
	parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		if m.Kind == lockstep.Frame || e.From == e.To && m.Kind < parley.Local {
			return frames(e, m, name)
		}
		return func(yield func(string) bool) {
			if row := explained(m); row != "" {
				yield(row)
			}
		}
	}
}

// explained shows any other message.
func explained(m parley.Msg) string {
	switch m.Kind {
	case evidenceQuery:
		return fmt.Sprintf("EVIDENCE? #%d", m.Value)
	case evidenceReply:
		return fmt.Sprintf("EVIDENCE #%d", m.Value)
	case positionQuery:
		return fmt.Sprintf("WHERE? behind #%d", m.Seq)
	case positionReply:
		return fmt.Sprintf("WHERE #%d, %s", m.Value, standings[min(m.Seq, takesPart)])
	case namesQuery:
		return fmt.Sprintf("NAMES? up to #%d", m.Value)
	case namesReply:
		var list []string
		known, _ := readNames(m.Body)
		for _, one := range known {
			list = append(list, parley.Printable([]byte(one.name)))
		}
		return fmt.Sprintf("NAMES up to #%d: %s", m.Value, strings.Join(list, ", "))
	}
	return ""
}
