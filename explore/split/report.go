package split

import (
	"time"

	"parley/explore"
)

// Report is the result of a search with its last round split.
type Report struct {
	Outcome explore.Outcome
	// Limit names the budget that was hit: "memory" or "for".
	Limit string
	// Stages is the number of different states at the beginnings of rounds.
	Stages uint64
	// Evaluations counts the processes taken through the last round: a correct machine is loaded, receives
	// the messages, and its timer expires. Processes with only one possible input are not counted.
	Evaluations uint64
	// Histories is the number of different histories that were judged.
	Histories uint64
	// Runs is the number of adversaries, as in [explore.Report], and Broken how many of them break a
	// property that counts. Both saturate at the largest uint64.
	Runs, Broken uint64
	Judged       []explore.Judged // as in [explore.Report]
	Took         time.Duration
	Findings     []Finding
}

// Finding is a run that breaks a property, found again by a search by rounds from Liars alone.
type Finding struct {
	explore.Finding
	// Liars begins only this run: its faulty processes send what they send in it.
	Liars explore.Root
}
