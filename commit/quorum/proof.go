package quorum

import "parley/commit/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Atomicity: "The outcome is the decision of one consensus among all processes, and no process " +
		"decides alone. Any two majorities share a process, so there is only one decision, however many " +
		"processes start ballots.",
	problem.Validity: "A process proposes to commit only if it has a yes from every process. So a decision to " +
		"commit means that all voted yes.",
}
