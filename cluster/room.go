package cluster

import (
	"fmt"

	"parley/cluster/store"
)

// ErrNoRoom is the error of a request to a node with less than 64 MiB of room on its disk: the request would
// be written there. Reads are answered. It is [ErrRefused].
var ErrNoRoom error = noRoom{}

type noRoom struct{}

func (noRoom) Error() string        { return "refused: this node's disk is nearly full" }
func (noRoom) Is(target error) bool { return target == ErrRefused }

// hasRoom returns an ErrNoRoom if a request must not be written because there is little room on the disk.
func (n *Node) hasRoom() error {
	if n.store == nil {
		return nil
	}
	if err := n.store.Room(n.store.Least()); err != nil {
		return fmt.Errorf("%w: %w, or ask another node", ErrNoRoom, err)
	}
	return nil
}

// storeStatus returns how the durable memory is, nil without one.
func (n *Node) storeStatus() *StoreStatus {
	if n.store == nil {
		return nil
	}
	st := n.store.Stats()
	s := &StoreStatus{
		Records: st.Records, Durable: st.Durable, Bytes: st.Bytes, Position: st.Position,
		Free: st.Free, Slowest: st.Slowest,
	}
	if st.Err != nil {
		s.Error = st.Err.Error()
	}
	if err := n.store.Room(n.store.Least()); err != nil {
		s.Full = err.Error()
	} else if err := n.store.Room(store.RoomWarn); err != nil {
		s.Low = err.Error()
	}
	return s
}
