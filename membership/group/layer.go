package group

import (
	"iter"

	"parley"
)

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
// comes on each link in the order sent, without gaps or else noticed as one. A
// layer sends to members, never to all. What it delivers is Carried, or as by
// problem.RequestTo if it is for named processes alone, members or not: the group hands
// it up as Carried, and forwards it to a joiner if it is for that. Of what it delivers
// the group sets Seq: the position of the delivery in this process's sequence.
type Layer interface {
	// Request is from above. While frozen the group keeps requests for the next view.
	Request(s *parley.Step, m parley.Msg)
	// Receive is a message of this view from another member. It tells whether the
	// message shows that an earlier one of the link is missing: the group then
	// freezes and asks for a view change, and the message counts as not received.
	Receive(s *parley.Step, from parley.ID, m parley.Msg) (gap bool)
	// Timeout is a timer that the layer set in this view.
	Timeout(s *parley.Step, t parley.Timer)
	// Waiting tells whether there is a message that this member has yet to deliver: if
	// that is so for long and it delivers nothing, the group asks for a view change.
	Waiting() bool
	// Report returns what the layer holds, with bodies, for the cut.
	Report() []byte
	// Cut makes of the reports of a view's reporters, in the order of ranks, what
	// all that install the next view will have delivered before it. It is a pure
	// function: of all that know the same reports.
	Cut(reports [][]byte) []byte
	// Reads tells whether bytes are a cut, which Install would take.
	Reads(cut []byte) bool
	// Install delivers what the cut has for this member, who may be a joiner, and it has
	// not delivered, and begins the next view. A nil cut begins the first one, or that of a process
	// which comes back from its log.
	Install(s *parley.Step, cut []byte, next View)
	// Snapshot returns where the layer stands between two deliveries.
	Snapshot() []byte
	// Restore takes a joiner to where the snapshot was made: what it delivers next is
	// what follows. It tells whether the bytes are a snapshot.
	Restore(snapshot []byte) bool
	// State visits every variable.
	State(v *parley.Vars)
}

// Sender is a layer in which a member need not deliver its own messages.
type Sender interface {
	// Oldest names the oldest message of this member's own that is not finished, by its
	// number among its own from 1 on, or is 0. If it stays the same for long, the
	// group asks for a view change.
	Oldest() uint64
}

// Durable is a layer for groups in durable mode. It appends what it holds before it
// acknowledges it; its Install delivers, beside what the cut has, whatever it
// holds itself, all in order: after a restart it does not know what of that it had
// delivered. What it needs of itself when the state has replaced the records is durable in
// State; all else is gone when the process comes back.
type Durable interface {
	Layer
	// Replay takes a record that the layer appended in the present view.
	Replay(rec []byte) bool
}

// LayerSpec makes the layers of one kind, and says what hosts want to know of them.
type LayerSpec struct {
	Name  string
	Kinds []string // the names of its message kinds, by Kind
	// Requests are the kinds of requests that it takes. Of several services the first
	// that takes a kind is asked.
	Requests []parley.Kind
	// New makes the layer of one process among n.
	New func(self parley.ID, n int) Layer
	// Explain goes through the rows that a reader would see for a message.
	Explain func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string]
}
