package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"sync"

	"parley"
	"parley/cluster/kernel"
)

// ErrSlowSubscriber is the error of a subscription that fell behind what is kept: it is cut off.
var ErrSlowSubscriber = errors.New("the subscriber is too slow: what is next for it is no longer kept")

// ErrNotRetained is the error of a subscription to what is no longer kept here, or has never been.
var ErrNotRetained = errors.New("that position is not kept here any more")

// GoneError is [ErrNotRetained], with the first position from which on all is kept here.
type GoneError struct{ First uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: what is kept begins at %d", ErrNotRetained, e.First)
}

// Is tells that it is ErrNotRetained.
func (e *GoneError) Is(target error) bool { return target == ErrNotRetained }

// deliveredBatch is a pack that was delivered.
type deliveredBatch struct {
	first uint64 // the position of its first payload
	from  parley.ID
	count int // payloads
	pack  []byte
}

// keptSize is how many bytes a pack counts for beside its own: a place in the ring.
const keptSize = 48

// history is what a group has delivered lately, for who subscribes: the packs themselves,
// not copied. What was delivered longest ago gives way. It holds nothing for anybody, so
// that who reads too slowly costs nothing but itself.
type history struct {
	keep, keepBytes int

	mu      sync.Mutex
	ring    []deliveredBatch // a power of two of them
	begun   uint64           // number of the oldest pack, counted from 0 on
	ended   uint64           // and behind the last one
	count   int              // payloads in them
	bytes   int
	from    uint64        // every delivery of this position and later ones is here, or has yet to come
	life    uint64        // how often the member was out
	out     bool          // it is
	err     error         // why nothing more comes
	waits   bool          // somebody waits
	more    chan struct{} // closed when there is something new
	changed bool          // since it was closed
}

func (h *history) init(keep, bytes int) {
	h.keep, h.keepBytes = keep, bytes
	h.ring, h.more = make([]deliveredBatch, 16), make(chan struct{})
}

func (h *history) at(number uint64) *deliveredBatch { return &h.ring[number&uint64(len(h.ring)-1)] }

// add keeps one more pack.
func (h *history) add(k deliveredBatch) {
	h.mu.Lock()
	if h.ended-h.begun == uint64(len(h.ring)) {
		h.grow()
	}
	*h.at(h.ended) = k
	h.ended++
	h.count += k.count
	h.bytes += keptSize + len(k.pack)
	for h.begun+1 < h.ended && (h.count > h.keep || h.bytes > h.keepBytes) {
		h.drop()
	}
	h.changed = true
	h.mu.Unlock()
}

// drop lets go of the oldest pack.
func (h *history) drop() {
	old := h.at(h.begun)
	h.count -= old.count
	h.bytes -= keptSize + len(old.pack)
	h.from = old.first + 1<<packBits
	*old = deliveredBatch{}
	h.begun++
}

func (h *history) grow() {
	ring := make([]deliveredBatch, 2*len(h.ring))
	for i := h.begun; i < h.ended; i++ {
		ring[i&uint64(len(ring)-1)] = *h.at(i)
	}
	h.ring = ring
}

// leave is for a member that is out. What was delivered can still be read.
func (h *history) leave() {
	h.mu.Lock()
	h.out, h.changed = true, true
	h.life++
	h.mu.Unlock()
}

// begin is for a member that has joined: its deliveries go on behind a position, and what it
// delivered before has none of what it missed. It may come without a leave before: a node
// can be away from its beginning, and can have to join once more before it is a member.
func (h *history) begin(behind uint64) {
	h.mu.Lock()
	if !h.out {
		h.life++
	}
	for h.begun < h.ended {
		h.drop()
	}
	h.out, h.from, h.changed = false, 0, true
	if behind > 0 { // otherwise nothing was delivered before
		h.from = behind + 1<<packBits
	}
	h.mu.Unlock()
}

// wake tells those who wait, if there is anything to tell.
func (h *history) wake() {
	h.mu.Lock()
	if h.changed && h.waits {
		close(h.more)
		h.more, h.waits = make(chan struct{}), false
	}
	h.changed = false
	h.mu.Unlock()
}

func (h *history) close(err error) {
	h.mu.Lock()
	if h.err == nil {
		h.err, h.changed = err, true
	}
	h.mu.Unlock()
	h.wake()
}

// last is the position of the last delivery, 0 if there was none.
func (h *history) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun == h.ended {
		return max(h.from, 1<<packBits) - 1<<packBits // of those before it joined no more is known
	}
	k := h.at(h.ended - 1)
	return k.first + uint64(k.count) - 1
}

// Subscription reads what a group delivers here. It is for one goroutine.
type Subscription struct {
	h    *history
	life uint64
	next uint64 // the number of the pack to be read next
	from uint64 // positions before it are passed over

	now   deliveredBatch // of which the payloads in rest are yet to be read
	index int
	rest  []byte
	ended error
}

// Subscribe reads the group's deliveries from a position on, in their order: those that are
// kept, and then what comes. Who has read one and goes on later asks for its position plus
// 1. 0 stands for what is delivered from now on. Positions that are no longer kept fail
// with a [GoneError]. Where a group begins anew, for all its members had ended and it is in
// memory, as Byzantine groups are, so do the positions: one of before means another payload.
//
// With the levels Reliable, Uniform, FIFO and Causal, which give each member its own positions,
// a node that was away takes over those of another member. In memory all from before then fail
// likewise; in a durable group they stand for other payloads. So after kernel.ErrNotMember, or another start
// of the node, read such a group from 1 on, or from GoneError.First, and pass over what you have.
//
// Nothing is buffered for a subscription. One that falls behind what is kept, by
// Config.Keep, is cut off with ErrSlowSubscriber.
func (g *Group) Subscribe(from uint64) (*Subscription, error) {
	h := &g.kept
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.err != nil:
		return nil, h.err
	case h.out:
		return nil, kernel.ErrNotMember
	case from != 0 && from < h.from:
		return nil, &GoneError{h.from}
	}
	s := &Subscription{h: h, life: h.life, next: h.ended, from: from}
	if from != 0 {
		behind := func(i int) bool { return h.at(h.begun+uint64(i)).first+1<<packBits > from }
		s.next = h.begun + uint64(sort.Search(int(h.ended-h.begun), behind))
	} else {
		if s.from = max(h.from, 1); h.ended > h.begun {
			s.from = h.at(h.ended-1).first + 1<<packBits
		}
	}
	return s, nil
}

// Position is where the subscription goes on: to subscribe from it misses nothing.
func (s *Subscription) Position() uint64 { return s.from }

// Next returns the next delivery, and waits for it. It fails with ErrSlowSubscriber if the
// subscription is cut off, with kernel.ErrNotMember after the last delivery before the member was
// excluded, with kernel.ErrClosed when the node has been closed, and when the context is over.
// After that but the last of them it fails for good; what follows may be had by subscribing
// again behind the last position that was read.
func (s *Subscription) Next(ctx context.Context) (Delivery, error) {
	for {
		for s.index < s.now.count {
			d := Delivery{s.now.first + uint64(s.index), s.now.from, nil}
			d.Payload, s.rest = first(s.rest)
			s.index++
			if d.Position >= s.from {
				s.from = d.Position + 1
				return d, nil
			}
		}
		more, err := s.turn()
		if err != nil {
			return Delivery{}, err
		}
		if more == nil {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Delivery{}, context.Cause(ctx)
		}
	}
}

// All returns the deliveries that follow, each of them as Next does. The last pair has the error that Next
// failed with, and no delivery. A loop that is left early has taken no more than it was given, so that another
// one, or Next, continues there.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Delivery, error] {
	return func(yield func(Delivery, error) bool) {
		for {
			d, err := s.Next(ctx)
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// turn goes to the next pack, or returns what to wait for.
func (s *Subscription) turn() (more chan struct{}, err error) {
	h := s.h
	h.mu.Lock()
	defer h.mu.Unlock()
	s.now, s.index, s.rest = deliveredBatch{}, 0, nil
	switch {
	case s.ended != nil:
	case s.next < h.begun && s.life == h.life:
		s.ended = ErrSlowSubscriber
	case s.life != h.life && (!h.out || s.life+1 != h.life):
		s.ended = kernel.ErrNotMember
	case s.next < h.begun:
		s.ended = ErrSlowSubscriber
	case s.next < h.ended:
		s.now = *h.at(s.next)
		s.rest = s.now.pack
		s.next++
		return nil, nil
	case h.err != nil:
		s.ended = h.err
	case h.out:
		s.ended = kernel.ErrNotMember
	default:
		h.waits = true
		return h.more, nil
	}
	return nil, s.ended
}

// Close ends the subscription. Nothing is lost if it is left out: a subscription holds one
// pack of deliveries and nothing else. The error is always nil.
func (s *Subscription) Close() error {
	s.now, s.index, s.rest, s.ended = deliveredBatch{}, 0, nil, kernel.ErrClosed
	return nil
}
