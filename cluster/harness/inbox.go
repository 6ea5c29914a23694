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

// stamp is what a frame begins with: which [trace.Sending] it is of, and when it is due, in
// ticks; 0: as soon as it is there.
const stamp = 16

// letter is a frame that has arrived, and waits until it is due.
type letter struct {
	from  parley.ID
	due   parley.Tick
	of    uint64
	link  int // the how manieth with its sender it came on
	frame []byte
}

// inbox is what has arrived at a process and its machine has not seen. The lock of the
// member is held for all of it.
type inbox struct {
	waiting []letter    // the next one first; of those that are due at once the one that came first
	links   []int       // how many there have been, by peer
	seen    []letter    // the last one, by peer, without its frame
	crashed []parley.ID // of whom the machine is to be told when all has come that they sent
	wake    chan struct{}
}

// put takes a frame in.
func (m *member) put(from parley.ID, b []byte) {
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
	m.poke()
}

// insert puts something into a list in the order of times, behind what has the same time.
func insert[T any](list []T, x T, when func(T) parley.Tick) []T {
	at, _ := slices.BinarySearchFunc(list, when(x)+1, func(x T, t parley.Tick) int { return cmp.Compare(when(x), t) })
	return slices.Insert(list, at, x)
}

// poke has the inbox looked at. The lock is held.
func (m *member) poke() {
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
		for m.one() {
		}
		m.mu.Lock()
		if len(m.inbox.waiting) > 0 && m.process != nil {
			next.Reset(m.clock.Until(m.inbox.waiting[0].due))
		}
		m.mu.Unlock()
	}
}

// one gives the machine the next letter that is due, or tells it of a crash, and tells
// whether there was any.
func (m *member) one() bool {
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
		m.say(answer{Failed: "a frame of " + name(l.from) + " that is no message: " + err.Error()})
	}
	m.host.Flush()
	return true
}

// gone returns a process that the machine is to be told of, if there is one from which
// nothing comes any more.
func (b *inbox) gone(up parley.Set) (parley.ID, bool) {
	for i, id := range b.crashed {
		if !up.Has(id) && !slices.ContainsFunc(b.waiting, func(l letter) bool { return l.from == id }) {
			b.crashed = slices.Delete(b.crashed, i, i+1)
			return id, true
		}
	}
	return 0, false
}

// back takes back that a process has crashed.
func (b *inbox) back(id parley.ID) {
	if i := slices.Index(b.crashed, id); i >= 0 {
		b.crashed = slices.Delete(b.crashed, i, i+1)
	}
}
