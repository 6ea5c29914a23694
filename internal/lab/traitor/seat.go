// Package traitor lets the user of the web page of "parley lab" act as a faulty process (a traitor). It lists the
// messages that the process can send at each turn. It also computes whether any of these messages can lead to a
// violation of a property. The levels of a game on the page use both.
package traitor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/faulty"
	"parley/internal/form"
	"parley/sim"
)

// Menu is what a faulty process can send, turn by turn, if it makes the moves of its
// behavior and is honest otherwise.
type Menu struct {
	Turns []Turn `json:"turns"` // in the order in which it sends
}

// Turn is what a faulty process sends to one receiver in one round.
type Turn struct {
	Round   int      `json:"round"`
	To      string   `json:"to"`
	Honest  string   `json:"honest"` // what an honest process would send
	Says    string   `json:"says"`   // what it sends
	Choices []Choose `json:"choices"`
	// More is the number of choices that are left out, because a turn has too many.
	More int `json:"more"`
}

// Choose is one choice of a turn.
type Choose struct {
	Choice  int      `json:"choice"`
	Answer  int      `json:"answer"` // the present one
	Options []Option `json:"options"`
}

// Option is one answer to a choice. Options that send the same are one.
type Option struct {
	Answer int    `json:"answer"`
	Move   string `json:"move"` // the behavior's move that gives this answer
	Says   string `json:"says"` // what it sends that other options do not
	Honest bool   `json:"honest"`
	Silent bool   `json:"silent"`
}

// mostChoices is the largest number of choices of a turn that are offered one by one.
const mostChoices = 40

// mostOptions is the largest number of answers to a choice that are offered.
const mostOptions = 64

// Seat makes the run of a process that tries, at each turn, what else it could send.
func Seat(r form.Run, of string) (Menu, error) {
	id, err := r.Names.Parse(of, r.Protocol.N)
	if err != nil {
		return Menu{}, err
	}
	how, lies := r.Faulty[id]
	switch {
	case !lies || how.Choose == nil:
		return Menu{}, fmt.Errorf("%s has no choices: use the behavior \"moves:\"", of)
	case !inRounds(r.Protocol):
		return Menu{}, fmt.Errorf("%s has no rounds in which %s could choose", r.Protocol.Name, of)
	}
	at := seat{Run: r, id: id, how: how}
	opt := r.Options()
	opt.Faulty = maps.Clone(r.Faulty)
	trying := how
	trying.Choose, trying.Tell = nil, at.tell
	opt.Faulty[id] = trying
	sim.Run(opt)
	return Menu{append([]Turn{}, at.turns...)}, nil
}

// inRounds reports whether the faulty processes of a protocol choose what they send in rounds that all begin together.
func inRounds(p parley.Protocol) bool {
	return p.Timing == parley.Synchronous && !p.OnDemand && p.Lies != nil
}

// seat tries the options of one faulty process.
type seat struct {
	form.Run
	id    parley.ID
	how   faulty.Behavior
	turns []Turn
}

// tell is the process's turn: it records the options, and sends what the behavior chooses.
func (p *seat) tell(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	round := faulty.RoundOf(t)
	turn := Turn{Round: round, To: p.Names.Full(t.To), Choices: []Choose{}}
	turn.Honest = said(p.rows(t, t.Honest))
	chosen, asked := p.lie(s, t, func(k, n int) int { return p.how.Choose(s, t, k, n) })
	turn.Says = said(p.rows(t, chosen))
	for k := range asked[:min(len(asked), mostChoices)] {
		c := Choose{Choice: k, Answer: asked[k].answer}
		var sent [][]parley.Outgoing
		var all [][]string
		for answer := range min(asked[k].among, mostOptions) {
			out, _ := p.lie(s, t, func(other, n int) int {
				switch {
				case other == k:
					return answer
				case other < len(asked): // as before: a behavior that draws must not draw again
					return min(asked[other].answer, n-1)
				}
				return 0
			})
			if same := slices.IndexFunc(sent, func(known []parley.Outgoing) bool {
				return slices.EqualFunc(known, out, parley.Outgoing.Equal)
			}); same >= 0 {
				if answer == c.Answer {
					c.Answer = c.Options[same].Answer
				}
				continue
			}
			sent, all = append(sent, out), append(all, p.rows(t, out))
			c.Options = append(c.Options, Option{
				Answer: answer, Honest: answer == 0, Silent: answer == asked[k].among-1,
				Move: faulty.Move{Round: round, To: t.To, Choice: k, Answer: answer}.String(),
			})
		}
		for i := range c.Options {
			mine := own(all, i)
			if c.Options[i].Says = said(mine); len(mine) == 0 && len(all[i]) > 0 {
				c.Options[i].Says = "the same text, in other bytes"
			}
		}
		turn.Choices = append(turn.Choices, c)
	}
	turn.More = max(0, len(asked)-mostChoices)
	p.turns = append(p.turns, turn)
	return chosen
}

// choice is what a turn asks for: the number of answers, and the one that it got.
type choice struct{ among, answer int }

// lie returns what the protocol's lies send if choose answers their choices, and those choices.
func (p *seat) lie(s *parley.Step, t *parley.Turn, choose func(k, n int) int) ([]parley.Outgoing, []choice) {
	host := &answering{Host: s.Host, step: s, choose: choose}
	again := *t
	again.Honest, again.Out = slices.Clone(t.Honest), nil // lies may overwrite both
	s.Host = host
	out := p.Protocol.Lies(s, &again)
	s.Host = host.Host
	return slices.Clone(out), host.asked
}

// answering is a host that lets a function answer the choices of a step. The real host answers the choices of the
// function.
type answering struct {
	parley.Host
	step   *parley.Step
	choose func(k, n int) int
	asked  []choice
}

// Choose passes the choice on.
func (a *answering) Choose(n int) int {
	asking := a.step.Host
	a.step.Host = a.Host
	answer := a.choose(len(a.asked), n)
	a.step.Host = asking
	a.asked = append(a.asked, choice{n, answer})
	return answer
}

// rows describes what is sent in a turn.
func (p *seat) rows(t *parley.Turn, out []parley.Outgoing) (rows []string) {
	for _, o := range out {
		e := parley.Env{From: p.id, To: t.To, Path: o.Path, Epoch: o.Epoch}
		for row := range p.Protocol.Explain(e, o.Msg, p.Names.Bare) {
			rows = append(rows, row)
		}
	}
	return rows
}

// own returns the rows of one option that some other option does not have.
func own(all [][]string, i int) []string {
	return slices.DeleteFunc(slices.Clone(all[i]), func(row string) bool {
		return !slices.ContainsFunc(all, func(rows []string) bool { return !slices.Contains(rows, row) })
	})
}

// said joins rows.
func said(rows []string) string {
	if len(rows) == 0 {
		return "nothing"
	}
	return strings.Join(rows, " ")
}
