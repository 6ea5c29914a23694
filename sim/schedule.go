package sim

import (
	"math"
	"math/bits"
	"slices"

	"parley"
)

// ringSize is how far ahead, in ticks, the ring reaches. Rounds of lockstep.Simulated and their delays fit;
// later events wait in a heap.
const ringSize = 2048

// never is the end of time. Events that would be due then or later do not happen.
const never parley.Tick = math.MaxInt64

// after returns t + length, or never if that overflows.
func after(t, length parley.Tick) parley.Tick {
	if sum := t + length; sum >= t {
		return sum
	}
	return never
}

// longSlot is how many events of one time are kept after pop has returned them.
const longSlot = 4096

type eventKind uint8

const (
	arrival  eventKind = iota // ref: the message in the store
	expiry                    // ref: the number that arm gave the timer
	asked                     // ref: the request in the store
	detected                  // from is suspected if it is still down
	hinted                    // from is suspected
	// A pause does not delay the following:
	more     // ref: the request; get another one from Options.More
	back     // it restarts
	crashing // ref: the crash in the options
	overdue  // ref: the crash that has found no step
	pausing  // ref: the pause in the options
	resuming
)

// event is something that is due at a time.
type event struct {
	ref      int32
	to, from parley.ID
	what     eventKind
}

// schedule returns events in the order of their times, and within a time in the order of insertion.
type schedule struct {
	slots  [ringSize][]event
	used   [ringSize / 64]uint64 // bitmap of slots with events
	now    parley.Tick
	missed []event // events from pauses that are over: they come first
	read   int     // number of events of the present slot that pop has returned
	later  eventHeap
	put    uint64
	spare  [][]event // memory of earlier slots
	first  []event   // scratch
}

// reset empties the schedule and keeps its memory.
func (q *schedule) reset() {
	for w := range q.used {
		for ; q.used[w] != 0; q.used[w] &= q.used[w] - 1 {
			i := w*64 + bits.TrailingZeros64(q.used[w])
			q.slots[i] = q.slots[i][:0]
		}
	}
	q.later, q.missed = q.later[:0], q.missed[:0]
	q.now, q.read, q.put = 0, 0, 0
}

// at inserts an event that is due at time t, which must not be before now. It drops an event at never.
func (q *schedule) at(t parley.Tick, e event) {
	if uint64(t-q.now) >= ringSize || t == never {
		switch {
		case t < q.now:
			panic("sim: something is due in the past")
		case t < never:
			q.put++
			q.later.push(laterEvent{t, q.put, e})
		}
		return
	}
	i := uint64(t) % ringSize
	q.equip(i)
	q.slots[i] = append(q.slots[i], e)
	q.used[i/64] |= 1 << (i % 64)
}

// equip gives a slot without memory that of an earlier slot.
func (q *schedule) equip(i uint64) {
	if q.slots[i] == nil && len(q.spare) > 0 {
		q.slots[i] = q.spare[len(q.spare)-1]
		q.spare = q.spare[:len(q.spare)-1]
	}
}

// next moves to the time of the earliest event. All events of the present time must have been returned.
func (q *schedule) next() (parley.Tick, bool) {
	q.leave()
	t, ok := q.scan()
	if len(q.later) > 0 && (!ok || q.later[0].at <= t) {
		t, ok = q.later[0].at, true
	}
	if !ok {
		return 0, false
	}
	q.now = t
	// Events from the heap were inserted before those of the ring at the same time, because they were further
	// ahead.
	q.first = q.first[:0]
	for len(q.later) > 0 && q.later[0].at == t {
		q.first = append(q.first, q.later.pop())
	}
	if len(q.first) > 0 {
		i := uint64(t) % ringSize
		q.equip(i)
		q.slots[i] = slices.Insert(q.slots[i], 0, q.first...)
		q.used[i/64] |= 1 << (i % 64)
	}
	return t, true
}

// leave empties the slot of the present time.
func (q *schedule) leave() {
	i := uint64(q.now) % ringSize
	if q.read > 0 {
		q.spare = append(q.spare, q.slots[i][:0])
		q.slots[i] = nil
		q.used[i/64] &^= 1 << (i % 64)
		q.read = 0
	}
}

// scan returns the time of the first slot with events, from now on.
func (q *schedule) scan() (parley.Tick, bool) {
	start := uint64(q.now) % ringSize
	for k := uint64(0); k <= ringSize/64; k++ {
		w := (start/64 + k) % (ringSize / 64)
		word := q.used[w]
		if k == 0 {
			word &= ^uint64(0) << (start % 64)
		}
		if k == ringSize/64 {
			word &= 1<<(start%64) - 1
		}
		if word != 0 {
			i := w*64 + uint64(bits.TrailingZeros64(word))
			return q.now + parley.Tick((i-start)%ringSize), true
		}
	}
	return 0, false
}

// pop returns the next event of the present time. It bounds the slot's memory for machines that keep setting
// timers of length 0.
func (q *schedule) pop() (event, bool) {
	if len(q.missed) > 0 {
		e := q.missed[0]
		q.missed = q.missed[1:]
		return e, true
	}
	slot := q.slots[uint64(q.now)%ringSize]
	if q.read >= len(slot) {
		return event{}, false
	}
	e := slot[q.read]
	q.read++
	if q.read >= longSlot && len(slot)-q.read <= q.read/8 {
		q.slots[uint64(q.now)%ringSize] = slot[:1+copy(slot[1:], slot[q.read:])]
		q.read = 1 // some events were returned, so leave must empty the slot
	}
	return e, true
}

// laterEvent is an event beyond the ring.
type laterEvent struct {
	at    parley.Tick
	order uint64
	event event
}

func (a *laterEvent) before(b *laterEvent) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

// eventHeap is a heap: no event is due before its parent, at half its index counted from 1. container/heap
// would allocate for every event.
type eventHeap []laterEvent

func (o *eventHeap) push(x laterEvent) {
	*o = append(*o, x)
	h := *o
	i := len(h) - 1
	for up := (i - 1) / 2; i > 0 && x.before(&h[up]); up = (i - 1) / 2 {
		h[i], i = h[up], up
	}
	h[i] = x
}

// pop removes the first event.
func (o *eventHeap) pop() event {
	h := *o
	first, x := h[0].event, h[len(h)-1]
	h = h[:len(h)-1]
	*o = h
	i := 0
	for down := 1; down < len(h); down = 2*i + 1 {
		if down+1 < len(h) && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&x) {
			break
		}
		h[i], i = h[down], down
	}
	if len(h) > 0 {
		h[i] = x
	}
	return first
}

// messageStore holds the messages in flight. A message to many receivers is stored once.
type messageStore struct {
	slots []storedMessage
	free  []int32
}

type storedMessage struct {
	path  parley.Path
	msg   parley.Msg
	id    uint64 // number of the Send event in the trace
	refs  int32
	epoch uint32
}

// reset empties the store and keeps its memory.
func (w *messageStore) reset() {
	clear(w.slots)
	w.slots, w.free = w.slots[:0], w.free[:0]
}

func (w *messageStore) put(m storedMessage) int32 {
	if n := len(w.free); n > 0 {
		ref := w.free[n-1]
		w.free = w.free[:n-1]
		w.slots[ref] = m
		return ref
	}
	w.slots = append(w.slots, m)
	return int32(len(w.slots) - 1)
}

// drop releases one reference to a message.
func (w *messageStore) drop(ref int32) {
	m := &w.slots[ref]
	if m.refs--; m.refs == 0 {
		m.msg.Body = nil
		w.free = append(w.free, ref)
	}
}
