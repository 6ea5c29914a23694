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

// SlotStatus counts the slots of a stream, which are numbered from 1.
type SlotStatus struct {
	Opened uint64 `json:"opened"`
	Done   uint64 `json:"done"` // all slots up to this one are finished
	// Missed is the first slot from which this node abstained since it last began to participate, 0 if none.
	// Abstained counts all such slots.
	Missed    uint64 `json:"missed,omitempty"`
	Abstained uint64 `json:"abstained,omitempty"`
	// Mute says that the node does not participate, because it has restarted or lost contact with the others.
	Mute bool `json:"mute,omitempty"`
	// Waits says that a mute node could participate, and begins as soon as there is something to agree on. This
	// happens when all nodes, or too many at once, have restarted.
	Waits bool `json:"waits,omitempty"`
}

// Slots returns the status of a machine's slots, given how often it has abstained; nil if it has no slots.
func Slots(p *host.Process, abstained uint64) (s *SlotStatus) {
	p.Do(func(m parley.Machine, _ parley.Tick) {
		if of, ok := m.(interface{ Slots() *mux.Pipeline }); ok {
			l := of.Slots()
			s = &SlotStatus{
				Opened: l.Opened(), Done: l.Done(), Missed: l.Missed(), Abstained: abstained,
				Mute: l.Inactive(), Waits: l.Inactive() && l.Waits(),
			}
		} else if of, ok := m.(interface {
			Progress() (opened, done uint64, mute bool)
		}); ok {
			opened, done, mute := of.Progress()
			s = &SlotStatus{Opened: opened, Done: done, Mute: mute}
		}
	})
	return s
}

// RefusedStatus counts the messages of one member that one machine refused, for one reason.
type RefusedStatus struct {
	Machine string `json:"machine"`
	From    string `json:"from"`
	Why     string `json:"why"`
	Times   uint64 `json:"times"`
}

// Refused returns which messages of others machines refused, and how often each machine of this node has
// abstained.
func (k *Kernel) Refused() (list []RefusedStatus, abstained map[string]uint64) {
	list, abstained = []RefusedStatus{}, make(map[string]uint64)
	k.Host.Refused(func(machine string, from parley.ID, why string, times uint64) {
		if from == k.Self && (why == parley.WokeTooLate || why == parley.HeardTooFew) {
			abstained[machine] += times
		}
		list = append(list, RefusedStatus{machine, k.Name(from), why, times})
	})
	slices.SortFunc(list, func(a, b RefusedStatus) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.From, b.From), cmp.Compare(a.Why, b.Why))
	})
	return list, abstained
}

// StoreStatus is the status of the node's durable state.
type StoreStatus struct {
	Records uint64 `json:"records"` // submitted by this incarnation
	Durable uint64 `json:"durable"` // of these, how many are on disk
	Bytes   uint64 `json:"bytes"`
	// Position is the number of the last record on disk, counted over all incarnations.
	Position uint64 `json:"position"`
	// Free is how many bytes were free on the disk at most 1 s ago.
	Free uint64 `json:"free"`
	// Slowest is the duration of the slowest commit of this incarnation, in nanoseconds.
	Slowest time.Duration `json:"slowest"`
	// Low is a warning if less than 256 MiB are free. Full says why requests are refused if less than 64 MiB are
	// free: see ErrNoRoom. At most one of them is set.
	Low   string `json:"low,omitempty"`
	Full  string `json:"full,omitempty"`
	Error string `json:"error,omitempty"`
}

// StoreStatus returns the status of the durable state, nil if there is none.
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
