package split

import (
	"time"

	"parley/explore"
)

// Report is what a search with its last round split found out.
type Report struct {
	Outcome explore.Outcome
	// Limit says which budget was hit: "memory" or "for".
	Limit string
	// Stages is how many different states there are at the beginning of a round.
	Stages uint64
	// Evaluations is how often the machine of a correct process that may be told different
	// things in the last round was taken through it: loaded, told them, its timer run out.
	Evaluations uint64
	// Histories is how many different ones the properties were asked about.
	Histories uint64
	// Runs is how many adversaries there are, as in [explore.Report], and Broken how many of
	// them break something that counts. Both are capped at the largest number.
	Runs, Broken uint64
	Judged       []explore.Judged // as in [explore.Report]
	Took         time.Duration
	Findings     []Finding
}

// Finding is a run that breaks a property, found again by a search by rounds from
// Liars alone.
type Finding struct {
	explore.Finding
	// Liars begins this run and no other: its faulty processes say what they say in it.
	Liars explore.Root
}
