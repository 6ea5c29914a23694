package judge

import "slices"

// Unhear has nothing judged any more of what nodes deliver, until each delivers the fence.
func (o *Orders) Unhear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fence = ""
	for i := range o.heard {
		e := &o.heard[i]
		if n := len(e.pieces); !e.unheard && e.fence > 0 && len(e.pieces[n-1].holds) == 0 {
			e.pieces = e.pieces[:n-1] // nothing came after the last fence
		}
		e.unheard, e.fence, e.lost = true, 0, false
	}
}

// Build has each node that delivers this payload be heard from there on. It is broadcast by a node after this.
func (o *Orders) Build(fence string) {
	o.mu.Lock()
	o.fence = fence
	o.mu.Unlock()
}

// unjudged notes a payload that a node delivers that is not heard.
func (o *Orders) unjudged(node int, position uint64, payload string) {
	e, c := &o.heard[node], o.casts[payload]
	if c == nil {
		return // of those who speak while a liar does, or made up by it
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

// last is the last position of a piece, 0 if there is none.
func (p *piece) last() uint64 {
	if len(p.holds) == 0 {
		return 0
	}
	return p.holds[len(p.holds)-1]
}

// Fences are the positions at which nodes have delivered the fence, 0 for those that have not.
func (o *Orders) Fences() (out []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.heard {
		out = append(out, e.fence)
	}
	return out
}

// Fenced judges what was broadcast while nodes were not heard, when all have delivered the fence: all have delivered
// what a node has said that it delivered.
func (o *Orders) Fenced() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for payload, c := range o.casts { // order: each by itself
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

// Strangers are the nodes of which the fence has another position than that of most.
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
