package problem

// The records of a participant's log.
const (
	RecordYes       = "yes"
	RecordCommitted = "committed"
	RecordAborted   = "aborted"
)

// Replay takes the next record of a participant's log, and tells whether it is one. A log that is
// not as it was written is not passed over: what it does not say any more, others rely on.
func (s *State) Replay(record string) bool {
	switch before := *s; {
	case record == RecordYes && before == Initial:
		*s = Uncertain
	case record == RecordCommitted && before == Uncertain:
		*s = Committed
	case record == RecordAborted && before == Uncertain:
		*s = Aborted
	default:
		return false
	}
	return true
}
