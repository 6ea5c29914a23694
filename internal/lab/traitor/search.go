package traitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/explore"
	"parley/explore/split"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/lists"
	"parley/internal/nearest"
	"parley/sim"
)

// Verdict is whether faulty processes can break a property, whatever they send.
type Verdict struct {
	Outcome     string `json:"outcome"`            // exhausted, found, budget hit or interrupted
	States      uint64 `json:"states"`             // visited
	Adversaries uint64 `json:"adversaries,string"` // complete runs, each with other lies; 0: not counted
	Property    string `json:"property,omitempty"` // that breaks
	Why         string `json:"why,omitempty"`
	Flag        string `json:"flag,omitempty"` // the flag faulty with the behaviors that break it
}

// mostSearch is the longest duration of a search.
const mostSearch = 10 * time.Minute

// Question is what a search is for.
type Question struct {
	Free     []string `json:"free"`     // the processes that send anything
	From     int      `json:"from"`     // the first round in which they do: before it they send what the run says
	Property string   `json:"property"` // empty: all properties
	Seconds  int      `json:"seconds"`
	// Split means to try the lies of the last round separately for each receiver, and no silence. In a protocol in
	// which silence counts as one of the values, this tries everything.
	Split bool `json:"split,omitempty"`
}

// Search tries everything that the free processes of a run can send, round by round. progress gets JSON objects.
func Search(ctx context.Context, m form.Run, q Question, progress func([]byte)) (Verdict, error) {
	known := lists.Of(m.Protocol.Properties, func(p parley.Property) string { return p.Name })
	switch {
	case q.Seconds < 1 || q.Seconds > int(mostSearch.Seconds()):
		return Verdict{}, fmt.Errorf("a search of %d seconds: allowed are 1 to %.0f", q.Seconds, mostSearch.Seconds())
	case !inRounds(m.Protocol):
		return Verdict{}, fmt.Errorf("%s has no rounds in which a process could lie", m.Protocol.Name)
	case m.Protocol.N > explore.MaxProcesses:
		return Verdict{}, parley.FlagErrorf("n", "%d processes: a search allows at most %d", m.Protocol.N,
			explore.MaxProcesses)
	case q.Property != "" && !slices.Contains(known, q.Property):
		return Verdict{}, fmt.Errorf("%s has no property %q: %s", m.Protocol.Name, q.Property,
			nearest.Names(q.Property, known))
	case m.Plan.Faults() > 0:
		return Verdict{}, errors.New("a search by rounds has no faults except lies: leave out the other faults of the run")
	}
	for id, how := range m.Faulty { // order: any of the errors will do
		if draws(how) {
			return Verdict{}, fmt.Errorf("%s has the behavior %s, which draws what it does: choose another behavior",
				m.Names.Full(id), how.Name)
		}
	}
	root, free := explore.Root{Faulty: maps.Clone(m.Faulty)}, faulty.Any
	if q.Split {
		free = explore.NeverSilent
	}
	for _, name := range q.Free {
		id, err := m.Names.Parse(name, m.Protocol.N)
		if err != nil {
			return Verdict{}, err
		}
		if kept := m.Faulty[id]; q.From > 0 && kept.Name != "" && kept.Choose == nil {
			return Verdict{}, fmt.Errorf("%s makes no moves that could be kept, with the behavior %s", name, kept.Name)
		}
		root.Faulty[id] = freeFrom(q.From, m.Faulty[id], free.Choose)
	}
	if len(root.Faulty) == m.Protocol.N {
		return Verdict{}, errors.New("all processes are faulty, and nothing is promised of any: leave at least one correct")
	}
	for _, r := range m.Options().Requests {
		root.Requests = append(root.Requests, explore.Request{At: r.At, Msg: r.Msg})
	}
	o := explore.Options{
		Protocol: m.Protocol, Roots: []explore.Root{root}, Step: explore.Rounds, Beyond: true, Workers: 1,
		Naming: m.Names.Full, Memory: 1 << 30, For: time.Duration(q.Seconds) * time.Second,
		Progress: func(p explore.Progress) {
			if report, err := json.Marshal(p); err == nil && progress != nil {
				progress(report)
			}
		},
	}
	if q.Property != "" {
		o.Only = []string{q.Property}
	}
	if q.Split {
		return searchSplit(ctx, m, o)
	}
	report, err := explore.Search(ctx, o)
	if err != nil {
		return Verdict{}, err
	}
	a := Verdict{Outcome: report.Outcome.String(), States: report.States, Adversaries: report.Runs}
	if len(report.Findings) == 0 {
		return a, nil
	}
	found := report.Findings[0]
	a.Property, a.Why = found.Property, found.Why
	a.Flag = movesOf(m, root, q.From, &found.Run)
	return a, nil
}

// chooser answers the choices of a behavior.
type chooser = func(s *parley.Step, t *parley.Turn, k, n int) int

// freeFrom returns the behavior of a process that answers by choose from a round on, and before it as kept does.
func freeFrom(round int, kept faulty.Behavior, choose chooser) faulty.Behavior {
	free := faulty.Any
	free.Choose = func(s *parley.Step, t *parley.Turn, k, n int) int {
		switch {
		case faulty.RoundOf(t) >= round:
			return choose(s, t, k, n)
		case kept.Choose == nil:
			return 0
		}
		return kept.Choose(s, t, k, n)
	}
	return free
}

// searchSplit makes a search whose last round is split.
func searchSplit(ctx context.Context, m form.Run, o explore.Options) (Verdict, error) {
	report, err := split.Search(ctx, o)
	if err != nil {
		return Verdict{}, err
	}
	a := Verdict{Outcome: report.Outcome.String(), States: report.Stages, Adversaries: report.Runs}
	if len(report.Findings) > 0 {
		found := report.Findings[0]
		a.Property, a.Why, a.Flag = found.Property, found.Why, movesOf(m, found.Liars, 0, nil)
	}
	return a, nil
}

// chooses reports whether a search chooses what a behavior does.
func chooses(how faulty.Behavior) bool {
	return how.Name == faulty.Any.Name || how.Name == explore.NeverSilent.Name
}

// draws reports whether a behavior draws what it does at random.
func draws(how faulty.Behavior) bool {
	return slices.Contains([]string{faulty.Random.Name, faulty.SendOmission.Name, faulty.ReceiveOmission.Name}, how.Name)
}

// movesOf returns the behaviors with which faulty processes act as in a run that a search found: it makes the run once
// more, with the same answers to their choices, and notes where each was given. If found is nil, the behaviors of the
// root give the answers. In a protocol with rounds what a process is asked does not depend on the speed of messages.
func movesOf(m form.Run, root explore.Root, from int, found *explore.Run) string {
	var answers []int
	if found != nil {
		for _, step := range found.Steps {
			answers = append(answers, step.Choices...)
		}
	}
	made := make(map[parley.ID][]faulty.Move)
	opt := m.Options()
	opt.Faulty = maps.Clone(root.Faulty)
	for id, how := range root.Faulty { // order: the iterations are independent
		if !chooses(how) {
			continue
		}
		given := how.Choose
		as := freeFrom(from, m.Faulty[id], func(s *parley.Step, t *parley.Turn, k, n int) (answer int) {
			switch {
			case found == nil:
				answer = given(s, t, k, n)
			case len(answers) > 0:
				answer, answers = min(answers[0], n-1), answers[1:]
			}
			return answer
		})
		how.Choose = func(s *parley.Step, t *parley.Turn, k, n int) int {
			answer := as.Choose(s, t, k, n)
			if answer > 0 {
				move := faulty.Move{Round: faulty.RoundOf(t), To: t.To, Choice: k, Answer: answer}
				made[id] = append(made[id], move)
			}
			return answer
		}
		opt.Faulty[id] = how
	}
	sim.Run(opt)
	var out []string
	for _, id := range slices.Sorted(maps.Keys(root.Faulty)) {
		name := root.Faulty[id].Name
		if chooses(root.Faulty[id]) {
			name = faulty.Moves(made[id]...).Name
		}
		out = append(out, m.Names.Bare(id)+"="+name)
	}
	return strings.Join(out, ",")
}
