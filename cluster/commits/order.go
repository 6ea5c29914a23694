package commits

import (
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/commit/ordered"
)

// orderName is the name of the order, as of a group.
const orderName = "commit:order"

// order carries the broadcasts of the transaction machine: a Byzantine order of all nodes.
type order struct {
	s    *Service
	of   kernel.Order
	wg   sync.WaitGroup
	stop chan struct{}

	mu      sync.Mutex
	waiting [][]byte // yet to be broadcast
	more    sync.Cond
	closed  bool
}

func newOrder(s *Service) (o *order) {
	o = &order{s: s, stop: make(chan struct{})}
	o.more.L = &o.mu
	return o
}

// open opens the order. The machine is open: the order may deliver at once.
func (o *order) open() (err error) {
	if o.of, err = o.s.k.Order(kernel.OrderChannel, orderName, o); err != nil {
		return err
	}
	o.wg.Go(o.send)
	o.wg.Go(o.watch)
	return nil
}

// close ends all waiting calls and goroutines.
func (o *order) close() {
	close(o.stop)
	o.mu.Lock()
	o.closed = true
	o.more.Broadcast()
	o.mu.Unlock()
	if o.of != nil {
		o.of.Close()
	}
	o.wg.Wait()
}

// broadcast queues a broadcast of the machine. It is part of a step, so another goroutine sends it.
func (o *order) broadcast(m parley.Msg) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, append([]byte{byte(m.Kind - ordered.Begin + 1)}, m.Body...))
	o.more.Signal()
}

// send submits the queued broadcasts to the order. It blocks while too many are in flight.
func (o *order) send() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.waiting) == 0 && !o.closed {
			o.more.Wait()
		}
		if o.closed {
			return
		}
		list := o.waiting
		o.waiting = nil
		o.mu.Unlock()
		for _, b := range list {
			if err := o.of.Post(b); err != nil {
				o.s.giveUp(fmt.Errorf("%w: %w", kernel.ErrUnknown, err))
			}
		}
		o.mu.Lock()
	}
}

// Deliver passes a delivery of the order to the machine. It is part of a step of the order.
func (o *order) Deliver(position uint64, from parley.ID, b []byte) {
	m := parley.Msg{Kind: ordered.Void, Seq: position, Body: b}
	if len(b) > 0 && b[0] > 0 && parley.Kind(b[0]) <= ordered.Expire-ordered.Begin+1 {
		m.Kind, m.Body = ordered.Begin-1+parley.Kind(b[0]), b[1:]
	}
	o.s.process.Carried(from, m)
}

// From notifies the machine where the deliveries continue.
func (o *order) From(position uint64) {
	o.s.process.Carried(o.s.k.Self, parley.Msg{Kind: ordered.From, Seq: position})
}

// Live notifies the machine that what follows is new.
func (o *order) Live() { o.s.process.Carried(o.s.k.Self, parley.Msg{Kind: ordered.Live}) }

// missed reports whether this node has missed a part of the order for good.
func (o *order) missed() (missed bool) {
	o.s.process.Do(func(m parley.Machine, _ parley.Tick) {
		of, ok := m.(interface{ Missed() bool })
		missed = ok && of.Missed()
	})
	return missed
}

// takes returns an error if a transaction cannot begin for which the machine would broadcast size bytes.
func (o *order) takes(size int) error {
	if most := o.of.Most(); size+1 > most {
		return fmt.Errorf("%w: the transaction has %d bytes: at most %d are allowed", kernel.ErrRefused, size+1, most)
	}
	switch {
	case !o.of.Member():
		return fmt.Errorf("%w: %w", kernel.ErrRefused, kernel.ErrNotMember)
	case o.missed():
		return fmt.Errorf("%w: %w: transactions that the others no longer keep", kernel.ErrRefused, kernel.ErrAbstained)
	}
	return nil
}

// watch ends waiting calls when this node has heard nothing of the order for long: the other nodes, which the
// machine asks, may not know the outcome either.
func (o *order) watch() {
	tick := time.NewTicker(o.s.c.Delay)
	defer tick.Stop()
	for silent := time.Duration(0); ; {
		select {
		case <-o.stop:
			return
		case <-tick.C:
		}
		if o.of.Member() && !o.missed() {
			continue
		}
		if silent += o.s.c.Delay; silent > o.s.c.Votes+16*o.s.c.Delay {
			o.s.giveUp(fmt.Errorf("%w: %w", kernel.ErrUnknown, kernel.ErrAbstained))
		}
	}
}
