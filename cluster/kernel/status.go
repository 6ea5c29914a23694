package kernel

import (
	"parley"
	"parley/cluster/host"
	"parley/mux"
)

// SlotStatus counts the slots of agreements, which are numbered from 1.
type SlotStatus struct {
	Opened uint64 `json:"opened"`
	Done   uint64 `json:"done"` // up to here all are over
	// Missed is the first slot that this node abstained from since it took part, 0 if there
	// is none, and Abstained how often it did in all.
	Missed    uint64 `json:"missed,omitempty"`
	Abstained uint64 `json:"abstained,omitempty"`
	// Mute tells that the node takes no part, or not yet, for it has come back, or has lost
	// touch with the others.
	Mute bool `json:"mute,omitempty"`
	// Waits tells of one that is mute that it could take part, and does when there is something
	// to agree on: all nodes have come back, or too many at once.
	Waits bool `json:"waits,omitempty"`
}

// Slots returns how the slots of a machine stand, which has abstained so often; nil if it has none.
func Slots(p *host.Process, abstained uint64) (s *SlotStatus) {
	p.Do(func(m parley.Machine, _ parley.Tick) {
		if of, ok := m.(interface{ Slots() *mux.Pipeline }); ok {
			l := of.Slots()
			s = &SlotStatus{
				Opened: l.Opened(), Done: l.Done(), Missed: l.Missed(), Abstained: abstained,
				Mute: l.Muted(), Waits: l.Muted() && l.Waits(),
			}
		}
	})
	return s
}
