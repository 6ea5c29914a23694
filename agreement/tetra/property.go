package tetra

import (
	"parley"
	"parley/agreement/problem"
)

// promises returns which properties hold under the conditions of a run.
func promises(a parley.RunConditions) []parley.Promise {
	safe := problem.Lacks(a, problem.OralBound)
	if safe == "" && a.Processes.LostDisk {
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
