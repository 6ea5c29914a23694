package exploration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/explore"
	"parley/explore/split"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/lists"
)

// Pairing is the result of a search for indistinguishable runs.
type Pairing struct {
	*Search
	Outcome explore.Outcome
	Verdict string
	// Drawn is the argument, for drawing, if there is one.
	Drawn *reading.Pairs
	pairs []split.Pair
	cases []*split.Case
}

// Pairs searches for runs that look the same to a process that must decide differently in them. It writes the argument
// in a style.
func Pairs(ctx context.Context, s *Search, style reading.Style, progress func(explore.Progress)) (*Pairing, error) {
	s.options.Progress = progress
	found, err := split.Indistinguishable(ctx, s.options)
	e := &Pairing{Search: s, pairs: found}
	switch {
	case errors.Is(err, split.ErrUnfinished):
		e.Outcome = explore.BudgetHit
		e.Verdict = "budget hit: not proven: " + err.Error() + "; to visit fewer states: " + strings.Join(s.ways(), "; ")
		if ctx.Err() != nil {
			e.Outcome, e.Verdict = explore.Interrupted, "interrupted: not proven"
		}
	case err != nil:
		return nil, parley.FlagErrorf("indistinguishable", "%w", err)
	case found == nil:
		e.Outcome = explore.Exhausted
		e.Verdict = "exhausted: there is no such argument. It would be a chain of runs: a correct process cannot tell each " +
			"run from the next, the first run forces one decision, and the last run forces another."
	default:
		e.Outcome = explore.Found
		style.Name = s.names.Full
		e.argue(style)
	}
	return e, nil
}

// About describes the explored system, and why its size may allow such an argument.
func (e *Pairing) About() []string {
	p, lie, size := e.protocol, len(e.begins.liars[0]), ""
	switch {
	case p.Bound != nil && p.Bound(p.N, p.M) != nil:
		size = ": " + p.Bound(p.N, p.M).Error()
	case lie > p.M && p.Bound != nil && p.Bound(p.N, lie) != nil:
		size = ": " + p.Bound(p.N, lie).Error()
	case lie > p.M && p.Cost != nil:
		rounds := prose.Count(uint64(p.Cost(p.N, p.M).Rounds), "round", "rounds")
		size = fmt.Sprintf(": %s, where %s has %d for m = %d", rounds, p.Name, p.Cost(p.N, lie).Rounds, lie)
	}
	return e.head(size)
}

// caseNumbers are the numbers of cases in words, as in the lecture.
var caseNumbers = []string{"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}

// nth returns the name of a case.
func nth(i int) string {
	if i < len(caseNumbers) {
		return "case " + caseNumbers[i]
	}
	return "case " + strconv.Itoa(i+1)
}

// argue writes the argument in words.
func (e *Pairing) argue(style reading.Style) {
	e.cases = []*split.Case{e.pairs[0].One}
	for i := range e.pairs {
		e.cases = append(e.cases, e.pairs[i].Other)
	}
	head := e.About()
	e.Drawn = &reading.Pairs{
		Style: style,
		Title: head[0], Subtitle: strings.Join(head[1:], "\n"),
	}
	for i, pair := range e.pairs {
		e.Drawn.Pairs = append(e.Drawn.Pairs, reading.Pair{
			Same: pair.Same, Must: e.must(i), Cases: [2]reading.Case{e.drawnCase(i), e.drawnCase(i + 1)},
		})
	}
	e.Verdict = e.conclusion()
	e.Drawn.End = e.Verdict + "\n" + e.inFact()
}

// drawnCase returns a case for drawing.
func (e *Pairing) drawnCase(i int) reading.Case {
	c := e.cases[i]
	title := nth(i)
	return reading.Case{
		Title: strings.ToUpper(title[:1]) + title[1:], Faulty: c.Faulty, Events: c.Run.Log(true).Events,
		Lies: lists.Of(c.Lies, func(lie split.Lie) reading.Lie {
			return reading.Lie{Round: lie.Round, From: lie.From, To: lie.To, Instead: lie.Honest}
		}),
	}
}

// value returns what the process of a pair must decide according to the argument: the value that the first run
// forces, and in the last pair the value that the last run forces.
func (e *Pairing) value(i int) string {
	f := e.pairs[0].One.Forced[e.pairs[0].Same]
	if i > 0 && i == len(e.pairs)-1 {
		f = e.pairs[i].Other.Forced[e.pairs[i].Same]
	}
	return parley.Printable(f.Value)
}

// says returns the statement of a property.
func (e *Pairing) says(property string) string {
	for _, p := range e.protocol.Properties {
		if p.Name == property {
			return p.Says
		}
	}
	return property
}

// must says what the process of a pair must decide in both runs, and why.
func (e *Pairing) must(i int) (out [2]string) {
	pair, name, value := e.pairs[i], e.names.Full(e.pairs[i].Same), e.value(i)
	forced := func(c *split.Case) string {
		f := c.Forced[pair.Same]
		return fmt.Sprintf("%s must decide %s, by %s: %s.", name, parley.Printable(f.Value), f.By, e.says(f.By))
	}
	same := func(in int) string {
		return fmt.Sprintf("%s cannot tell this from %s. So it must decide %s here too.", name, nth(in), value)
	}
	switch last := len(e.pairs) - 1; {
	case last == 0: // it must decide two values at once
		return [2]string{forced(pair.One), forced(pair.Other)}
	case i == 0:
		return [2]string{forced(pair.One), same(0)}
	case i == last:
		return [2]string{same(i + 1), forced(pair.Other)}
	}
	before, binds := e.names.Full(e.pairs[i-1].Same), pair.One.Binds
	return [2]string{
		fmt.Sprintf("%s must decide %s here, and so must %s, by %s: %s.", before, value, name, binds, e.says(binds)), same(i),
	}
}

// conclusion says what breaks.
func (e *Pairing) conclusion() string {
	last := len(e.pairs) - 1
	first, end := e.pairs[0].One.Forced[e.pairs[0].Same], e.pairs[last].Other.Forced[e.pairs[last].Same]
	if last == 0 {
		return fmt.Sprintf("%s would have to decide both. So whatever its rule of decision is, "+
			"%s breaks in case one, or %s in case two.", e.names.Full(e.pairs[0].Same), first.By, end.By)
	}
	one, other := e.names.Full(e.pairs[last-1].Same), e.names.Full(e.pairs[last].Same)
	middle := e.cases[last]
	text := fmt.Sprintf("So in %s, %s would have to decide %s, and %s would have to decide %s. That breaks %s, "+
		"which demands: %s. ", nth(last), one, e.value(last-1), other, e.value(last), middle.Binds, e.says(middle.Binds))
	number := func(i int) string { return strings.TrimPrefix(nth(i), "case ") }
	between := nth(1)
	switch {
	case last == 2:
		between += " or " + number(2)
	case last > 2:
		between = "one of the cases " + number(1) + " to " + number(last)
	}
	return text + fmt.Sprintf("Whatever the rule of decision is, "+
		"%s breaks in %s, %s in %s, or %s in %s.", first.By, nth(0), middle.Binds, between, end.By, nth(last+1))
}

// inFact says what the machines decide, and what that breaks.
func (e *Pairing) inFact() string {
	var out []string
	for i, c := range e.cases {
		h := *c.History
		h.Naming = e.names.Full
		for _, p := range e.protocol.Properties {
			if p.Mode == parley.Sometimes {
				continue
			}
			if err := p.Check(&h); err != nil {
				out = append(out, fmt.Sprintf("%s in %s (%v)", p.Name, nth(i), err))
			}
		}
	}
	return fmt.Sprintf("The rule of %s breaks %s.", e.protocol.Name, strings.Join(out, ", and "))
}

// PairsOutput is a Pairing, as "parley explore --indistinguishable --json" prints it.
type PairsOutput struct {
	Protocol string    `json:"protocol"`
	N        int       `json:"n"`
	M        int       `json:"m"`
	Model    []string  `json:"model"`
	Outcome  string    `json:"outcome"`
	Verdict  string    `json:"verdict"`
	Cases    []oneCase `json:"cases"`
	Pairs    []onePair `json:"pairs"`
}

type oneCase struct {
	Title    string            `json:"title"`
	Faulty   []string          `json:"faulty"`
	About    string            `json:"about"`
	Messages []string          `json:"messages"`
	Decides  map[string]string `json:"decides"`
}

type onePair struct {
	Same  string    `json:"same_to"`
	Cases [2]string `json:"cases"`
	Sees  []string  `json:"sees"`
	Must  [2]string `json:"must"`
}

// Output returns the result for programs.
func (e *Pairing) Output() PairsOutput {
	out := PairsOutput{
		e.protocol.Name, e.protocol.N, e.protocol.M, e.About(), e.Outcome.String(), e.Verdict, []oneCase{}, []onePair{},
	}
	if e.Drawn == nil {
		return out
	}
	for i, pair := range e.Drawn.Pairs {
		words := e.Drawn.Words(e.protocol, i)
		for k, c := range pair.Cases {
			if k == 0 && i > 0 {
				continue
			}
			one := oneCase{Title: c.Title, Faulty: e.names.List(c.Faulty), About: words[k].About,
				Messages: words[k].Messages, Decides: make(map[string]string)}
			for id, v := range problem.Decisions(e.cases[i+k].History) {
				one.Decides[e.names.Full(id)] = parley.Printable(v)
			}
			out.Cases = append(out.Cases, one)
		}
		titles := [2]string{pair.Cases[0].Title, pair.Cases[1].Title}
		out.Pairs = append(out.Pairs, onePair{e.names.Full(pair.Same), titles, words[0].Sees, pair.Must})
	}
	return out
}
