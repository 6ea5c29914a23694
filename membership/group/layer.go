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

// Layer is an ordered broadcast among the members of consecutive views. The group calls a layer only for a view of
// which this process is a member, and only while the member is not frozen. A member that has reported is frozen: it
// acknowledges and delivers nothing more in this view. A message of a layer goes to the same layer of members of the
// same view. Each link delivers these messages in the order in which they were sent. A link may lose messages, but
// the layer must detect the gap. A layer sends to members, never to parley.All. It delivers with kind Carried. If a
// message is only for named processes, which need not be members, the layer delivers it in the form of
// problem.RequestTo. The group passes such a delivery up as Carried, and forwards it to a joiner if it is addressed
// to the joiner. The group sets Seq of a delivery to its position in this process's sequence.
type Layer interface {
	// Request handles a request from above. While frozen, the group keeps requests for the next view.
	Request(s *parley.Step, m parley.Msg)
	// Receive handles a message of this view from another member. It reports whether the message shows that an
	// earlier message of the link is missing. If so, the group freezes and asks for a view change, and the message
	// counts as not received.
	Receive(s *parley.Step, from parley.ID, m parley.Msg) (gap bool)
	// Timeout handles the expiry of a timer that the layer set in this view.
	Timeout(s *parley.Step, t parley.Timer)
	// Waiting reports whether this member holds a message that it has not delivered yet. If Waiting stays true for
	// long while the member delivers nothing, the group asks for a view change.
	Waiting() bool
	// Report returns the messages that the layer holds for the cut, with their bodies.
	Report() []byte
	// Cut computes the cut: the messages that all processes deliver before they install the next view. The arguments
	// are the reports of a view, in the order of ranks. Cut is a pure function, so all processes with the same
	// reports get the same cut.
	Cut(reports [][]byte) []byte
	// Reads reports whether cut is well-formed, so that Install can take it.
	Reads(cut []byte) bool
	// Install delivers the messages of the cut for this member that it has not delivered yet, and begins the
	// next view. The member may be a joiner. A nil cut begins the first view, or the view of a process that
	// resumes from its log.
	Install(s *parley.Step, cut []byte, next View)
	// Snapshot returns the state of the layer between two deliveries.
	Snapshot() []byte
	// Restore brings the layer of a joiner to the state of a snapshot. The layer then continues with the
	// deliveries after the snapshot. Restore reports whether the bytes are a snapshot.
	Restore(snapshot []byte) bool
	// State visits every variable.
	State(v *parley.Vars)
}

// Sender is a layer in which a member need not deliver its own messages.
type Sender interface {
	// Oldest returns the number of this member's oldest unfinished message, or 0 if there is none. The member's own
	// messages are counted from 1. If Oldest stays the same for long, the group asks for a view change.
	Oldest() uint64
}

// Durable is a layer for groups in durable mode. It appends each message to the log before it acknowledges the
// message. Its Install delivers, in order, the messages of the cut and all messages that the layer holds, because
// after a restart the layer does not know which of them it had delivered. If the layer needs a variable after the
// state has replaced the log records, the variable is durable in State. All other variables are lost in a restart.
type Durable interface {
	Layer
	// Replay applies a record that the layer appended in the present view. It reports whether the record belongs to
	// the layer.
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
