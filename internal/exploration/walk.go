package exploration

import (
	"context"
	"strings"

	"parley/explore"
	"parley/internal/draw/reading"
	"parley/trace"
)

// Walked is where a run is after some of its transitions, for a reader who takes them one by one.
type Walked struct {
	Over   bool     // nothing more is due
	Roots  int      // the number of initial states of the search
	Begins int      // the ways in which the chosen initial state can begin
	Taken  []string // the transitions so far, in words
	Next   []string // those that are possible now, or the first of them
	More   int      // the number of others
	Broken []string // the properties that the run breaks, with what breaks them

	Header trace.Header
	Log    *trace.Log
}

// Walk begins in an initial state of a search, and takes the transitions with the given numbers. A number is an index
// in the Next of the place before.
func Walk(ctx context.Context, s *Search, root, begin int, numbers []int) (*Walked, error) {
	at, err := explore.Follow(ctx, s.options, root, begin, numbers)
	if err != nil {
		return nil, err
	}
	found := &explore.Finding{Run: at.Run, Over: at.Over}
	f := s.counterexample(found)
	w := &Walked{
		Over: at.Over, Roots: len(s.options.Roots), Begins: at.Begins, More: at.More,
		Taken: []string{}, Next: []string{}, Broken: []string{}, Header: f.Header, Log: f.Log,
	}
	words := reading.Words{Style: f.Run.Style(1 << 12), Protocol: s.protocol}
	for i := range at.Run.Steps {
		w.Taken = append(w.Taken, inWords(words, at.Run.Steps[i]))
	}
	for _, step := range at.Next {
		w.Next = append(w.Next, inWords(words, step))
	}
	for _, v := range f.report.Judged {
		if v.Broken != nil {
			w.Broken = append(w.Broken, v.Property.Name+": "+v.Broken.Error())
		}
	}
	return w, nil
}

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
