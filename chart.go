package parley

// Stage is how far a process is with a decision that all processes take alike, as pictures show it.
type Stage uint8

// The stages. A process begins as Waiting.
const (
	NoStage        Stage = iota
	StageWaiting         // has not voted yes, and may still abort alone
	StageInDoubt         // has voted yes, and does not know the outcome
	StagePrepared        // has voted yes, and knows that all have
	StageBlocked         // cannot find out the outcome
	StageCommitted       // knows that the outcome is commit
	StageAborted         // knows that the outcome is abort
)

// Progress is the stage that a process reaches by an event.
type Progress struct {
	Stage Stage  // NoStage: it changes nothing
	Of    uint64 // which decision, if a run has several
	Name  string // the name of that decision, if the event has it
}

// ClockView is how pictures show the clocks that a protocol keeps.
type ClockView struct {
	// Apart is the promise: the clocks of two correct processes never differ by more ticks.
	Apart Tick
	// Corner reads a corner of a clock from a delivery of its process; ok is false for all other messages.
	Corner func(m Msg) (c Corner, ok bool)
}

// Corner is a corner of a logical clock. Between two corners the clock runs as evenly as the hardware.
type Corner struct {
	Shows Tick // the time on the logical clock
	Kind  CornerKind
}

// CornerKind is what happens at a corner.
type CornerKind uint8

// The kinds of corners.
const (
	CornerBegins  CornerKind = iota // the clock counts from now on
	CornerReads                     // the process begins to read the clocks of the others
	CornerAdjusts                   // it begins to adjust its own
	CornerSettles                   // the adjustment ends
	CornerEnds                      // the clock no longer counts
)
