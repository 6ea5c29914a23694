package main

import (
	"parley"
	"parley/explore"
)

// words are the values of fields that have a closed set of them, by PACKAGE.TYPE.FIELD.
var words = map[string][]string{
	"report.Verdict.Outcome": {
		parley.Held, parley.Violated, parley.NotPromisedHeld, parley.NotPromisedBroken, parley.NotApplicable, parley.Seen,
		parley.NotSeen,
	},
	"exploration.Output.Outcome": {
		explore.Exhausted.String(), explore.Found.String(), explore.BudgetHit.String(), explore.Interrupted.String(),
	},
	"exploration.PairsOutput.Outcome": {
		explore.Exhausted.String(), explore.Found.String(), explore.BudgetHit.String(), explore.Interrupted.String(),
	},
	"cli.listed.Timing": {parley.Synchronous.String(), parley.Asynchronous.String()},
	"cli.listed.Faults": {
		parley.CrashFaults.String(), parley.OmissionFaults.String(), parley.SignedByzantineFaults.String(),
		parley.OralByzantineFaults.String(),
	},
	"cert.record.State":       {"valid", "not yet valid", "expired", "revoked"},
	"local.Node.State":        {"in", "runs", "starts"},
	"console.Failure.Outcome": {"unknown"},
}
