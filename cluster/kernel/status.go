package kernel

import (
	"cmp"
	"slices"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/store"
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
				Mute: l.Inactive(), Waits: l.Inactive() && l.Waits(),
			}
		}
	})
	return s
}

// RefusedStatus counts what one machine did not accept of one member.
type RefusedStatus struct {
	Machine string `json:"machine"`
	From    string `json:"from"`
	Why     string `json:"why"`
	Times   uint64 `json:"times"`
}

// The reasons of machines that abstain: their rounds were late, or they heard too few others.
const (
	abstains = "woke too late: abstains"
	cutOff   = "heard too few: abstains"
)

// Refused returns what machines did not accept of others, and how often each machine of this node has abstained.
func (k *Kernel) Refused() (list []RefusedStatus, abstained map[string]uint64) {
	list, abstained = []RefusedStatus{}, make(map[string]uint64)
	k.Host.Refused(func(machine string, from parley.ID, why string, times uint64) {
		if from == k.Self && (why == abstains || why == cutOff) {
			abstained[machine] += times
		}
		list = append(list, RefusedStatus{machine, k.Name(from), why, times})
	})
	slices.SortFunc(list, func(a, b RefusedStatus) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.From, b.From), cmp.Compare(a.Why, b.Why))
	})
	return list, abstained
}

// StoreStatus is the durable memory of the node.
type StoreStatus struct {
	Records uint64 `json:"records"` // handed over in this life
	Durable uint64 `json:"durable"` // of them on the disk
	Bytes   uint64 `json:"bytes"`
	// Position is the number of the last record on the disk, over all lives.
	Position uint64 `json:"position"`
	// Free is how many bytes were free on the disk at most a second ago.
	Free uint64 `json:"free"`
	// Slowest is how long the slowest commit of this life took, in nanoseconds.
	Slowest time.Duration `json:"slowest"`
	// Low is a warning if less than 256 MiB are free, and Full says why new requests are refused if
	// less than 64 MiB are: see ErrNoRoom. At most one is set.
	Low   string `json:"low,omitempty"`
	Full  string `json:"full,omitempty"`
	Error string `json:"error,omitempty"`
}

// StoreStatus returns how the durable memory is, nil without one.
func (k *Kernel) StoreStatus() *StoreStatus {
	if k.Store == nil {
		return nil
	}
	st := k.Store.Stats()
	s := &StoreStatus{
		Records: st.Records, Durable: st.Durable, Bytes: st.Bytes, Position: st.Position,
		Free: st.Free, Slowest: st.Slowest,
	}
	if st.Err != nil {
		s.Error = st.Err.Error()
	}
	if err := k.Store.Room(k.Store.Least()); err != nil {
		s.Full = err.Error()
	} else if err := k.Store.Room(store.RoomWarn); err != nil {
		s.Low = err.Error()
	}
	return s
}
