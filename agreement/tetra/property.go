package tetra

import (
	"bytes"
	"fmt"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// properties returns the properties of the agreement. Two of them have the names of problem.Byzantine, but demand
// less: correct processes may decide on nothing although the source is correct, and after a restart a process
// announces its decision again.
func properties(source parley.ID) []parley.Property {
	general := problem.ByzantineOfAll(source)
	named := func(name string) parley.Property {
		return general[slices.IndexFunc(general, func(p parley.Property) bool { return p.Name == name })]
	}
	termination := named(problem.Termination)
	termination.Says = "every correct process decides"
	return []parley.Property{
		named(problem.Agreement),
		{
			Name: problem.Validity, Mode: parley.Always,
			Says: "if the source is correct, every correct process decides on its value, or on nothing, shown as \"\"",
			Check: func(h *parley.History) error {
				value, _ := proposed(h, source)
				for id, v := range inOrder(h) {
					if !h.Faulty.Has(source) && len(v) > 0 && !bytes.Equal(v, value) {
						return fmt.Errorf("%s decided %s, but the correct source proposed %s", h.Name(id),
							parley.Printable(v), parley.Printable(value))
					}
				}
				return nil
			},
			Vacuous: func(h *parley.History) string {
				if h.Faulty.Has(source) {
					return "the source is faulty"
				}
				return undecided(h)
			},
		},
		termination,
		{
			Name: problem.Integrity, Says: "no correct process decides twice without a restart in between",
			Mode: parley.Always, Check: checkOnce, Vacuous: undecided,
		},
	}
}

// proposed returns the first request at the source.
func proposed(h *parley.History, source parley.ID) (value []byte, given bool) {
	for _, r := range h.Requests {
		if r.At == source && r.Msg.Kind == parley.Propose {
			return r.Msg.Body, true
		}
	}
	return nil, false
}

// inOrder iterates over the decisions of correct processes, by process.
func inOrder(h *parley.History) func(yield func(parley.ID, []byte) bool) {
	return func(yield func(parley.ID, []byte) bool) {
		decided := problem.Decisions(h)
		for id := range parley.ID(h.N) {
			if v, done := decided[id]; done && !yield(id, v) {
				return
			}
		}
	}
}

func undecided(h *parley.History) string {
	if len(problem.Decisions(h)) == 0 {
		return "no correct process decides"
	}
	return ""
}

func checkOnce(h *parley.History) error {
	last := make(map[parley.ID]uint64) // when a process last decided
	for _, d := range h.Deliveries {
		if d.Msg.Kind != parley.Decide || !h.Correct(d.At) {
			continue
		}
		before, again := last[d.At]
		back := func(r parley.ExternalEvent) bool { return r.At == d.At && before < r.Order && r.Order < d.Order }
		if again && !slices.ContainsFunc(h.Restarts, back) {
			return fmt.Errorf("%s decided twice", h.Name(d.At))
		}
		last[d.At] = d.Order
	}
	return nil
}

// promises returns which properties hold under the conditions of a run.
func promises(a parley.RunConditions) []parley.Promise {
	safe := ""
	switch err := problem.OralBound(a.N, a.M); {
	case err != nil:
		safe = err.Error()
	case a.Faulty > a.M:
		safe = a.Excess()
	case a.Processes.LostDisk:
		safe = "a process restarted without its durable state, and counts as faulty"
	}
	live := safe
	switch {
	case live != "":
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		live = "messages were lost, so no view is certain to succeed in a known time"
	case a.Processes.Paused:
		live = "a process was paused, so no view is certain to succeed in a known time"
	}
	const views = "n > 3m: any two quorums share a correct process, and only a safe value gets votes"
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Agreement, views, safe),
		parley.Promised(problem.Validity,
			"m+1 processes vouch for a value: a correct one received it from the source", safe),
		parley.Promised(problem.Termination, "n > 3m: some view is long enough and has a correct leader", live),
		parley.Promised(problem.Integrity, "a process decides once", safe),
	}, proofs)
}

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Agreement: "If a quorum is ready for v in view 0, each quorum of claims has a true claim of v, so no " +
		"other value is safe in view 1. If a quorum votes in phase 4 of a view for v, each quorum of reports has a " +
		"true report of it, and only v stays safe. A value that is not safe gets no vote of a correct process, so no quorum.",
	problem.Validity: "A value needs a correct process that echoes or vouches. The first correct one has it from the " +
		"source, because m+1 processes include a correct one.",
	problem.Termination: "Views get longer, and correct processes enter them together. In a long view with a correct " +
		"leader, all correct reports and claims arrive. So the leader finds a value that is safe, or nothing is " +
		"safe. What convinces the leader convinces all others, because they count m+1 where it counts a quorum.",
}
