package exploration

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/explore"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/trace"
)

// moveName names a transition by what happens. Links contain these names for years, so no name ever changes its
// meaning. cause is the event that sent the message, as the run so far numbers its events.
//
//	e7-P2          P2 receives the message that event 7 sent
//	e7-P2-lost     the link loses it
//	e7-P2-twice    P2 receives it, and it will arrive once more
//	P2-request     P2 gets its next request
//	P2-timer3      timer 3 of P2 expires
//	P2-crash, P2-restart, P2-restart-empty (without the durable state), P2-start
//	P2-suspects-P3, P2-suspects-P3-wrongly
//
// Two things may follow: :1.0, the answers that a liar chooses, of which 0 is the honest one; and !2, if the process
// crashes after two effects of the step.
func moveName(s *explore.Step, cause uint64) string {
	at := scene.Process(s.At)
	about := scene.Event(cause) + "-" + at
	if cause == 0 { // the message was in flight from the beginning
		about = scene.Process(s.Of) + "-" + at
	}
	name := ""
	switch s.Kind {
	case explore.OnDelivery:
		name = about
	case explore.OnLoss:
		name = about + "-lost"
	case explore.OnDuplicate:
		name = about + "-twice"
	case explore.OnRequest:
		name = at + "-request"
	case explore.OnTimeout:
		name = at + "-timer" + strconv.FormatUint(uint64(s.Timer), 10)
		if s.Path != 0 {
			name += "/" + strconv.FormatUint(uint64(s.Path), 16)
		}
	case explore.OnCrash:
		name = at + "-crash"
	case explore.OnRestart:
		name = at + "-restart"
	case explore.OnLostDisk:
		name = at + "-restart-empty"
	case explore.OnSuspicion:
		name = at + "-suspects-" + scene.Process(s.Of)
	case explore.OnFalseSuspicion:
		name = at + "-suspects-" + scene.Process(s.Of) + "-wrongly"
	case explore.OnStart:
		name = at + "-start"
	}
	for i, c := range s.Choices {
		name += string(":."[min(i, 1)]) + strconv.Itoa(c)
	}
	if s.Crashed {
		name += "!" + strconv.Itoa(len(s.Effects))
	}
	return name
}

// moveNames names the transitions that are possible in one state. If two messages are equal, the one that is due
// later has ~2 after the name.
func (g *guide) moveNames(steps []explore.Step) []string {
	names := make([]string, len(steps))
	same := make(map[string][]int)
	for i := range steps {
		names[i] = moveName(&steps[i], g.rec.Cause(&steps[i]))
		same[names[i]] = append(same[names[i]], i)
	}
	for _, is := range same { // order: each changes other names
		slices.SortFunc(is, func(a, b int) int { return cmp.Compare(steps[a].Due, steps[b].Due) })
		for nth, i := range is[1:] {
			names[i] += "~" + strconv.Itoa(nth+2)
		}
	}
	return names
}

// beginMove names a way in which processes start by the steps in which a process chooses or crashes.
func (g *guide) beginMove(steps []explore.Step) Move {
	var names, says []string
	for i := range steps {
		if s := &steps[i]; len(s.Choices) > 0 || s.Crashed {
			names, says = append(names, moveName(s, 0)), append(says, inWords(g.words, *s))
		}
	}
	if len(names) == 0 {
		return Move{"start", "the processes start"}
	}
	return Move{strings.Join(names, ";"), strings.Join(says, "; ")}
}

// rootMove names an initial state by its faulty processes and its proposals.
func (g *guide) rootMove(number int) Move {
	s := g.s
	r := s.options.Roots[number]
	var names, faulty, says []string
	for id := range parley.ID(s.protocol.N) {
		if _, is := r.Faulty[id]; is {
			names, faulty = append(names, scene.Process(id)+"-faulty"), append(faulty, s.names.Full(id))
		}
	}
	switch len(faulty) {
	case 0:
		says = append(says, "no process is faulty")
	case 1:
		says = append(says, faulty[0]+" is faulty")
	default:
		says = append(says, strings.Join(faulty, ", ")+" are faulty")
	}
	for _, q := range r.Requests {
		if q.Msg.Kind == parley.Propose {
			names = append(names, scene.Process(q.At)+":"+url.QueryEscape(string(q.Msg.Body)))
			says = append(says, s.names.Full(q.At)+" proposes "+parley.Printable(q.Msg.Body))
		}
	}
	return Move{strings.Join(names, ";"), strings.Join(says, ", ")}
}

// breaks returns the properties that a possible transition breaks and that have held so far.
func (g *guide) breaks(w *Walked, next *explore.Step) []string {
	broken := []string{}
	one := explore.NewRecorder(true)
	one.Add(next)
	events := slices.Clip(w.Log.Events)
	for _, e := range one.Log.Events {
		e.ID = uint64(len(events) + 1)
		events = append(events, e)
	}
	steps := append(slices.Clip(w.Run.finding.Run.Steps), *next)
	h := g.history(events, steps)
	for i, p := range g.s.protocol.Properties {
		if p.Mode == parley.Always && w.Properties[i].Breaks < 0 && p.Check(h) != nil {
			broken = append(broken, p.Name)
		}
	}
	return broken
}

// history returns the history of a part of a run, in which more is due.
func (g *guide) history(events []trace.Event, steps []explore.Step) *parley.History {
	h := (&trace.Log{Events: events}).History(trace.Header{N: g.s.protocol.N})
	h.Faulty, h.Naming = g.down(steps), g.s.names.Full
	return h
}

// properties follows each property through a walk.
func (g *guide) properties(w *Walked) []Followed {
	steps := w.Run.finding.Run.Steps
	begun := len(steps) - (len(w.Taken) - g.before()) + 1 // with the first move that takes a transition
	all := []Followed{}
	for _, v := range w.Run.report.Judged {
		p := v.Property
		f := Followed{
			Property: p.Name, Says: p.Says, AtEnd: p.Mode == parley.Eventually, Seen: p.Mode == parley.Sometimes,
			Breaks: -1, Outcome: v.Outcome(),
		}
		if v.Broken != nil {
			f.Why = v.Broken.Error()
		}
		if f.AtEnd && w.Over && v.Broken != nil {
			f.Breaks = len(w.Taken) - 1
		}
		all = append(all, f)
	}
	for i := g.before(); i < len(w.Taken); i++ {
		h := g.history(w.Log.Events[:w.Taken[i].Events], steps[:begun+i-g.before()])
		for k, p := range g.s.protocol.Properties {
			if f := &all[k]; !f.AtEnd && f.Breaks < 0 && (p.Check(h) == nil) == f.Seen {
				f.Breaks = i
			}
		}
	}
	return all
}

// before returns how many moves of a walk come before the start of the processes.
func (g *guide) before() int { return min(len(g.s.options.Roots)-1, 1) }

// inWords describes a transition: what happens to a process, and what it does then.
func inWords(w reading.Words, step explore.Step) string {
	one := explore.Run{Steps: []explore.Step{step}}
	var parts []string
	for i, e := range one.Log(true).Events {
		text := strings.TrimSpace(w.Event(e))
		if name := w.Called(e.At); i > 0 {
			_, text, _ = strings.Cut(text, name+" ")
		} else if at := strings.Index(text, name+" "); at >= 0 {
			text = text[at:]
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
