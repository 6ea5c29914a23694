package trace

import (
	"bytes"
	"fmt"
	"strings"
)

// Divergence describes the place where two traces diverge: their first events that differ.
type Divergence struct {
	// At is the number of equal events before the divergence: event At+1 differs, or is missing from one of
	// the two.
	At uint64
	// Common are the last equal events. A and B are the first events from the divergence on. One of them is
	// empty if its trace ends there.
	Common, A, B []Event
	// Fields names the fields that differ between the first events of A and B, as in the file format. It is
	// empty if one of them is missing.
	Fields []string
}

// Diff compares two logs that kept their events. It returns the place where they diverge, with up to context
// events before and after it, or nil if the logs are equal.
func Diff(a, b *Log, context int) *Divergence {
	at := 0
	for at < len(a.Events) && at < len(b.Events) && len(differences(&a.Events[at], &b.Events[at])) == 0 {
		at++
	}
	if at == len(a.Events) && at == len(b.Events) {
		return nil
	}
	p := &Divergence{At: uint64(at), Common: a.Events[max(0, at-context):at]}
	p.A, p.B = a.Events[at:min(len(a.Events), at+context+1)], b.Events[at:min(len(b.Events), at+context+1)]
	if len(p.A) > 0 && len(p.B) > 0 {
		p.Fields = differences(&p.A[0], &p.B[0])
	}
	return p
}

// differences names the fields in which two events differ.
func differences(a, b *Event) []string {
	var out []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"op", a.Op == b.Op}, {"t", a.Time == b.Time}, {"at", a.At == b.At}, {"peer", a.Peer == b.Peer},
		{"cause", a.Cause == b.Cause}, {"epoch", a.Epoch == b.Epoch}, {"path", a.Path == b.Path},
		{"kind", a.Msg.Kind == b.Msg.Kind}, {"origin", a.Msg.Origin == b.Msg.Origin},
		{"seq", a.Msg.Seq == b.Msg.Seq}, {"value", a.Msg.Value == b.Msg.Value},
		{"body", bytes.Equal(a.Msg.Body, b.Msg.Body)},
	} {
		if !f.same {
			out = append(out, f.name)
		}
	}
	return out
}

// String returns the divergence in one line.
func (p *Divergence) String() string {
	switch {
	case len(p.A) == 0:
		return fmt.Sprintf("the first trace ends after event %d, and the second continues", p.At)
	case len(p.B) == 0:
		return fmt.Sprintf("the second trace ends after event %d, and the first continues", p.At)
	}
	return fmt.Sprintf("event %d differs in %s", p.At+1, strings.Join(p.Fields, ", "))
}
