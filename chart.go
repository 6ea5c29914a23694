package parley

// Stage is how far a process has come in a decision that must be the same at all processes, such as a commit.
// Pictures show the stage.
type Stage uint8

// The stages. A process begins as Waiting.
const (
	NoStage        Stage = iota
	StageWaiting         // has not voted yes, and may still abort alone
	StageInDoubt         // has voted yes, and does not know the outcome
	StagePrepared        // has voted yes, and knows that all have voted yes
	StageBlocked         // cannot find out the outcome
	StageCommitted       // knows that the outcome is commit
	StageAborted         // knows that the outcome is abort
)

// Progress is the stage that a process reaches by an event.
type Progress struct {
	Stage Stage  // NoStage: the event changes nothing
	Of    uint64 // which decision, if a run has several
	Name  string // the name of that decision, if the event has it
}

// ClockView tells pictures how to show the clocks that a protocol keeps.
type ClockView struct {
	// Apart is the promised bound, in ticks, on the difference between the clocks of two correct processes.
	Apart Tick
	// Formula is a sentence that says how Apart follows from the configuration.
	Formula string
	// Corner returns the corner that a delivered message describes. If m describes none, ok is false.
	Corner func(m Msg) (c Corner, ok bool)
}

// Corner is a point at which a logical clock begins, ends, or changes its rate. Between two corners, the ratio of its
// rate to the rate of the hardware clock is constant.
type Corner struct {
	Shows Tick // the time on the logical clock
	Kind  CornerKind
}

// CornerKind says what happens at a corner.
type CornerKind uint8

// The kinds of corners.
const (
	CornerBegins  CornerKind = iota // the clock counts from now on
	CornerReads                     // the process begins to read the clocks of the others
	CornerAdjusts                   // the process begins to adjust its own clock
	CornerSettles                   // the adjustment ends
	CornerEnds                      // the clock no longer counts
)
