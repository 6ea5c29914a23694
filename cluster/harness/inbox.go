package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"parley"
)

// stamp is the length of a frame's prefix: the number of its [trace.Sending], and its due time in ticks; 0:
// on arrival.
const stamp = 16

// letter is a frame that has arrived, and waits until it is due.
type letter struct {
	from  parley.ID
	due   parley.Tick
	of    uint64
	link  int // the index of the connection with its sender that it arrived on
	frame []byte
}

// inbox holds what has arrived at a process and its machine has not received. The lock of the member guards
// it.
type inbox struct {
	waiting []letter    // the next one first; of letters due at the same time, in order of arrival
	links   []int       // the number of connections so far, by peer
	seen    []letter    // the last received one, by peer, without its frame
	crashed []parley.ID // notified to the machine once everything that they sent has arrived
	wake    chan struct{}
}

// receive adds a frame.
func (m *member) receive(from parley.ID, b []byte) {
	l := letter{
		from: from, of: binary.LittleEndian.Uint64(b), due: parley.Tick(binary.LittleEndian.Uint64(b[8:])),
		frame: bytes.Clone(b[stamp:]),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.link = m.inbox.links[from]
	if m.clock.tick > 0 {
		l.due = max(l.due, m.clock.Now())
	}
	m.inbox.waiting = insert(m.inbox.waiting, l, func(l letter) parley.Tick { return l.due })
	m.wakeInbox()
}

// insert inserts an element into a list sorted by time, after those with the same time.
func insert[T any](list []T, x T, when func(T) parley.Tick) []T {
	at, _ := slices.BinarySearchFunc(list, when(x)+1, func(x T, t parley.Tick) int { return cmp.Compare(when(x), t) })
	return slices.Insert(list, at, x)
}

// wakeInbox makes deliver check the inbox. The caller holds the lock.
func (m *member) wakeInbox() {
	select {
	case m.inbox.wake <- struct{}{}:
	default:
	}
}

// deliver gives the machine what is due, until the process ends.
func (m *member) deliver(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.inbox.wake:
		case <-next.C:
		}
		for m.deliverNext() {
		}
		m.mu.Lock()
		if len(m.inbox.waiting) > 0 && m.process != nil {
			next.Reset(m.clock.Until(m.inbox.waiting[0].due))
		}
		m.mu.Unlock()
	}
}

// deliverNext gives the machine the next due letter, or notifies it of a crash, and returns whether there
// was any.
func (m *member) deliverNext() bool {
	m.mu.Lock()
	p := m.process
	if p == nil {
		m.mu.Unlock()
		return false
	}
	if of, ok := m.inbox.gone(m.up); ok {
		m.mu.Unlock()
		p.Indicate(parley.Msg{Kind: parley.Suspect, Origin: of})
		return true
	}
	if len(m.inbox.waiting) == 0 || m.inbox.waiting[0].due > m.clock.Now() {
		m.mu.Unlock()
		return false
	}
	l := m.inbox.waiting[0]
	m.inbox.waiting = m.inbox.waiting[1:]
	m.inbox.seen[l.from] = letter{of: l.of, link: l.link}
	m.mu.Unlock()
	if err := m.host.Frame(l.from, channel, l.frame); err != nil {
		m.say(answer{Failed: "a frame from " + name(l.from) + " is malformed: " + err.Error()})
	}
	m.host.Flush()
	return true
}

// gone returns a crashed process to notify the machine of, if all messages from one have been received.
func (b *inbox) gone(up parley.Set) (parley.ID, bool) {
	for i, id := range b.crashed {
		if !up.Has(id) && !slices.ContainsFunc(b.waiting, func(l letter) bool { return l.from == id }) {
			b.crashed = slices.Delete(b.crashed, i, i+1)
			return id, true
		}
	}
	return 0, false
}

// cancelCrash withdraws that a process has crashed.
func (b *inbox) cancelCrash(id parley.ID) {
	if i := slices.Index(b.crashed, id); i >= 0 {
		b.crashed = slices.Delete(b.crashed, i, i+1)
	}
}
