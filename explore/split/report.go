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
	// Evaluations counts how often a process was taken through the last round: a correct machine was loaded, received
	// the messages, and its timer expired. Processes with only one possible input do not count.
	Evaluations uint64
	// Histories is the number of different histories that were judged.
	Histories uint64
	// Runs is the number of adversaries, as in [explore.Report]. Broken is how many of them break a property that
	// counts. If a number exceeds the largest uint64, the field has the largest uint64.
	Runs, Broken uint64
	Judged       []explore.Judged // as in [explore.Report]
	Took         time.Duration
	Findings     []Finding
}

// Finding is a run that breaks a property. A search by rounds that begins only with Liars found it again.
type Finding struct {
	explore.Finding
	// Liars begins only this run: its faulty processes send what they send in it.
	Liars explore.Root
}
