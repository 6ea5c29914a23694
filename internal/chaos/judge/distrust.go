package judge

// Distrust says that a node is faulty: from now on its own deliveries are ignored, until Trust. Payloads that others
// deliver as broadcast by it may be anything, from now on and forever. Still all others must deliver them at the same
// positions.
func (o *Orders) Distrust(node int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard[node] = nodeDeliveries{distrusted: true}
	o.liars[o.names[node]] = true
}

// Trust judges the deliveries of a node that was faulty, and that has restarted with an empty disk: it must deliver
// everything from the first position on.
func (o *Orders) Trust(node int) {
	o.mu.Lock()
	o.heard[node] = nodeDeliveries{}
	o.mu.Unlock()
}

// Invented returns how many deliveries, at different positions, were of payloads that only a faulty node can have
// broadcast.
func (o *Orders) Invented() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.invented)
}
