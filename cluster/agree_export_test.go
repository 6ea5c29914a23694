package cluster

// FillWindow takes all places that questions of a node may have.
func FillWindow(n *Node, a Algorithm, m int) {
	o, err := n.streams.open(n, stream{algorithm: a, m: m, source: n.self})
	if err != nil {
		panic(err)
	}
	for len(o.room) < cap(o.room) {
		o.room <- struct{}{}
	}
}
