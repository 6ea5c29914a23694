package twophase

import "parley/commit/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Atomicity: "Only the coordinator decides to commit, and it does so only after a yes from all. A " +
		"participant logs its yes before it sends it, and from then on only follows the decision of the " +
		"coordinator. The coordinator logs a commit before it sends it, so no crash makes it forget. A " +
		"participant without a yes aborts alone, and then the coordinator cannot commit.",
	problem.Validity: "The coordinator decides to commit only after a yes from every participant, and every " +
		"other commit follows from this decision.",
}
