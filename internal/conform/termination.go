package conform

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/commit/problem"
	"parley/internal/conform/form"
)

// terminationCase is the local states of the participants that reach each other
// when the coordinator is gone.
type terminationCase struct {
	kinded
	States map[string]string `json:"states"`
}

type terminationExpect struct {
	Outcome string `json:"outcome"`
}

// termination runs a case of the protocol of that name.
func termination(protocol string) func(raw []byte, report reporter) error {
	return func(raw []byte, report reporter) error {
		var c terminationCase
		var want terminationExpect
		if err := read(raw, &c, &want); err != nil {
			return err
		}
		if err := checkOutcome("outcome", want.Outcome); err != nil {
			return err
		}
		names := form.Keys(c.States)
		if err := participants(names); err != nil {
			return err
		}
		got, err := terminate(protocol, names, c.States)
		if err != nil {
			return fmt.Errorf("states: %w", err)
		}
		report("outcome", want.Outcome, got)
		return nil
	}
}

// partitionCase is a network that has parted: in each group the participants are by
// themselves.
type partitionCase struct {
	kinded
	Protocol string                       `json:"protocol"`
	Groups   map[string]map[string]string `json:"groups"` // by group, the states
}

type partitionExpect struct {
	Outcomes   map[string]string `json:"outcomes"`
	Consistent *bool             `json:"consistent"`
}

func partition(raw []byte, report reporter) error {
	var c partitionCase
	var want partitionExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	if _, known := commitments[c.Protocol]; !known {
		return fmt.Errorf("protocol %q: allowed are %s", c.Protocol, form.Listed(form.Keys(commitments)))
	}
	var names []string
	for _, group := range form.Keys(c.Groups) {
		names = append(names, form.Keys(c.Groups[group])...)
	}
	if _, err := named(names); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	if err := participants(names); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	got := make(map[string]string)
	for _, group := range form.Keys(c.Groups) {
		outcome, err := terminate(c.Protocol, names, c.Groups[group])
		if err != nil {
			return fmt.Errorf("groups: %s: %w", group, err)
		}
		got[group] = outcome
	}
	for _, group := range form.Keys(want.Outcomes) {
		if err := checkOutcome("outcomes: "+group, want.Outcomes[group]); err != nil {
			return err
		}
		if _, known := got[group]; !known {
			return fmt.Errorf("expect: outcomes: there is no group %q", group)
		}
	}
	if want.Outcomes != nil {
		report("outcomes", want.Outcomes, among(want.Outcomes, got))
	}
	if want.Consistent != nil {
		report("consistent", *want.Consistent, consistent(got))
	}
	return nil
}

// consistent tells whether nobody commits what another aborts.
func consistent(outcomes map[string]string) bool {
	all := strings.Join(slices.Sorted(maps.Values(outcomes)), " ")
	return !strings.Contains(all, "commit") || !strings.Contains(all, "abort")
}

// terminate brings those of the participants that are up to their states, by what
// the coordinator says before it is gone, and lets them get on by themselves.
func terminate(protocol string, names []string, states map[string]string) (string, error) {
	c := commitments[protocol]
	t := newStage(c.of(len(names) + 1))
	up := make(map[parley.ID]problem.State)
	for i, name := range names {
		text, is := states[name]
		if !is {
			continue
		}
		state, err := problem.ParseState(text)
		if err == nil && state == problem.Precommitted && c.prepare.Kind == 0 {
			err = errors.New("precommitted: there is no such state in two phases")
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		up[parley.ID(i+1)] = state
	}
	if err := possible(up); err != nil {
		return "", err
	}
	for id := range parley.ID(len(names) + 1) {
		if _, there := up[id]; !there {
			t.down.Add(id)
		}
	}
	for id := range t.up().All() {
		c.bring(t, id, up[id])
	}
	return t.outcome(t.up()), nil
}

// possible refuses states that processes cannot be in at one time.
func possible(up map[parley.ID]problem.State) error {
	count := make(map[problem.State]int)
	// order: they are counted
	for _, s := range up {
		count[s]++
	}
	if count[problem.Committed]+count[problem.Precommitted] > 0 && count[problem.Initial]+count[problem.Aborted] > 0 {
		return errors.New("where one has not voted yes, or has aborted, nobody is precommitted or has committed")
	}
	return nil
}

// bring brings a participant to a state.
func (c commitment) bring(t *stage, id parley.ID, state problem.State) {
	hears := []parley.Msg{c.ask}
	switch state {
	case problem.Initial:
		hears = nil
	case problem.Precommitted:
		hears = append(hears, c.prepare)
	case problem.Committed:
		if c.prepare.Kind != 0 {
			hears = append(hears, c.prepare)
		}
		hears = append(hears, c.commit)
	case problem.Aborted:
		hears = append(hears, c.abort)
	}
	t.run(id, request(vote("yes")))
	for _, m := range hears {
		t.run(id, receive(coordinator, m))
	}
}
