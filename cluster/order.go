package cluster

import (
	"encoding/binary"

	"parley"
	"parley/cluster/kernel"
)

// order is a Byzantine group that a service stands on.
type order struct {
	*Group
	most int
}

// order opens an order of all nodes.
func (n *Node) order(channel uint32, name string, deliver func(parley.ID, []byte)) (kernel.Order, error) {
	g, err := n.newGroup(GroupConfig{
		Name: name, Level: Byzantine, Keep: 1, Deliver: func(d Delivery) { deliver(d.From, d.Payload) }, final: true,
	}, channel)
	if err != nil {
		return nil, err
	}
	return order{g, n.c.views().Payload - 2*binary.MaxVarintLen64}, nil
}

// Post puts a payload on its way, whatever the node takes of clients.
func (o order) Post(payload []byte) error { return o.packer.post(payload, Byzantine) }

// Most is the greatest length of a payload.
func (o order) Most() int { return o.most }

// Aside tells whether this node hears nothing of the order.
func (o order) Aside() bool {
	s := kernel.Slots(o.process, 0)
	return s != nil && (s.Mute || s.Missed > 0)
}

// Close ends what waits.
func (o order) Close() { o.close(ErrClosed) }
