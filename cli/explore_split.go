package cli

import (
	"context"
	"fmt"

	"parley/explore"
	"parley/internal/draw"
)

// split is "parley explore PROTOCOL --step split": a search by rounds of which the last one
// is split by receiver. What it found out stands as in any search, as far as it has that.
func split(ctx context.Context, o explore.Options) (explore.Report, *explore.SplitReport, error) {
	of, err := explore.SplitLast(ctx, o)
	if err != nil {
		return explore.Report{}, nil, err
	}
	r := explore.Report{Outcome: of.Outcome, Runs: of.Runs, Ends: of.Histories, Limit: of.Limit, Judged: of.Judged}
	r.States, r.Moves, r.Took = of.Stages, of.Evaluations, of.Took
	for i := range of.Findings {
		r.Findings = append(r.Findings, of.Findings[i].Finding)
	}
	return r, &of, nil
}

// countedSplit says what such a search came across.
func (e *explored) countedSplit() []string {
	r := e.split
	who := draw.Count(r.Runs, "adversary", "adversaries")
	if e.options.All {
		who += ", of which " + draw.Number(r.Broken) + " break something"
	}
	return []string{fmt.Sprintf("%s, %s, %s of the last round, %s to judge, in %.1f s", who,
		draw.Count(r.Stages, "beginning of a round", "beginnings of rounds"),
		draw.Count(r.Evaluations, "evaluation", "evaluations"), draw.Count(r.Histories, "history", "histories"),
		r.Took.Seconds())}
}
