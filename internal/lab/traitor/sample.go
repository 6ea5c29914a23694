package traitor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"parley/internal/form"
	"parley/run"
	"parley/sim"
)

// Sampling is whether a run of a level that is Sampled breaks its property. Runs that break nothing prove nothing: the
// seeds are a choice among many more runs.
type Sampling struct {
	Outcome string            `json:"outcome"` // not found, found or interrupted
	Runs    uint64            `json:"runs"`
	Why     string            `json:"why,omitempty"`
	Flags   map[string]string `json:"flags,omitempty"` // of the run that breaks the property
}

// The outcomes of a sampling besides interrupted.
const (
	NotFound = "not found"
	Found    = "found"
)

// Sample makes the runs of a level, with the seeds 1, 2 and so on. One run after another takes another one of the
// choices of the dials. setup makes a run of flags. progress gets JSON objects.
func Sample(ctx context.Context, l Level, seconds int, setup func(flags map[string]string) (form.Setup, error),
	progress func([]byte),
) (Sampling, error) {
	if seconds < 1 || seconds > int(mostSearch.Seconds()) {
		return Sampling{}, fmt.Errorf("a search of %d seconds: allowed are 1 to %.0f", seconds, mostSearch.Seconds())
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer stop()
	all := l.choices()
	specs := make([]run.Spec, len(all))
	for i, flags := range all {
		made, err := setup(flags)
		if err != nil {
			return Sampling{}, err
		}
		specs[i] = made.Spec
		specs[i].Plan = made.Open
	}
	memory := new(sim.Sim)
	a := Sampling{Outcome: NotFound}
	for a.Runs < l.Seeds {
		if ctx.Err() != nil {
			a.Outcome = "interrupted"
			return a, nil
		}
		i := int(a.Runs % uint64(len(specs)))
		a.Runs++
		specs[i].Seed = a.Runs
		trial := specs[i].Try(memory)
		for _, v := range trial.Verdicts {
			if v.Property.Name == l.Property && v.Broken != nil {
				a.Outcome, a.Why, a.Flags = Found, v.Broken.Error(), all[i]
				a.Flags["seed"] = fmt.Sprint(a.Runs)
				return a, nil
			}
		}
		if a.Runs%200 == 0 && progress != nil {
			if report, err := json.Marshal(a); err == nil {
				progress(report)
			}
		}
	}
	return a, nil
}

// choices returns the flags of the level with each combination of choices of its dials.
func (l Level) choices() []map[string]string {
	all := []map[string]string{maps.Clone(l.Flags)}
	for _, d := range l.Dials {
		var more []map[string]string
		for _, c := range d.Choices {
			for _, flags := range all {
				flags = maps.Clone(flags)
				flags[d.Flag] = strings.ReplaceAll(d.Form, "%", c.Value)
				more = append(more, flags)
			}
		}
		all = more
	}
	return all
}
