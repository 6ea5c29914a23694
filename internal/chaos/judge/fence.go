package judge

import "slices"

// Unhear stops judging the deliveries of every node until that node delivers the next fence.
func (o *Orders) Unhear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fence = ""
	for i := range o.heard {
		e := &o.heard[i]
		if n := len(e.pieces); !e.unheard && e.fence > 0 && len(e.pieces[n-1].holds) == 0 {
			e.pieces = e.pieces[:n-1] // nothing was delivered after the last fence
		}
		e.unheard, e.fence, e.lost = true, 0, false
	}
}

// Build sets the fence: the deliveries of each node that delivers this payload are judged from there on. A node must
// broadcast it afterward.
func (o *Orders) Build(fence string) {
	o.mu.Lock()
	o.fence = fence
	o.mu.Unlock()
}

// unjudged records a payload delivered by a node that is not judged.
func (o *Orders) unjudged(node int, position uint64, payload string) {
	e, c := &o.heard[node], o.casts[payload]
	if c == nil {
		return // broadcast while a liar is active, or invented by it
	}
	if c.delivered[node] = true; payload == o.fence {
		if n := len(e.pieces); n > 0 && position <= e.pieces[n-1].last() {
			o.fail("%s: position %d comes after %d", o.names[node], position, e.pieces[n-1].last())
		}
		e.unheard, e.fence = false, position
		e.pieces = append(e.pieces, piece{from: position + 1})
	}
	o.move()
}

// last returns the last position of a piece, or 0 if it is empty.
func (p *piece) last() uint64 {
	if len(p.holds) == 0 {
		return 0
	}
	return p.holds[len(p.holds)-1]
}

// Fences returns the positions at which the nodes have delivered the fence, or 0 for nodes that have not.
func (o *Orders) Fences() (out []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.heard {
		out = append(out, e.fence)
	}
	return out
}

// Fenced judges the payloads broadcast while nodes were not judged, after all have delivered the fence: a payload
// that a node has acknowledged must have been delivered by all.
func (o *Orders) Fenced() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for payload, c := range o.casts { // order: the iterations are independent
		switch {
		case c.position > 0 || !slices.Contains(c.delivered, true) && !c.taken:
		case !slices.Contains(c.delivered, false):
			delete(o.casts, payload)
			o.stands++
		case c.taken:
			o.fail("%s: %s has said that it delivered it, and not all have: %v", payload, o.names[c.Node], c.delivered)
		}
	}
}

// Strangers returns the nodes whose fence has another position than at most nodes.
func Strangers(fences []uint64) (out []int) {
	times := make(map[uint64]int)
	most := fences[0]
	for _, at := range fences {
		if times[at]++; times[at] > times[most] {
			most = at
		}
	}
	for i, at := range fences {
		if at != most {
			out = append(out, i)
		}
	}
	return out
}
