package agree

import (
	"fmt"
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/kernel"
	"parley/lockstep"
	"parley/trace"
)

// Describe records in the header of a stream's trace the protocol of its slots.
func Describe(h *trace.Header) {
	t := StreamOf(h.Node.Channel)
	h.M = t.M
	h.Protocol, h.Args = catalogued(t, fmt.Sprintf("--n=%d", h.N))
}

// catalogued returns the catalog's name for the protocol of a slot, and its arguments.
func catalogued(t stream.Key, size string) (name string, args []string) {
	m, otherwise := fmt.Sprintf("--m=%d", t.M), "--default="+string(stream.NoValue())
	if t.All() {
		return "interactive", []string{"interactive", size, m, "--over=" + t.Algorithm.String(), otherwise}
	}
	name = t.Algorithm.String()
	args = []string{name, size, m, fmt.Sprintf("--source=%d", t.Source+1), otherwise}
	if t.Algorithm == stream.SM {
		args = append(args, "--relay=two")
	}
	return name, args
}

// SlotProtocol returns the protocol of one slot and its last round, given the header of a stream's trace. In that
// trace, the Value of a frame and the Seq of a decision are the number of the slot. For other traces ok is false.
func SlotProtocol(h trace.Header) (p parley.Protocol, last int, ok bool) {
	if h.Node == nil || h.Node.Channel < kernel.FirstStream || h.Node.Channel > kernel.LastStream {
		return parley.Protocol{}, 0, false
	}
	t := StreamOf(h.Node.Channel)
	if t.Check(h.N) != nil || Name(t) != h.Node.Machine {
		return parley.Protocol{}, 0, false
	}
	rounds := t.Rounds(h.N)
	return lockstep.Of(rounds, schedule(time.Duration(max(h.Node.Round, 1)))), rounds.Last, true
}
