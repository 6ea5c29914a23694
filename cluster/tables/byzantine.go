package tables

import (
	"sync"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/replica/rsm"
)

// byzantineMachine returns the name of the machine of a table of level Byzantine.
func byzantineMachine(table string) string { return machine(table) + ":byzantine" }

// orderOf returns the name of a table's order, as of a group.
func orderOf(table string) string { return "table:" + table }

// openByzantine opens the machine of a table of level Byzantine, and its order.
func (s *Service) openByzantine(t *Table, i uint32) error {
	t.order = &order{t: t}
	t.order.more.L = &t.order.mu
	process, err := t.k.Host.Open(host.Options{
		Channel: kernel.FirstTable + i, Name: byzantineMachine(t.c.Name), Upper: inOrder{t}, After: s.after(t),
		Machine: rsm.NewOrdered(rsm.OrderedConfig{
			N: t.k.Views.N, M: t.k.M, New: t.application, Durable: t.k.Store != nil, Sessions: t.c.Sessions,
			Answers: maxAnswers, Piece: statePiece, Longest: t.limits.Snapshot + 2*maxAnswers,
			Retry: parley.Tick(time.Second), Compact: t.k.Compact,
		}),
		Again: t.k.Again, Class: link.Bulk, Beneath: t.order.broadcast,
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.process = process
	t.mu.Unlock()
	return t.order.open(kernel.FirstTableOrder + i)
}

// inOrder is a table of level Byzantine, as the layer above its machine.
type inOrder struct{ *Table }

// Indicate handles the machine's indications of its own state.
func (t inOrder) Indicate(_ parley.Path, m parley.Msg) {
	log := t.k.Log.With("table", t.c.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Kind {
	case rsm.Serving:
		if t.serve(m.Value == 1); !t.serving {
			t.abandon(kernel.ErrNotMember)
		}
	case rsm.Parted:
		log.Warn("replica has missed commands that the others no longer keep; it fetches their state", "position", m.Seq)
	case rsm.Alike:
		log.Info("replica has received the state of the others", "position", m.Seq)
	case rsm.Stopped:
		t.abandon(t.stop(log, m))
	}
}

// order carries the commands of a table of level Byzantine.
type order struct {
	t      *Table
	of     kernel.Order
	wg     sync.WaitGroup
	closes sync.Once

	mu      sync.Mutex
	waiting [][]byte // yet to be broadcast; at most those of kernel.Packs batches, and marks
	more    sync.Cond
	closed  bool
}

// open opens the order. The machine is open: the order may deliver at once.
func (o *order) open(channel uint32) (err error) {
	if o.of, err = o.t.k.Order(channel, orderOf(o.t.c.Name), o); err != nil {
		return err
	}
	o.wg.Go(o.send)
	if o.of.Member() { // otherwise the order calls Live later
		o.Live()
	}
	return nil
}

// close ends all waiting calls and the goroutine.
func (o *order) close() {
	o.closes.Do(func() {
		o.mu.Lock()
		o.closed = true
		o.more.Broadcast()
		o.mu.Unlock()
		if o.of != nil {
			o.of.Close()
		}
	})
	o.wg.Wait()
}

// broadcast queues a broadcast of the machine. It is part of a step, so another goroutine sends it.
func (o *order) broadcast(m parley.Msg) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, rsm.ToOrder(m))
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
				o.lose(err)
			}
		}
		o.mu.Lock()
	}
}

// lose gives up all waiting calls: what this node has sent may be lost.
func (o *order) lose(why error) {
	o.t.mu.Lock()
	defer o.t.mu.Unlock()
	o.t.abandon(why)
}

// Deliver passes a delivery of the order to the machine. It is part of a step of the order.
func (o *order) Deliver(position uint64, from parley.ID, b []byte) {
	o.t.process.Carried(from, rsm.FromOrder(position, b))
}

// From notifies the machine where the deliveries continue.
func (o *order) From(position uint64) {
	o.t.process.Carried(o.t.k.Self, parley.Msg{Kind: rsm.From, Seq: position})
}

// Live notifies the machine that the order accepts its broadcasts.
func (o *order) Live() { o.t.process.Carried(o.t.k.Self, parley.Msg{Kind: rsm.Live}) }
