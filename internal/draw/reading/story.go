package reading

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Story tells a run in words, a line for each thing that happens. Where there are rounds
// a line has what one process tells the others in one of them. Elsewhere a line is a step
// of a process, with what comes of it; steps of which nothing comes but that something
// arrived share a line. Faulty processes are marked, and lines are as long as they are.
func Story(p parley.Protocol, events []trace.Event, s Style) []string {
	t := storyteller{Words: Words{s, p}, told: make(map[int]bool)}
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

// storyRows is how many rows of one message are told.
const storyRows = 8

// storyteller is a story in the making.
type storyteller struct {
	Words
	lines []string

	// The step that is being told: whose it is, how it begins, and what comes of it.
	who    parley.ID
	begins string
	comes  []string
	sends  []groupedSend // at the end of comes
	quiet  []string      // the steps before it, of which nothing came, and itself as long as it is one
	starts bool          // it is the beginning, of which what is made durable is not told
	lost   []string      // what links lost since it began: that is told after it

	down   parley.Set
	rounds []Round
	reader reader
	told   map[int]bool // rounds
}

// groupedSend is one content of messages, and to whom one process sent it.
type groupedSend struct {
	from  parley.ID
	words string
	to    []parley.ID
}

// event takes in what happened.
func (t *storyteller) event(e trace.Event) {
	rounds := t.Protocol.Timing == parley.Synchronous
	name := t.Marked(e.At)
	switch e.Op {
	case trace.Start, trace.Timeout, trace.Receive:
		if rounds {
			t.end() // what comes of it is told, and not that it came
			return
		}
		t.came(e)
	case trace.Request:
		if rounds && t.Faulty.Has(e.At) {
			return // whatever it was given, it says what it likes
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
		t.comesOf(e)
	case trace.Crash:
		t.crash(e.At)
	}
}

// came begins the step of what came by itself: a message, a timeout, the beginning.
func (t *storyteller) came(e trace.Event) {
	name := t.Marked(e.At)
	switch e.Op {
	case trace.Start:
		t.begin(e.At, "")
		t.starts = true
	case trace.Timeout:
		t.begin(e.At, fmt.Sprintf("timer %d of %s runs out", e.Msg.Value, name))
	default:
		text := fmt.Sprintf("%s receives %s from %s", name, t.arrived(e), t.Marked(e.Peer))
		if len(t.quiet) == 0 {
			t.end()
		}
		t.quiet, t.who = append(t.quiet, text), e.At
	}
}

// loses tells of a message that does not arrive. That nobody hears who is down is no loss.
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

// sent adds to whom a step says what.
func (t *storyteller) sent(e trace.Event) {
	t.heed()
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

// comesOf adds what a step comes to. What a faulty process makes of it means nothing.
func (t *storyteller) comesOf(e trace.Event) {
	if t.Faulty.Has(e.At) || t.starts && e.Op == trace.Append {
		return
	}
	t.heed()
	text := t.Does(e)
	if e.Op == trace.Append {
		text = durable(e.Msg.Body)
	}
	if e.At != t.who || t.begins == "" {
		text = t.Marked(e.At) + " " + text
	}
	t.comes = append(t.comes, text)
}

// heed gives a step a line of its own, for something comes of it.
func (t *storyteller) heed() {
	if last := len(t.quiet) - 1; last >= 0 {
		begins := t.quiet[last]
		t.quiet = t.quiet[:last]
		t.end()
		t.begins = begins
	}
}

// crash tells that a process stops, in the step that is being told if that is its own.
func (t *storyteller) crash(at parley.ID) {
	t.down.Add(at)
	if at == t.who && t.begins != "" {
		t.flushSends()
		t.comes = append(t.comes, "crashes")
	} else {
		t.begin(at, t.Marked(at)+" crashes")
	}
	t.end()
}

// flushSends puts into words what is sent in the present step.
func (t *storyteller) flushSends() {
	for i, one := range t.sends {
		text := fmt.Sprintf("tells %s %s", t.names(one.to), one.words)
		if one.from != t.who || t.begins == "" {
			if i == 0 || t.sends[i-1].from != one.from {
				text = t.Marked(one.from) + " " + text
			}
		}
		t.comes = append(t.comes, text)
	}
	t.sends = t.sends[:0]
}

// end ends the line of the present step.
func (t *storyteller) end() {
	if len(t.quiet) > 0 {
		t.line(strings.Join(t.quiet, "; "))
	}
	t.flushSends()
	switch comes := strings.Join(t.comes, "; "); {
	case t.begins != "" && comes != "":
		t.line(t.begins + ": " + comes)
	case t.begins != "" || comes != "":
		t.line(t.begins + comes)
	}
	t.begins, t.comes, t.quiet, t.starts = "", t.comes[:0], t.quiet[:0], false
	t.lines, t.lost = append(t.lines, t.lost...), t.lost[:0]
}

func (t *storyteller) line(text string) { t.lines = append(t.lines, text) }

// round tells, at its first message, all that is said in a round.
func (t *storyteller) round(e trace.Event) {
	number, _ := t.reader.roundOf(e)
	if t.told[number] {
		return
	}
	t.told[number] = true
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
				t.line(fmt.Sprintf("%s: %s tells %s", title, t.Marked(from), prose.And(parts)))
			}
		}
	}
}

// said is what one process tells some others in a round; nothing if that is itself.
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
	return []string{t.names(to) + " " + words}
}

// names processes in a sentence.
func (t *storyteller) names(ids []parley.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, t.Marked(id))
	}
	return prose.And(all)
}
