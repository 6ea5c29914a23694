// Package problem states the properties of broadcast: reliable, FIFO, causal and total order, uniform or not. Other
// packages have the protocols.
//
// A process broadcasts when it gets a [Request]. It delivers a broadcast as a message of kind Carried, with the
// sender and the payload. Sender and payload identify a broadcast. If one sender broadcasts a payload several
// times, the k-th delivery at a process belongs to the k-th broadcast.
//
// A process that restarts after a crash begins another incarnation. Each incarnation counts as a separate sender:
// no property orders the broadcasts of a process before a crash and its broadcasts after the crash.
//
// Source: the lecture (docs/explanation/sources.md) on broadcast, its definitions of reliable, FIFO, causal and
// atomic broadcast. The uniform properties are from Hadzilacos and Toueg (1994).
package problem

import (
	"errors"
	"fmt"

	"parley"
)

// CarryTo is the kind of a Request to carry a payload only to named receivers. It is a local kind, so no message has
// it. Body: the receivers and the payload (see [RequestTo]).
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
	// SenderIntegrity is integrity if senders may lie: a delivery may name a faulty process as the sender of a
	// broadcast, even if nobody requested this broadcast.
	SenderIntegrity = "integrity of correct senders"
	// Delivery detects runs in which nothing is delivered.
	Delivery = "delivery"
)

// Request returns the request to broadcast the payload to all.
func Request(payload []byte) parley.Msg {
	return parley.Msg{Kind: parley.Carried, Body: payload}
}

// RequestTo returns the request to send the payload to a set of processes, by a broadcast to selected
// receivers.
func RequestTo(to parley.Set, payload []byte) parley.Msg {
	return parley.Msg{Kind: CarryTo, Body: append(parley.AppendSet(nil, to), payload...)}
}

// Decode returns the receivers and the payload of a request of either kind, among n processes. It returns an
// error if receivers are beyond n or there are none.
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

// Delivered returns the sender and the payload of a delivery, and reports whether it delivers a broadcast.
func Delivered(d *parley.ExternalEvent) (sender parley.ID, payload []byte, ok bool) {
	return d.From, d.Msg.Body, d.Msg.Kind == parley.Carried
}

// Name returns the name of a broadcast for people.
func Name(h *parley.History, sender parley.ID, payload []byte) string {
	return fmt.Sprintf("%s of %s", parley.Printable(payload), h.Name(sender))
}

// InLife returns the name of an incarnation of a process. The first incarnation has the name of the process, such as 2.
// The name of a later incarnation also has its number, such as 2.3.
func InLife(process string, life uint64) string {
	if life == 1 {
		return process
	}
	return fmt.Sprintf("%s.%d", process, life)
}

// Number returns the name of a broadcast: sender, incarnation and sequence number, as 2#7 or 2.3#1.
func Number(sender string, life, seq uint64) string {
	return fmt.Sprintf("%s#%d", InLife(sender, life), seq)
}

// RenameOrigin is the Rename function for messages that name a process only in Origin.
func RenameOrigin(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	if int(m.Origin) < len(perm) {
		m.Origin = perm[m.Origin]
	}
	return m
}
