package cluster

import "parley/agreement/stream"

// FillWindow takes all places that questions of a node may have.
func FillWindow(n *Node, a Algorithm, m int) {
	o, err := n.streams.open(n, stream.Key{Algorithm: a, M: m, Source: n.k.Self})
	if err != nil {
		panic(err)
	}
	for len(o.room) < cap(o.room) {
		o.room <- struct{}{}
	}
}
