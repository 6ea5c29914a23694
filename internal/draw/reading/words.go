package reading

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Words describes the events of a protocol's runs.
type Words struct {
	Style
	Protocol parley.Protocol
}

// Nothing describes a message without content, as processes send in rounds in which they have nothing to say.
const Nothing = "an empty message"

// Message describes a message on one line.
func (w Words) Message(e parley.Env, m parley.Msg) string {
	r := reader{p: w.Protocol, g: Gathering{Style: w.Style}}
	var parts []string
	for row := range r.rowsOf(e, m) {
		if len(parts) == 3 {
			parts = append(parts, prose.Ellipsis)
			break
		}
		parts = append(parts, row)
	}
	if len(parts) == 0 {
		return Nothing
	}
	return strings.Join(parts, " ")
}

// arrived describes a message that arrived or was lost.
func (w Words) arrived(e trace.Event) string {
	return w.Message(parley.Env{From: e.Peer, To: e.At, Path: e.Path, Epoch: e.Epoch}, e.Msg)
}

// Does describes what a process does or what happens to it, as in "crashes". It returns "" for messages and for
// events not worth mentioning.
func (w Words) Does(e trace.Event) string {
	switch e.Op {
	case trace.Request:
		return w.Asked(e.Path, e.Msg)
	case trace.Deliver:
		return w.Delivered(e.Peer, e.Path, e.Msg)
	case trace.Indicate:
		return w.Indicated(e.Path, e.Msg)
	case trace.Crash:
		return "crashes"
	case trace.Restart:
		if e.Msg.Value == 1 {
			return "restarts without its disk"
		}
		return "restarts"
	case trace.Suspect:
		return "is notified that " + w.Called(e.Msg.Origin) + " has failed"
	case trace.Pause:
		return "is paused"
	case trace.Resume:
		return "resumes"
	}
	return ""
}

// timer describes a timer that expires. Protocols do not name their timers. The number of the faulty processes' own
// timer would say nothing to a reader.
func timer(e trace.Event) string {
	if parley.Timer(e.Msg.Value) == parley.SpeakTimer {
		return "the time at which faulty processes send"
	}
	return fmt.Sprintf("timer %d", e.Msg.Value)
}

// Event describes an event on one line.
func (w Words) Event(e trace.Event) string {
	env := parley.Env{From: e.At, To: e.Peer, Path: e.Path, Epoch: e.Epoch}
	var text string
	switch e.Op {
	case trace.Send:
		to := "all"
		if e.Peer != parley.All {
			to = w.Called(e.Peer)
		}
		text = fmt.Sprintf("sends %s to %s", w.Message(env, e.Msg), to)
	case trace.Keep:
		text = "keeps its own copy of " + w.Message(env, e.Msg)
	case trace.Receive:
		text = fmt.Sprintf("receives %s from %s", w.arrived(e), w.Called(e.Peer))
	case trace.Lose:
		text = fmt.Sprintf("misses %s from %s, which was lost", w.arrived(e), w.Called(e.Peer))
	case trace.Request, trace.Deliver, trace.Indicate:
		text = w.Does(e)
	case trace.Timeout:
		text = "has a timeout, " + timer(e)
	case trace.Refuse:
		if omits(e) {
			text = "omits to receive that"
			break
		}
		text = fmt.Sprintf("refuses %s of %s", string(e.Msg.Body), w.Called(e.Peer))
	case trace.Append:
		text = durable(e.Msg.Body)
	case trace.Start:
		text = "starts"
	default:
		text = cmp.Or(w.Does(e), e.Op.String())
	}
	line := fmt.Sprintf("%8s  %s %s", prose.Number(uint64(max(e.Time, 0))), w.Called(e.At), text)
	return prose.Cut(line, w.Columns())
}

// Asked describes a request to a process. path is the part of the machine, here and below.
func (w Words) Asked(path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Propose:
		return "proposes " + w.carried(m.Body)
	case parley.Carried:
		return "broadcasts " + w.carried(m.Body)
	case problem.CarryTo:
		if to, body, err := problem.Decode(m, w.Protocol.N); err == nil {
			return "broadcasts " + w.carried(body) + " to " + w.List(slices.Collect(to.All()))
		}
	}
	if row := w.explained(path, m); row != "" {
		return "is asked: " + row
	}
	if len(m.Body) == 0 {
		return fmt.Sprintf("is asked, kind %#x", uint8(m.Kind))
	}
	return "is asked " + w.carried(m.Body)
}

// Delivered describes a delivery, with its sender.
func (w Words) Delivered(from parley.ID, path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Decide:
		if len(m.Body) == 0 {
			return "decides nothing"
		}
		return "decides " + w.carried(m.Body)
	case parley.Carried:
		return "delivers " + w.carried(m.Body) + " of " + w.Called(from)
	}
	if row := w.explained(path, m); row != "" && m.Kind >= parley.Local {
		return row
	}
	return "delivers " + w.carried(m.Body)
}

// Indicated describes an indication of a process.
func (w Words) Indicated(path parley.Path, m parley.Msg) string {
	switch m.Kind {
	case parley.Suspect:
		return "suspects " + w.Called(m.Origin)
	case parley.View:
		text := fmt.Sprintf("installs view %d", m.Seq)
		if members, rest, err := parley.ReadSet(m.Body, w.Protocol.N); err == nil && len(rest) == 0 {
			text += " of " + w.List(slices.Collect(members.All()))
		}
		return text
	}
	if row := w.explained(path, m); row != "" {
		return row
	}
	return fmt.Sprintf("indicates kind %#x", uint8(m.Kind))
}

// Payload describes a delivered message: its payload, or what the protocol says about a message of its own.
func (w Words) Payload(path parley.Path, m parley.Msg) string {
	if m.Kind > parley.Carried {
		if text := w.explained(path, m); text != "" {
			return text
		}
	}
	return w.carried(m.Body)
}

// carried formats a payload for a line of its own.
func (w Words) carried(v []byte) string { return prose.Cut(prose.Value(v), max(12, w.Columns()/3)) }

// explained returns what the protocol says about a request, a delivery or an indication, or "".
func (w Words) explained(path parley.Path, m parley.Msg) string {
	if w.Protocol.Explain != nil {
		for row := range w.Protocol.Explain(parley.Env{Path: path}, m, w.Called) {
			return row
		}
	}
	return ""
}

// durable describes a log record: one that is short text as that text.
func durable(record []byte) string {
	const longest = 24
	words := parley.Printable(record)
	if len(record) == 0 || len(record) > longest || words != string(record) {
		words = prose.Count(uint64(len(record)), "byte", "bytes")
	}
	return "makes " + words + " durable"
}
