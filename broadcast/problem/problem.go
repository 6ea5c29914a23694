// Package problem states what it is to broadcast: reliably, in FIFO order, in
// causal order, in one total order, and uniformly or not. Protocols solve it; this
// package says what it is to have solved it.
//
// A process is asked to broadcast by a [Request] and delivers a message of kind
// Carried with the sender and the payload. A broadcast is known by both: that a
// payload is broadcast twice by one sender is allowed, and then the k-th delivery
// at a process is that of the k-th broadcast.
//
// A process that crashes and comes back begins another life. As far as order goes
// each life is a sender of its own, as in any system in which a member is a process
// together with its incarnation: what a process broadcast before a crash and what
// it broadcasts afterwards is in no order.
//
// Source: the lecture on broadcast, its definitions of reliable, FIFO, causal and
// atomic broadcast; uniform properties as in Hadzilacos and Toueg (1994).
package problem

import (
	"errors"
	"fmt"

	"parley"
)

// CarryTo asks to carry a payload to named receivers alone. It is of local kind:
// only a Request. Body: the receivers and the payload, see [RequestTo].
const CarryTo parley.Kind = parley.Local + 0x10

// The names of the properties.
const (
	Validity          = "validity"
	Agreement         = "agreement"
	Integrity         = "integrity"
	FIFOOrder         = "FIFO order"
	CausalOrder       = "causal order"
	TotalOrder        = "total order"
	UniformAgreement  = "uniform agreement"
	UniformTotalOrder = "uniform total order"
	UniformPrefix     = "uniform prefix"
	// SenderIntegrity is integrity where senders may lie: what a faulty process is
	// said to have broadcast need not have been asked of it.
	SenderIntegrity = "integrity of correct senders"
	// Delivery guards against runs in which nothing happens.
	Delivery = "delivery"
)

// Request returns what asks a process to broadcast the payload to all.
func Request(payload []byte) parley.Msg {
	return parley.Msg{Kind: parley.Carried, Body: payload}
}

// RequestTo returns what asks a process to send the payload to the processes of
// a set, by a broadcast that goes to selected receivers.
func RequestTo(to parley.Set, payload []byte) parley.Msg {
	return parley.Msg{Kind: CarryTo, Body: append(parley.AppendSet(nil, to), payload...)}
}

// Decode returns the receivers and the payload of a request of either kind, of n
// processes. Receivers beyond n are an error, and so is an empty set of them.
func Decode(m parley.Msg, n int) (to parley.Set, payload []byte, err error) {
	switch m.Kind {
	case parley.Carried:
		return parley.Everyone(n), m.Body, nil
	case CarryTo:
		if to, payload, err = parley.ReadSet(m.Body, n); err == nil && to == (parley.Set{}) {
			err = errNobody
		}
		return to, payload, err
	}
	return to, nil, errKind
}

var (
	errKind   = errors.New("broadcast: no request to broadcast")
	errNobody = errors.New("broadcast: a request to nobody")
)

// Delivered returns the sender and the payload of a delivery, and whether it is
// that of a broadcast at all.
func Delivered(d *parley.ExternalEvent) (sender parley.ID, payload []byte, ok bool) {
	return d.From, d.Msg.Body, d.Msg.Kind == parley.Carried
}

// Name is how a broadcast is called in what is said to people.
func Name(h *parley.History, sender parley.ID, payload []byte) string {
	return fmt.Sprintf("%s of %s", parley.Printable(payload), h.Name(sender))
}

// InLife names a life of a process, by the name alone if it is the first: 2, or 2.3.
func InLife(process string, life uint64) string {
	if life == 1 {
		return process
	}
	return fmt.Sprintf("%s.%d", process, life)
}

// Number names a broadcast by its sender, the sender's life and its number in that: 2#7, or 2.3#1.
func Number(sender string, life, seq uint64) string {
	return fmt.Sprintf("%s#%d", InLife(sender, life), seq)
}

// RenameOrigin is the Rename of messages that name a process in Origin alone.
func RenameOrigin(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	if int(m.Origin) < len(perm) {
		m.Origin = perm[m.Origin]
	}
	return m
}
