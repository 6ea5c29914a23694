package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"parley/internal/exploration"
	"parley/trace"
)

// WalkAnswer is the answer to "walk": where a run is after some moves, and which are possible now.
type WalkAnswer struct {
	Stage      string                 `json:"stage"`             // what the next move chooses: root, begin, or move
	Refused    string                 `json:"refused,omitempty"` // the move that is not possible: the walk ends before it
	Over       bool                   `json:"over"`
	Taken      []exploration.Taken    `json:"taken"`
	Next       []exploration.Possible `json:"next"`
	More       int                    `json:"more"` // the number of other moves, which are not offered
	Properties []exploration.Followed `json:"properties"`
	Broken     []string               `json:"broken"`
	Trace      string                 `json:"trace,omitempty"` // the run so far, as a file; empty before it begins
}

// walkQuestion has the names of the moves so far.
type walkQuestion struct {
	aboutModel
	Moves []string `json:"moves"`
}

// mostMoves is the largest number of moves of a walk.
const mostMoves = 2000

// walking answers where a run is after some moves.
func walking(ctx context.Context, e *Engine, b []byte, _ func([]byte)) (any, error) {
	var q struct {
		walkQuestion
		On bool `json:"on"` // continue until there is a choice
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	s, err := q.search(e)
	if err != nil {
		return nil, err
	}
	w, err := exploration.Walk(ctx, s, q.Moves, q.On)
	if err != nil {
		return nil, err
	}
	a := WalkAnswer{
		Stage: w.Stage, Refused: w.Refused, Over: w.Over, Taken: w.Taken, Next: w.Next, More: w.More,
		Properties: w.Properties, Broken: w.Broken,
	}
	if w.Log != nil {
		a.Trace, err = traceText(w)
	}
	return a, err
}

// search returns the search of a question whose moves are not too many.
func (q *walkQuestion) search(e *Engine) (*exploration.Search, error) {
	if len(q.Moves) > mostMoves {
		return nil, fmt.Errorf("%d moves: at most %d are allowed", len(q.Moves), mostMoves)
	}
	_, s, err := q.Model.search(e.protocols)
	return s, err
}

func traceText(w *exploration.Walked) (string, error) {
	var text bytes.Buffer
	err := trace.Write(&text, w.Header, w.Log)
	return text.String(), err
}

// SampleAnswer is the answer to "samples": runs that continue a walk at random.
type SampleAnswer struct {
	Runs []Sampled `json:"runs"`
}

// Sampled is a run that continues a walk at random.
type Sampled struct {
	Moves   []string  `json:"moves"` // from the beginning, with those of the walk
	Over    bool      `json:"over"`  // it ended; otherwise it has the most moves
	Broken  []string  `json:"broken"`
	Decides []Outcome `json:"decides"` // of the correct processes
	Trace   string    `json:"trace"`
}

// Outcome is what a process decides.
type Outcome struct {
	Name    string `json:"name"`
	Decides string `json:"decides"` // empty: nothing
}

const (
	mostSampled   = 20
	longestSample = 600 // moves
)

// sampling answers how a walk could continue.
func sampling(ctx context.Context, e *Engine, b []byte, _ func([]byte)) (any, error) {
	var q struct {
		walkQuestion
		Count int    `json:"count"`
		Seed  uint64 `json:"seed"`
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	if q.Count < 1 || q.Count > mostSampled {
		return nil, fmt.Errorf("%d runs: 1 to %d are allowed", q.Count, mostSampled)
	}
	s, err := q.search(e)
	if err != nil {
		return nil, err
	}
	a := SampleAnswer{Runs: []Sampled{}}
	for k := range q.Count {
		random := rand.New(rand.NewPCG(q.Seed, uint64(k)))
		w, err := exploration.Sample(ctx, s, q.Moves, random, max(longestSample, len(q.Moves)))
		if err != nil {
			return nil, err
		}
		if w.Refused != "" {
			return nil, errors.New(w.Refused)
		}
		one := Sampled{Moves: []string{}, Over: w.Over, Broken: w.Broken, Decides: []Outcome{}}
		for _, t := range w.Taken {
			if t.Name != "" {
				one.Moves = append(one.Moves, t.Name)
			}
		}
		for _, d := range w.Run.Decisions() {
			one.Decides = append(one.Decides, Outcome(d))
		}
		if one.Trace, err = traceText(w); err != nil {
			return nil, err
		}
		a.Runs = append(a.Runs, one)
	}
	return a, nil
}
