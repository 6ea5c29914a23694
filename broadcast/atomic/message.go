package atomic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"parley"
)

// The messages. Each message is about a message m of the layer above. Origin is the sender of m. Seq is the number of
// m among the messages of this sender, from 1; in the form in views, the numbers restart in each view. Body begins
// with a number, the mark. In the lecture's form the mark is a ballot. In the form in views it is the number of the
// message among all messages on its link in this view, from 1. Fields that a kind does not use are zero.
const (
	// Req carries m to a receiver and asks for a proposal. Body: mark, receivers, payload.
	Req parley.Kind = iota + 1
	// Prop proposes a priority, which consists of the number in Value and the sender of Prop. Body: mark.
	Prop
	// Final carries the final priority of m. Value: its number. Body: mark, proposer and, for receivers that
	// do not hold m, receivers and payload.
	Final
	// Status asks what a receiver knows about m; lecture's form only. Body: mark.
	Status
	// Known answers Status. Value: the number of the priority. Body: mark, state, proposer.
	Known
	// Refuse reports that its sender has seen a greater ballot for m; lecture's form only. Body: mark, that
	// ballot.
	Refuse
	// Logged reports that its sender has logged m's final priority; form in views only. Body: mark.
	Logged
)

var kinds = []string{"", "REQ", "PROP", "FINAL", "STATUS", "KNOWN", "REFUSE", "LOGGED"}

// maxNumber is the largest number, ballot or count that is accepted from a peer.
const maxNumber = 1 << 56

// State is what a receiver knows about a message: the lecture's answers III, I and II, and a fourth answer, which the
// lecture omits.
type State uint8

// The states of a message at a receiver.
const (
	Unknown       State = iota // III: it has not arrived
	Undeliverable              // I: held, with the receiver's own proposal
	Deliverable                // II: held, with the final priority
	Delivered                  // delivered with the final priority and gone from the queue
)

func (s State) String() string {
	return [...]string{"unknown", "undeliverable", "deliverable", "delivered"}[s]
}

// message is a decoded message.
type message struct {
	kind parley.Kind
	name
	mark     uint64
	priority Priority
	state    State
	to       parley.Set // in a Final: empty if there is no payload
	body     []byte
}

func (m message) encode() parley.Msg {
	out := parley.Msg{Kind: m.kind, Origin: m.sender, Seq: m.k}
	b := binary.AppendUvarint(nil, m.mark)
	switch m.kind {
	case Req:
		b = append(parley.AppendSet(b, m.to), m.body...)
	case Prop:
		out.Value = m.priority.Number
	case Final:
		out.Value = m.priority.Number
		b = binary.AppendUvarint(b, uint64(m.priority.By))
		if m.to != (parley.Set{}) {
			b = append(parley.AppendSet(b, m.to), m.body...)
		}
	case Known:
		out.Value = m.priority.Number
		b = append(b, byte(m.state))
		b = binary.AppendUvarint(b, uint64(m.priority.By))
	}
	out.Body = b
	return out
}

// The errors of decode.
var (
	errRange  = errors.New("kind, sender or number out of range")
	errUnused = errors.New("fields that are not used")
	errBody   = errors.New("malformed body")
)

// decode decodes a message from one of n processes.
func decode(q parley.Msg, from parley.ID, n int) (message, error) {
	m := message{kind: q.Kind, name: name{q.Origin, q.Seq}, priority: Priority{q.Value, from}}
	if q.Kind < Req || q.Kind > Logged || int(q.Origin) >= n || q.Seq == 0 || q.Seq > maxNumber || q.Value > maxNumber {
		return m, errRange
	}
	r := parley.Reader{Rest: q.Body}
	m.mark = r.Number(maxNumber)
	hasMessage := q.Kind == Req
	switch q.Kind {
	case Final:
		m.priority.By = r.ID(n)
		hasMessage = len(r.Rest) > 0
	case Known:
		m.state = State(r.Number(uint64(Delivered)))
		m.priority.By = r.ID(n)
	}
	if hasMessage {
		m.to = r.Set(n)
		m.body, r.Rest = r.Rest, nil
		r.Bad = r.Bad || m.to == (parley.Set{})
	}
	if numbered := q.Kind == Prop || q.Kind == Final || q.Kind == Known; !numbered && q.Value != 0 {
		return m, errUnused
	}
	if !r.Done() {
		return m, errBody
	}
	return m, nil
}

// PriorityOf returns the priority in a message: a proposal, a final priority, or the priority in an answer. The
// argument from is the process that sent the message, and n is the number of processes.
func PriorityOf(m parley.Msg, from parley.ID, n int) (Priority, bool) {
	read, err := decode(m, from, n)
	told := m.Kind == Prop || m.Kind == Final || m.Kind == Known && read.state != Unknown
	return read.priority, err == nil && told
}

// explain returns the Explain function. what says what the mark is.
func explain(n int, what string) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(e parley.Env, q parley.Msg, who func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			m, err := decode(q, e.From, n)
			if err != nil {
				return
			}
			at := func(p Priority) string { return " at " + strconv.FormatUint(p.Number, 10) + "." + who(p.By) }
			row := kinds[m.kind] + " " + who(m.sender) + "#" + strconv.FormatUint(m.k, 10)
			switch {
			case m.kind == Prop || m.kind == Final:
				row += at(m.priority)
			case m.kind == Known && m.state == Unknown:
				row += " unknown"
			case m.kind == Known:
				row += " " + m.state.String() + at(m.priority)
			}
			if m.to != (parley.Set{}) {
				row += " to"
				for id := range m.to.All() {
					row += " " + who(id)
				}
				row += ": " + parley.Printable(m.body)
			}
			if what == "ballot" && m.mark < uint64(n) { // the sender's own, and no takeover
				yield(row)
				return
			}
			yield(fmt.Sprintf("%s (%s %d)", row, what, m.mark))
		}
	}
}
