package judge

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"
)

// Orders compares the deliveries of the nodes in the group with each other, and with the broadcasts.
type Orders struct {
	names []string
	mu    sync.Mutex
	moved chan struct{} // closed at each delivery
	seed  maphash.Seed
	at    map[uint64]uint64 // hashes of the deliveries, by position
	heard []nodeDeliveries  // of each node
	casts map[string]*Cast  // by payload
	fence string            // the payload from which on nodes are judged again
	wrong error             // the first error
	liars map[string]bool   // the names of nodes that are or were faulty
	// The positions of payloads that only a faulty node can have broadcast.
	invented map[uint64]bool
	// The numbers of forgotten broadcasts: those found correct, and the refused ones.
	stands, refused int
}

// nodeDeliveries is what one node has delivered: pieces without gaps.
type nodeDeliveries struct {
	pieces []piece
	gaps   int
	// If unheard is true, deliveries are not judged until the node delivers the fence. fence is the position of the
	// fence, or 0 if the node has not delivered it.
	unheard bool
	fence   uint64
	// If lost is true, the node cannot be read any more from where reading stopped.
	lost bool
	// If distrusted is true, the node is faulty, and its deliveries are ignored.
	distrusted bool
}

// piece is a sequence of deliveries of one node from a position on.
type piece struct {
	from  uint64 // it has all deliveries at this position or later
	holds []uint64
}

// Cast is a payload that was broadcast.
type Cast struct {
	Node      int // the node that broadcast it
	At        time.Duration
	refused   bool // the node has refused it
	taken     bool // the node has acknowledged its delivery
	position  uint64
	delivered []bool // by node
	old       bool   // an earlier call of Settle saw it, not delivered
}

// NewOrders returns an Orders for nodes with these names.
func NewOrders(names ...string) *Orders {
	return &Orders{
		moved: make(chan struct{}), seed: maphash.MakeSeed(), at: make(map[uint64]uint64),
		names: names, heard: make([]nodeDeliveries, len(names)), casts: make(map[string]*Cast),
		liars: make(map[string]bool), invented: make(map[uint64]bool),
	}
}

func (o *Orders) fail(form string, args ...any) {
	if o.wrong == nil {
		o.wrong = fmt.Errorf(form, args...)
	}
}

// Cast records a payload that is about to be broadcast.
func (o *Orders) Cast(payload string, node int, at time.Duration) {
	o.mu.Lock()
	o.casts[payload] = &Cast{Node: node, At: at, delivered: make([]bool, len(o.heard))}
	o.mu.Unlock()
}

// Answered records the node's answer to a broadcast.
func (o *Orders) Answered(payload string, taken, refused bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.casts[payload]; c != nil {
		c.taken, c.refused = taken, refused
		if refused && c.position > 0 {
			o.fail("%s: %s said that it is not carried, and it was delivered", payload, o.names[c.Node])
		}
	}
}

// Resume returns the position from which to read a node next: 1 at the beginning, because no position is 0.
func (o *Orders) Resume(node int) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.heard[node]
	if e.unheard && e.lost {
		return 0
	}
	if len(e.pieces) == 0 {
		e.pieces = append(e.pieces, piece{from: 1})
	}
	p := &e.pieces[len(e.pieces)-1]
	if len(p.holds) == 0 {
		return p.from
	}
	return p.last() + 1
}

// Gap records that a node cannot be read from there on: a new piece begins with its next delivery.
func (o *Orders) Gap(node int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.heard[node]
	if e.unheard {
		e.lost = true
		return
	}
	e.gaps++
	e.pieces = append(e.pieces, piece{})
}

// Deliver records a delivery of a node.
func (o *Orders) Deliver(node int, position uint64, from, payload string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.heard[node]
	if e.distrusted {
		return
	}
	if e.unheard {
		o.unjudged(node, position, payload)
		return
	}
	p := &e.pieces[len(e.pieces)-1]
	if p.from == 0 {
		p.from = position
		if len(e.pieces) > 1 {
			if before := e.pieces[len(e.pieces)-2].last(); before >= position {
				o.fail("%s: position %d after %d", o.names[node], position, before)
			}
		}
	}
	if position < p.from || position <= p.last() {
		o.fail("%s: position %d comes after %d", o.names[node], position, max(p.from, p.last()))
		return
	}
	p.holds = append(p.holds, position)
	hash := maphash.String(o.seed, from+" "+payload)
	if was, is := o.at[position]; is && was != hash {
		o.fail("%s: at position %d is %q of %s, and something else at another node", o.names[node], position, payload, from)
	}
	o.at[position] = hash
	switch c := o.casts[payload]; {
	case o.liars[from] && (c == nil || from != o.names[c.Node]):
		o.invented[position] = true
	case c == nil:
		o.fail("%s: position %d: %q of %s was never broadcast", o.names[node], position, payload, from)
	case c.refused:
		o.fail("%s: %s said that it is not carried, and it was delivered", payload, o.names[c.Node])
	case c.position != 0 && c.position != position:
		o.fail("%s is delivered twice: at %d and at %d", payload, c.position, position)
	case from != o.names[c.Node]:
		o.fail("%s was broadcast by %s, and is delivered as of %s", payload, o.names[c.Node], from)
	default:
		c.position, c.delivered[node] = position, true
	}
	o.move()
}

// move notifies those who wait for deliveries.
func (o *Orders) move() {
	close(o.moved)
	o.moved = make(chan struct{})
}

// Everywhere reports whether some nodes have all delivered a payload. The channel is closed when it is time to ask
// again.
func (o *Orders) Everywhere(payload string, which []int) (bool, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.casts[payload]
	return c != nil && !slices.ContainsFunc(which, func(i int) bool { return !c.delivered[i] }), o.moved
}

// Count returns the number of payloads broadcast, and how many of them were delivered somewhere.
func (o *Orders) Count() (cast, delivered int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.casts { // order: only counted
		if c.position > 0 {
			delivered++
		}
	}
	return len(o.casts) + o.stands + o.refused, delivered + o.stands
}

// Settle checks everything up to the last position that every node has delivered, and forgets it: what one node has
// delivered, every other must have delivered too, except in its gaps. Later deliveries are no loss yet, because some
// nodes lag. So nothing is lost in a run that ends with a payload of each node that all have delivered: see
// run.carries.
func (o *Orders) Settle() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	upto := ^uint64(0)
	for node := range o.heard {
		if !o.heard[node].distrusted {
			upto = min(upto, o.heard[node].last())
		}
	}
	var positions []uint64
	for position := range o.at { // order: sorted
		if position <= upto {
			positions = append(positions, position)
		}
	}
	slices.Sort(positions)
	for node := range o.heard {
		if o.heard[node].distrusted {
			continue
		}
		if missing, is := o.heard[node].misses(positions); is {
			o.fail("%s has not delivered what others have at position %d", o.names[node], missing)
		}
		o.heard[node].forget(upto)
	}
	for _, position := range positions {
		delete(o.at, position)
	}
	for payload, c := range o.casts { // order: the iterations are independent
		switch {
		case c.position > 0 && c.position <= upto:
			delete(o.casts, payload)
			o.stands++
		case c.position == 0 && c.refused && c.old:
			delete(o.casts, payload)
			o.refused++
		}
		c.old = true
	}
	return o.wrong
}

// Undelivered returns the payloads that a node has acknowledged and no node has delivered.
func (o *Orders) Undelivered() (out []Cast) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.casts { // order: counted, and the caller shows none
		if c.taken && c.position == 0 {
			out = append(out, *c)
		}
	}
	return out
}

// Gaps returns how often nodes could not be read from where reading stopped.
func (o *Orders) Gaps() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.heard {
		n += e.gaps
	}
	return n
}

// last returns the last position that a node has delivered.
func (e *nodeDeliveries) last() uint64 {
	for i := len(e.pieces) - 1; i >= 0; i-- {
		p := &e.pieces[i]
		if last := p.last(); last > 0 {
			return last
		}
		if p.from > 0 {
			return p.from - 1
		}
	}
	return 0
}

// misses returns the first of the positions that the node should have delivered and has not.
func (e *nodeDeliveries) misses(positions []uint64) (uint64, bool) {
	for i, p := range e.pieces {
		last := ^uint64(0)
		if i+1 < len(e.pieces) { // it ended with a gap
			if len(p.holds) == 0 {
				continue
			}
			last = p.last()
		}
		for _, position := range positions {
			if position < p.from || p.from == 0 || position > last {
				continue
			}
			if _, is := slices.BinarySearch(p.holds, position); !is {
				return position, true
			}
		}
	}
	return 0, false
}

// forget drops everything up to a position.
func (e *nodeDeliveries) forget(upto uint64) {
	for i := range e.pieces {
		p := &e.pieces[i]
		k, found := slices.BinarySearch(p.holds, upto)
		if found {
			k++
		}
		p.holds = slices.Clone(p.holds[k:])
		if p.from > 0 {
			p.from = max(p.from, upto+1)
		}
	}
	if n := len(e.pieces); n > 1 {
		e.pieces = slices.DeleteFunc(e.pieces, func(p piece) bool {
			return len(p.holds) == 0 && p.from <= upto+1 && p.from > 0
		})
		if len(e.pieces) == 0 {
			e.pieces = []piece{{from: upto + 1}}
		}
	}
}

// Again is the set of deliveries to read once more.
type Again struct {
	o     *Orders
	left  map[uint64]uint64 // by position
	wrong error
}

// Again returns all deliveries so far, for one node to read again.
func (o *Orders) Again() *Again {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Again{o: o, left: maps.Clone(o.at)}
}

// Deliver records a delivery that was read again, and reports whether more must be read.
func (a *Again) Deliver(position uint64, from, payload string) bool {
	if was, is := a.left[position]; is && was != maphash.String(a.o.seed, from+" "+payload) {
		a.wrong = fmt.Errorf("position %d is another payload than it was", position)
	}
	delete(a.left, position)
	return len(a.left) > 0
}

// Missing returns an error if something could not be read again.
func (a *Again) Missing() error {
	if a.wrong != nil || len(a.left) == 0 {
		return a.wrong
	}
	return fmt.Errorf("%d deliveries can not be read any more, the first at position %d", len(a.left),
		slices.Min(slices.Collect(maps.Keys(a.left))))
}
