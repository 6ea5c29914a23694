package draw

import (
	"fmt"

	"parley"
	"parley/trace"
)

// Event says in one line what an event is.
func Event(p parley.Protocol, s Style, e trace.Event) string {
	d := lanes{p: p, o: SpaceTimeOptions{Style: s}}
	env := parley.Env{From: e.At, To: e.Peer, Path: e.Path, Epoch: e.Epoch}
	var text string
	switch e.Op {
	case trace.Send:
		to := "all"
		if e.Peer != parley.All {
			to = s.name(e.Peer)
		}
		text = fmt.Sprintf("sends %s to %s", d.rows(env, e.Msg), to)
	case trace.Keep:
		text = "keeps its own copy of " + d.rows(env, e.Msg)
	case trace.Receive, trace.Lose:
		env.From, env.To = e.Peer, e.At
		text = fmt.Sprintf("receives %s from %s", d.rows(env, e.Msg), s.name(e.Peer))
		if e.Op == trace.Lose {
			text = fmt.Sprintf("misses %s from %s, which was lost", d.rows(env, e.Msg), s.name(e.Peer))
		}
	case trace.Request:
		text = asked(s, p, e.Path, e.Msg)
	case trace.Deliver:
		text = Delivered(s, p, e.Peer, e.Path, e.Msg)
	case trace.Indicate:
		text = Indicated(s, p, e.Path, e.Msg)
	case trace.Timeout:
		text = fmt.Sprintf("has a timeout, timer %d", e.Msg.Value)
	case trace.Refuse:
		text = fmt.Sprintf("refuses %s of %s", string(e.Msg.Body), s.name(e.Peer))
	case trace.Append:
		text = durable(e.Msg.Body)
	default:
		text = e.Op.String()
	}
	return cut(fmt.Sprintf("%8s  %s %s", Number(uint64(max(e.Time, 0))), s.name(e.At), text), s.width())
}
