package group

import "parley"

// View is an agreed membership. Members are ranked by their ids.
type View struct {
	Number  uint64 // from 1
	Members parley.Set
}

// Majority is how many members are more than half of the view.
func (v View) Majority() int { return v.Members.Len()/2 + 1 }

// Layer is an ordered broadcast among the members of one view after another.
// The group calls it only for a view that it is in and while it is not frozen:
// once a member has reported it acknowledges and delivers nothing in this view.
// What a layer sends reaches the same layer of members of the same view, and
// comes on each link in the order sent, without gaps or else noticed as one.
type Layer interface {
	// Request is from above. While frozen the group keeps requests for the next view.
	Request(s *parley.Step, m parley.Msg)
	// Receive is a message of this view from another member. It tells whether the
	// message shows that an earlier one of the link is missing: the group then
	// freezes and asks for a view change, and the message counts as not received.
	Receive(s *parley.Step, from parley.ID, m parley.Msg) (gap bool)
	// Timeout is a timer that the layer set in this view.
	Timeout(s *parley.Step, t parley.Timer)
	// Waiting tells whether a message of this member's own is not yet delivered: if
	// that lasts, the group asks for a view change.
	Waiting() bool
	// Report returns what the layer holds, with bodies, for the cut.
	Report() []byte
	// Cut makes of the reports of a view's reporters, in the order of ranks, what
	// all that install the next view will have delivered before it. It is a pure
	// function: of all that know the same reports.
	Cut(reports [][]byte) []byte
	// Install delivers what the cut has and this member has not delivered, and
	// begins the next view. A nil cut begins the first one.
	Install(s *parley.Step, cut []byte, next View)
	// Snapshot returns where the layer stands between two deliveries, and Restore
	// takes a joiner there: what it delivers next is what follows.
	Snapshot() []byte
	Restore(snapshot []byte) bool
	// State visits every variable.
	State(v *parley.Vars)
}
