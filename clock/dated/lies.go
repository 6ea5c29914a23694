package dated

import (
	"parley"
	"parley/lockstep"
)

// lies returns the lies of a process about its clock, as in package convergence, in the agreement on the date,
// and in its queries and replies.
func lies(
	clocks, frames func(*parley.Step, *parley.Turn) []parley.Outgoing,
) func(*parley.Step, *parley.Turn) []parley.Outgoing {
	return func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, one := range t.Honest {
			turn := *t
			turn.Memo, turn.Out = nil, nil
			switch one.Msg.Kind {
			case dateFrame:
				one.Msg.Kind = lockstep.Frame
				turn.Honest, turn.Seen = []parley.Outgoing{one}, seenFrames(t)
				for _, lie := range frames(s, &turn) {
					lie.Msg.Kind = dateFrame
					out = append(out, lie)
				}
			case dateQuery, dateReply:
				switch s.Choose(3) {
				case 1:
					one.Msg.Value++
				case 2:
					continue
				}
				out = append(out, one)
			default:
				turn.Honest = []parley.Outgoing{one}
				out = append(out, clocks(s, &turn)...)
			}
		}
		return out
	}
}

// seenFrames iterates over the frames of the agreement on the date that a coalition has seen.
func seenFrames(t *parley.Turn) func(yield func(parley.Received) bool) {
	return func(yield func(parley.Received) bool) {
		for got := range t.Seen {
			if got.Msg.Kind != dateFrame {
				continue
			}
			got.Msg.Kind = lockstep.Frame
			if !yield(got) {
				return
			}
		}
	}
}
