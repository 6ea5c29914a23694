package reading

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Story returns a run in words, one line for each event. If there are rounds, a line has what one process sends to
// others in one round. Otherwise a line is a step of a process with its effects; steps that only receive something
// share a line. Faulty processes are marked, and lines are not folded.
func Story(p parley.Protocol, events []trace.Event, s Style) []string {
	t := storyteller{Words: Words{s, p}, written: make(map[int]bool)}
	if p.Timing == parley.Synchronous {
		t.rounds = Gather(p, events, Gathering{Style: s, Rows: storyRows})
		t.reader = reader{p: p, g: Gathering{Style: s}}
	}
	for _, e := range events {
		t.event(e)
	}
	t.end()
	return t.lines
}

// storyRows is the maximum number of rows of one message in a story.
const storyRows = 8

// storyteller is a story under construction.
type storyteller struct {
	Words
	lines []string

	// The current step: its process, its beginning, and its effects.
	who     parley.ID
	begins  string
	effects []string
	sends   []groupedSend // at the end of comes
	quiet   []string      // the steps before it without effects, including the current one while it has none
	starts  bool          // the step is a start, whose log records are not mentioned
	lost    []string      // what links lost since the step began, which follows the step

	down    parley.Set
	rounds  []Round
	reader  reader
	written map[int]bool // rounds
}

// groupedSend is one content of messages from one process, with its receivers.
type groupedSend struct {
	from  parley.ID
	words string
	to    []parley.ID
}

// event adds an event.
func (t *storyteller) event(e trace.Event) {
	rounds := t.Protocol.Timing == parley.Synchronous
	name := t.Marked(e.At)
	switch e.Op {
	case trace.Start, trace.Timeout, trace.Receive:
		if rounds {
			t.end() // the effects are written, not the input
			return
		}
		t.came(e)
	case trace.Request:
		if rounds && t.Faulty.Has(e.At) {
			return // whatever its value, it sends anything
		}
		t.begin(e.At, name+" "+t.Does(e))
	case trace.Lose:
		t.loses(e)
	case trace.Restart:
		t.down.Remove(e.At)
		t.begin(e.At, name+" "+t.Does(e))
	case trace.Suspect, trace.Pause, trace.Resume:
		t.begin(e.At, name+" "+t.Does(e))
	case trace.Send:
		if rounds {
			t.round(e)
			return
		}
		t.sent(e)
	case trace.Deliver, trace.Indicate, trace.Append:
		t.addEffect(e)
	case trace.Crash:
		t.crash(e.At)
	}
}

// came begins the step of an input: a message, a timeout, or the start.
func (t *storyteller) came(e trace.Event) {
	name := t.Marked(e.At)
	switch e.Op {
	case trace.Start:
		t.begin(e.At, "")
		t.starts = true
	case trace.Timeout:
		t.begin(e.At, expires(e, name))
	default:
		text := fmt.Sprintf("%s receives %s from %s", name, t.arrived(e), t.Marked(e.Peer))
		if len(t.quiet) == 0 {
			t.end()
		}
		t.quiet, t.who = append(t.quiet, text), e.At
	}
}

// loses adds a message that does not arrive. A message to a process that is down is not lost.
func (t *storyteller) loses(e trace.Event) {
	if len(t.quiet) > 0 {
		t.end()
	}
	if t.down.Has(e.At) {
		return
	}
	t.lost = append(t.lost, fmt.Sprintf("%s from %s to %s is lost", t.arrived(e), t.Marked(e.Peer), t.Marked(e.At)))
}

// begin begins a line.
func (t *storyteller) begin(who parley.ID, text string) {
	t.end()
	t.begins, t.who = text, who
}

// sent adds a message to the current step.
func (t *storyteller) sent(e trace.Event) {
	t.ownLine()
	words := t.Message(parley.Env{From: e.At, To: e.Peer, Path: e.Path, Epoch: e.Epoch}, e.Msg)
	var to []parley.ID
	for id := range parley.ID(t.Protocol.N) {
		if id != e.At && (e.Peer == parley.All || e.Peer == id) {
			to = append(to, id)
		}
	}
	for i := range t.sends {
		if one := &t.sends[i]; one.from == e.At && one.words == words {
			one.to = append(one.to, to...)
			return
		}
	}
	t.sends = append(t.sends, groupedSend{e.At, words, to})
}

// addEffect adds an effect to the current step. The deliveries of a faulty process mean nothing.
func (t *storyteller) addEffect(e trace.Event) {
	if t.Faulty.Has(e.At) || t.starts && e.Op == trace.Append {
		return
	}
	t.ownLine()
	text := t.Does(e)
	if e.Op == trace.Append {
		text = durable(e.Msg.Body)
	}
	if e.At != t.who || t.begins == "" {
		text = t.Marked(e.At) + " " + text
	}
	t.effects = append(t.effects, text)
}

// ownLine gives the current step a line of its own, because it has an effect.
func (t *storyteller) ownLine() {
	if last := len(t.quiet) - 1; last >= 0 {
		begins := t.quiet[last]
		t.quiet = t.quiet[:last]
		t.end()
		t.begins = begins
	}
}

// crash adds that a process stops, to the current step if that is its own.
func (t *storyteller) crash(at parley.ID) {
	t.down.Add(at)
	if at == t.who && t.begins != "" {
		t.flushSends()
		t.effects = append(t.effects, "crashes")
	} else {
		t.begin(at, t.Marked(at)+" crashes")
	}
	t.end()
}

// flushSends puts the messages of the current step into words.
func (t *storyteller) flushSends() {
	for i, one := range t.sends {
		text := fmt.Sprintf("sends %s to %s", one.words, t.names(one.to))
		if one.from != t.who || t.begins == "" {
			if i == 0 || t.sends[i-1].from != one.from {
				text = t.Marked(one.from) + " " + text
			}
		}
		t.effects = append(t.effects, text)
	}
	t.sends = t.sends[:0]
}

// end ends the line of the current step.
func (t *storyteller) end() {
	if len(t.quiet) > 0 {
		t.line(strings.Join(t.quiet, "; "))
	}
	t.flushSends()
	switch comes := strings.Join(t.effects, "; "); {
	case t.begins != "" && comes != "":
		t.line(t.begins + ": " + comes)
	case t.begins != "" || comes != "":
		t.line(t.begins + comes)
	}
	t.begins, t.effects, t.quiet, t.starts = "", t.effects[:0], t.quiet[:0], false
	t.lines, t.lost = append(t.lines, t.lost...), t.lost[:0]
}

func (t *storyteller) line(text string) { t.lines = append(t.lines, text) }

// round adds everything that is sent in a round, at the first message of the round.
func (t *storyteller) round(e trace.Event) {
	number, _ := t.reader.roundOf(e)
	if t.written[number] {
		return
	}
	t.written[number] = true
	t.end()
	for _, r := range t.rounds {
		if r.Number != number {
			continue
		}
		title := cmp.Or(r.Title, fmt.Sprintf("round %d", number))
		for i := 0; i < len(r.Said); {
			from, parts := r.Said[i].From, []string(nil)
			for ; i < len(r.Said) && r.Said[i].From == from; i++ {
				parts = append(parts, t.said(r.Said[i])...)
			}
			if len(parts) > 0 {
				t.line(fmt.Sprintf("%s: %s sends %s", title, t.Marked(from), strings.Join(parts, ", ")))
			}
		}
	}
}

// said describes what one process sends to others in a round, and returns nothing if the only receiver is itself.
func (t *storyteller) said(s Said) []string {
	var to []parley.ID
	for _, id := range s.To {
		if id != s.From {
			to = append(to, id)
		}
	}
	if len(to) == 0 {
		return nil
	}
	words := strings.Join(s.Rows, " ")
	if left := s.Total - uint64(len(s.Rows)); left > 0 {
		words += fmt.Sprintf(" and %s more", prose.Number(left))
	}
	if s.Total == 0 {
		words = "nothing"
	}
	if s.Lie {
		words += " (a lie)"
	}
	return []string{words + " to " + t.names(to)}
}

// names lists processes in a sentence.
func (t *storyteller) names(ids []parley.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, t.Marked(id))
	}
	return prose.And(all)
}

// expires describes that a timer of a process expires.
func expires(e trace.Event, name string) string {
	if parley.Timer(e.Msg.Value) == parley.SpeakTimer {
		return "the time comes at which faulty processes send"
	}
	return fmt.Sprintf("%s of %s expires", timer(e), name)
}
