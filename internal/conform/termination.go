package conform

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/commit/problem"
	"parley/internal/conform/form"
)

// terminationCase has the local states of the participants that reach each other after the coordinator has crashed.
type terminationCase struct {
	kinded
	States map[string]string `json:"states"`
}

type terminationExpect struct {
	Outcome string `json:"outcome"`
}

// termination returns a function that runs a case with the protocol of that name.
func termination(protocol string) func(c terminationCase, want terminationExpect, report reporter) {
	return func(c terminationCase, want terminationExpect, report reporter) {
		checkOutcome("outcome", want.Outcome)
		names := form.Keys(c.States)
		checkParticipants("", len(names))
		report("outcome", want.Outcome, terminate("states", protocol, names, c.States))
	}
}

// partitionCase is a partitioned network: the participants of each group decide by themselves.
type partitionCase struct {
	kinded
	Protocol string                       `json:"protocol"`
	Groups   map[string]map[string]string `json:"groups"` // by group: the states
}

type partitionExpect struct {
	Outcomes   map[string]string `json:"outcomes"`
	Consistent *bool             `json:"consistent"`
}

func partition(c partitionCase, want partitionExpect, report reporter) {
	if _, known := commitments[c.Protocol]; !known {
		fail("protocol %q: allowed are %s", c.Protocol, form.Listed(form.Keys(commitments)))
	}
	var names []string
	for _, group := range form.Keys(c.Groups) {
		names = append(names, form.Keys(c.Groups[group])...)
	}
	named("groups", names)
	checkParticipants("groups", len(names))
	got := make(map[string]string)
	for _, group := range form.Keys(c.Groups) {
		got[group] = terminate("groups: "+group, c.Protocol, names, c.Groups[group])
	}
	for _, group := range form.Keys(want.Outcomes) {
		checkOutcome("outcomes: "+group, want.Outcomes[group])
		if _, known := got[group]; !known {
			fail("expect: outcomes: there is no group %q", group)
		}
	}
	report("outcomes", want.Outcomes, among(want.Outcomes, got))
	report("consistent", want.Consistent, consistent(got))
}

// consistent reports whether no process commits what another aborts.
func consistent(outcomes map[string]string) bool {
	all := strings.Join(slices.Sorted(maps.Values(outcomes)), " ")
	return !strings.Contains(all, "commit") || !strings.Contains(all, "abort")
}

// terminate brings the participants that are up to their states by means of the coordinator's messages before its
// crash, and then lets them decide by themselves. An error begins with what.
func terminate(what, protocol string, names []string, states map[string]string) string {
	c := commitments[protocol]
	t := newHost(c.of(len(names) + 1))
	up := make(map[parley.ID]problem.State)
	t.down.Add(coordinator)
	for i, name := range names {
		text, is := states[name]
		if !is {
			t.down.Add(parley.ID(i + 1))
			continue
		}
		state, err := problem.ParseState(text)
		if err == nil && state == problem.Precommitted && c.prepare.Kind == 0 {
			err = errors.New("precommitted: there is no such state in two phases")
		}
		check(what+": "+name, err)
		up[parley.ID(i+1)] = state
	}
	all := slices.Collect(maps.Values(up))
	done := slices.Contains(all, problem.Committed) || slices.Contains(all, problem.Precommitted)
	if done && (slices.Contains(all, problem.Initial) || slices.Contains(all, problem.Aborted)) {
		fail("%s: where one has not voted yes, or has aborted, nobody is precommitted or has committed", what)
	}
	for id := range t.up().All() {
		c.bring(t, id, up[id])
	}
	return t.outcome(t.up())
}

// bring brings a participant to a state.
func (c commitment) bring(t *scriptHost, id parley.ID, state problem.State) {
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
