package views

import (
	"encoding/binary"

	"parley"
	"parley/membership/group"
)

// The messages of a layer. Their Body begins with a vector: the number of members of the view, and for each
// member, in the order of ids, how many of its messages the sender has received.
const (
	// Data is a broadcast. Seq: the sender's count in this view, from 1. Body: the vector, followed by the
	// layer's own content.
	Data parley.Kind = iota + 1
	// Ack acknowledges messages. Body: the vector.
	Ack
)

// Limit is greater than every count and every clock of a view in which no process lies.
const Limit = 1 << 56

// flushing is the timer of a delayed acknowledgement.
const flushing parley.Timer = 1

// Member is the state of one member of a view: what each member has acknowledged, as a matrix clock, and whether this
// member owes an acknowledgement.
type Member struct {
	Self parley.ID
	View group.View
	Acks [][]uint64 // Acks[q][s]: how many of s's messages q has acknowledged
	Vec  []uint64   // scratch: the vector of the current message
	hold parley.Tick
	owes bool
}

// NewMember returns member self of n processes. The argument hold is the delay of acknowledgements, in ticks; 0 means
// no delay.
func NewMember(self parley.ID, n int, hold parley.Tick) Member {
	m := Member{Self: self, Acks: make([][]uint64, n), hold: hold}
	for q := range m.Acks {
		m.Acks[q] = make([]uint64, n)
	}
	return m
}

// Begin begins a view, in which nothing is acknowledged yet.
func (m *Member) Begin(next group.View) {
	m.View, m.owes = next, false
	for _, row := range m.Acks {
		clear(row)
	}
}

// Open decodes the vector of a message of q and returns the body after it, or the reason to refuse the message. The
// argument sent is how many messages this member has sent. Values of Data must be 1 to most. For other values,
// badValue is the reason.
func (m *Member) Open(q parley.ID, msg parley.Msg, sent, most uint64, badValue string) (body []byte, refused string) {
	var ok bool
	m.Vec, body, ok = ReadVector(m.Vec[:0], msg.Body)
	switch data := msg.Kind == Data; {
	case !data && msg.Kind != Ack, msg.Origin != 0:
		refused = "message of no kind"
	case !ok, len(m.Vec) != m.View.Members.Len(), !data && (len(body) > 0 || msg.Seq != 0 || msg.Value != 0):
		refused = "vector that cannot be read"
	case data && (msg.Seq == 0 || msg.Seq > Limit || msg.Value == 0 || msg.Value > most):
		refused = badValue
	case data && m.Said(q) != msg.Seq:
		refused = "count that is not in its vector"
	case m.Said(m.Self) > sent:
		refused = "acknowledgement of what was not sent"
	}
	return body, refused
}

// Said returns how many messages of a member the current message acknowledges.
func (m *Member) Said(id parley.ID) uint64 {
	rank := 0
	for member := range m.View.Members.All() {
		if member == id {
			break
		}
		rank++
	}
	return m.Vec[rank]
}

// Note records what the current message, of q, acknowledges.
func (m *Member) Note(q parley.ID) {
	rank := 0
	for id := range m.View.Members.All() {
		m.Acks[q][id] = max(m.Acks[q][id], m.Vec[rank])
		rank++
	}
}

// Owe acknowledges what was received: at once if urgent, otherwise at the end of a batch.
func (m *Member) Owe(s *parley.Step, received []uint64, urgent bool) {
	switch {
	case urgent || m.hold == 0:
		m.tell(s, received)
	case !m.owes:
		m.owes = true
		s.SetTimer(flushing, m.hold)
	}
}

// Flush ends a batch when its timer expires.
func (m *Member) Flush(s *parley.Step, t parley.Timer, received []uint64) {
	if t == flushing && m.owes {
		m.owes = false
		m.tell(s, received)
	}
}

// tell sends ACK(received) to all other members.
func (m *Member) tell(s *parley.Step, received []uint64) {
	s.SendTo(m.View.Members, parley.Msg{Kind: Ack, Body: m.Acknowledge(s, received, 0)})
}

// Acknowledge returns the vector of what was received, with capacity for a payload after it. The caller must
// send it: the pending acknowledgement is canceled.
func (m *Member) Acknowledge(s *parley.Step, received []uint64, room int) []byte {
	copy(m.Acks[m.Self], received)
	if m.owes {
		m.owes = false
		s.StopTimer(flushing)
	}
	return AppendVector(make([]byte, 0, 1+3*len(received)+room), m.View.Members, received)
}

// AppendVector appends the number of members, and the count of each.
func AppendVector(b []byte, members parley.Set, counts []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(members.Len()))
	for id := range members.All() {
		b = binary.AppendUvarint(b, counts[id])
	}
	return b
}

// ReadVector appends the counts of a vector to vec, and returns the bytes after it. ok reports whether it is
// valid.
func ReadVector(vec []uint64, b []byte) (out []uint64, rest []byte, ok bool) {
	r := parley.Reader{Rest: b}
	for i := r.Number(parley.MaxProcesses); i > 0 && !r.Bad; i-- {
		vec = append(vec, r.Number(Limit))
	}
	return vec, r.Rest, !r.Bad
}

// State visits the view and the messages that the layer keeps, which are durable in a durable group. It also visits
// the acknowledgements, which are never durable.
func (m *Member) State(v *parley.Vars, durable bool, kept func()) {
	v.DurableIf(durable, func() {
		parley.Num(v, "view", &m.View.Number)
		v.Set("members", &m.View.Members)
		kept()
	})
	parley.PerProcess(v, "acknowledged", m.Acks, func(_ parley.ID, row *[]uint64) { Counts(v, "by", *row) })
	v.Bool("owe", &m.owes)
}

// Counts visits one number for each process.
func Counts(v *parley.Vars, name string, counts []uint64) {
	parley.PerProcess(v, name, counts, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
}
