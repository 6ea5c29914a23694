// Package protocols says which protocol each machine of a node runs: a group has that of its level, and a stream of
// agreements that of its algorithm. Nodes take their protocols from here, and so do programs that read the traces of
// nodes. Such a program needs no cluster, and may run in a browser.
package protocols

import (
	"slices"
	"strings"

	"parley"
	"parley/membership/group"
	"parley/trace"
)

// The channels of groups and of streams of agreements, as package kernel documents them.
const (
	FirstGroup  = 16
	FirstStream = 2048
	LastStream  = 4095
)

// DurableArg is the argument of a durable group of level Byzantine in the header of its trace.
const DurableArg = "--durable"

// OfGroup returns the protocol of a group, given the header of its trace. It returns false for other traces.
func OfGroup(h trace.Header) (parley.Protocol, bool) {
	if h.Node == nil || !strings.HasPrefix(h.Node.Machine, "group/") || h.N < 1 || h.M < 0 || h.M > h.N-2 {
		return parley.Protocol{}, false
	}
	level, err := ParseLevel(h.Node.Level)
	if err != nil {
		return parley.Protocol{}, false
	}
	// The trace does not say how long the node waits for others. No promise depends on that.
	views := group.Config{N: h.N, Return: true, Liars: (h.N - 1) / 3}.WithDefaults()
	views.Durable = slices.Contains(h.Args, DurableArg)
	p, err := Group(level, views, h.M)
	return p, err == nil
}
