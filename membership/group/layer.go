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

// Majority returns the smallest number of members that is more than half of the view.
func (v View) Majority() int { return v.Members.Len()/2 + 1 }

// Layer is an ordered broadcast among the members of consecutive views. The group calls it only for a view
// that this process is in, and while it is not frozen: a member that has reported acknowledges and delivers
// nothing in this view. What a layer sends goes to the same layer of members of the same view; each link
// delivers it in the order sent, without gaps or with gaps that are noticed. A layer sends to members, never
// to parley.All. It delivers with kind Carried, or in the form of problem.RequestTo if the message is for
// named processes alone, members or not. The group passes that up as Carried, and forwards it to a joiner if
// it is addressed to it. The group sets Seq of a delivery to its position in this process's sequence.
type Layer interface {
	// Request handles a request from above. While frozen, the group keeps requests for the next view.
	Request(s *parley.Step, m parley.Msg)
	// Receive handles a message of this view from another member. It reports whether the message shows that
	// an earlier one of the link is missing: the group then freezes and asks for a view change, and the
	// message counts as not received.
	Receive(s *parley.Step, from parley.ID, m parley.Msg) (gap bool)
	// Timeout handles the expiry of a timer that the layer set in this view.
	Timeout(s *parley.Step, t parley.Timer)
	// Waiting reports whether there is a message that this member has yet to deliver. If it stays true for
	// long while the member delivers nothing, the group asks for a view change.
	Waiting() bool
	// Report returns what the layer holds for the cut, with bodies.
	Report() []byte
	// Cut computes, from the reports of a view in the order of ranks, what all that install the next view
	// will have delivered before it. It is a pure function: all that know the same reports get the same cut.
	Cut(reports [][]byte) []byte
	// Reads reports whether cut is well-formed, so that Install can take it.
	Reads(cut []byte) bool
	// Install delivers what the cut has for this member, which may be a joiner, and has not delivered yet,
	// and begins the next view. A nil cut begins the first view, or that of a process that resumes from its
	// log.
	Install(s *parley.Step, cut []byte, next View)
	// Snapshot returns the state of the layer between two deliveries.
	Snapshot() []byte
	// Restore brings the layer of a joiner to the state of a snapshot: it delivers next what follows. It
	// reports whether the bytes are a snapshot.
	Restore(snapshot []byte) bool
	// State visits every variable.
	State(v *parley.Vars)
}

// Sender is a layer in which a member need not deliver its own messages.
type Sender interface {
	// Oldest returns the number of this member's oldest own message that is not finished, counted from 1
	// among its own, or 0 if there is none. If it stays the same for long, the group asks for a view change.
	Oldest() uint64
}

// Durable is a layer for groups in durable mode. It appends what it holds before it acknowledges it. Its
// Install delivers what the cut has and whatever the layer itself holds, all in order: after a restart it
// does not know how much of that it had delivered. What it needs of its own after the state has replaced the
// records is durable in State; everything else is lost in a restart.
type Durable interface {
	Layer
	// Replay applies a record that the layer appended in the present view, and reports whether it was one.
	Replay(rec []byte) bool
}

// LayerSpec describes one kind of layer: how to make its layers, and what hosts need to know.
type LayerSpec struct {
	Name  string
	Kinds []string // the names of its message kinds, by Kind
	// Requests are the kinds of requests that the layer takes. If several layers take a kind, the first one
	// gets the request.
	Requests []parley.Kind
	// New returns the layer of process self among n.
	New func(self parley.ID, n int) Layer
	// Explain iterates over the rows that a reader sees for a message.
	Explain func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string]
}
