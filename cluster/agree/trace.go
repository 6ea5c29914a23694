package agree

import (
	"fmt"

	"parley/agreement/stream"
	"parley/cluster/protocols"
	"parley/trace"
)

// Describe records in the header of a stream's trace the protocol of its slots, or of the stream if it has no rounds.
func Describe(h *trace.Header, s *Service) {
	t := protocols.StreamOf(h.Node.Channel)
	h.M = t.M
	size := fmt.Sprintf("--n=%d", h.N)
	if h.Protocol, h.Args = catalogued(t, size); !t.Timed() {
		h.Protocol = "stream"
		h.Args = []string{h.Protocol, size, fmt.Sprintf("--m=%d", t.M), "--algorithm=" + t.Algorithm.String(),
			fmt.Sprintf("--source=%d", t.Source+1), fmt.Sprintf("--window=%d", s.budget.Window(t))}
	}
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
