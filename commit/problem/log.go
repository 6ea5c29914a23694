package problem

// The records of a participant's log.
const (
	RecordYes       = "yes"
	RecordCommitted = "committed"
	RecordAborted   = "aborted"
)

// Replay applies the next record of a participant's log, and returns whether the record is valid there. An
// invalid log must not be ignored: other processes rely on what it should contain.
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
