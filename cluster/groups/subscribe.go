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

// ErrSlowSubscriber is the error of a subscription that was too slow: its next delivery is no longer
// retained.
var ErrSlowSubscriber = errors.New("the subscriber is too slow: its next delivery is no longer kept")

// ErrNotRetained is the error of a subscription to a position that is not retained here.
var ErrNotRetained = errors.New("that position is no longer kept here")

// GoneError is an [ErrNotRetained] with the first position that is still retained here.
type GoneError struct{ First uint64 }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: what is kept begins at %d", ErrNotRetained, e.First)
}

// Is reports whether target is ErrNotRetained.
func (e *GoneError) Is(target error) bool { return target == ErrNotRetained }

// deliveredBatch is a batch that was delivered.
type deliveredBatch struct {
	first uint64 // the position of its first payload
	from  parley.ID
	count int // payloads
	body  []byte
}

// keptSize is how many bytes a batch counts beside its payloads: its entry in the ring.
const keptSize = 48

// history holds the latest deliveries of a group for subscriptions: the batches themselves, not copies. The
// oldest are dropped first, whether or not they were read, so that a slow reader costs nothing.
type history struct {
	keep, keepBytes int

	mu      sync.Mutex
	ring    []deliveredBatch // its length is a power of two
	begun   uint64           // number of the oldest batch, counted from 0
	ended   uint64           // number after the last one
	count   int              // payloads in the batches
	bytes   int
	from    uint64        // deliveries from this position on are here or yet to come
	life    uint64        // how often the member was out
	out     bool          // the member is out now
	err     error         // why nothing more is delivered
	waits   bool          // a reader waits
	more    chan struct{} // closed when there is something new
	changed bool          // something is new since more was replaced
}

func (h *history) init(keep, bytes int) {
	h.keep, h.keepBytes = keep, bytes
	h.ring, h.more = make([]deliveredBatch, 16), make(chan struct{})
}

func (h *history) at(number uint64) *deliveredBatch { return &h.ring[number&uint64(len(h.ring)-1)] }

// add appends a batch.
func (h *history) add(k deliveredBatch) {
	h.mu.Lock()
	if h.ended-h.begun == uint64(len(h.ring)) {
		h.grow()
	}
	*h.at(h.ended) = k
	h.ended++
	h.count += k.count
	h.bytes += keptSize + len(k.body)
	for h.begun+1 < h.ended && (h.count > h.keep || h.bytes > h.keepBytes) {
		h.drop()
	}
	h.changed = true
	h.mu.Unlock()
}

// drop removes the oldest batch.
func (h *history) drop() {
	old := h.at(h.begun)
	h.count -= old.count
	h.bytes -= keptSize + len(old.body)
	h.from = old.first + 1<<batchBits
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

// leave notes that the member is out. Earlier deliveries can still be read.
func (h *history) leave() {
	h.mu.Lock()
	h.out, h.changed = true, true
	h.life++
	h.mu.Unlock()
}

// begin notes that the member has joined: its deliveries continue after the position behind. Earlier deliveries
// are dropped, because there is a gap after them. It may come without a leave: a node can be out from its start,
// and can have to join again before it is a member.
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
		h.from = behind + 1<<batchBits
	}
	h.mu.Unlock()
}

// wake wakes waiting readers if something is new.
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

// last returns the position of the last delivery, 0 if there was none.
func (h *history) last() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun == h.ended {
		return max(h.from, 1<<batchBits) - 1<<batchBits // earlier deliveries are known only by batch
	}
	k := h.at(h.ended - 1)
	return k.first + uint64(k.count) - 1
}

// Subscription reads the deliveries of a group at this node. It is not safe for concurrent use.
type Subscription struct {
	h    *history
	life uint64
	next uint64 // number of the next batch to read
	from uint64 // earlier positions are skipped

	now   deliveredBatch // batch whose payloads in rest are yet to be read
	index int
	rest  []byte
	ended error
}

// Subscribe returns a subscription to the group's deliveries from a position on. It returns them in their
// order, first the retained deliveries and then new ones. To resume, pass the last position read plus 1. 0
// means new deliveries only. Positions that are no longer retained fail with a [GoneError]. If all members of
// a group in memory have ended, positions start from scratch, and an earlier position then means another
// payload.
//
// With the levels Reliable, Uniform, FIFO, and Causal, positions are local to a member, and a node that rejoins
// adopts the positions of another member. In a group in memory all earlier positions then fail with a GoneError. In a
// durable group they stand for other payloads. So after kernel.ErrNotMember, or a restart of the node, read such a
// group from 1, or from GoneError.First, and skip the payloads that you already have.
//
// A subscription buffers nothing. If its next delivery is no longer retained (Config.Keep), it fails with
// ErrSlowSubscriber.
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
		behind := func(i int) bool { return h.at(h.begun+uint64(i)).first+1<<batchBits > from }
		s.next = h.begun + uint64(sort.Search(int(h.ended-h.begun), behind))
	} else {
		if s.from = max(h.from, 1); h.ended > h.begun {
			s.from = h.at(h.ended-1).first + 1<<batchBits
		}
	}
	return s, nil
}

// Position returns the position from which a new subscription continues without a gap.
func (s *Subscription) Position() uint64 { return s.from }

// Next waits for the next delivery and returns it. It fails with ErrSlowSubscriber if the subscription was too slow.
// If the member was excluded, it fails with kernel.ErrNotMember after the last delivery before the exclusion. It
// fails with kernel.ErrClosed when the node is closed, and with the cause of ctx when ctx ends. All errors except the
// cause of ctx are permanent. To continue, subscribe again after the last position read.
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

// All iterates over the following deliveries, as Next returns them. The last pair of the loop holds the error of
// Next, and no delivery. If a loop ends early, another loop, or Next, continues after the last delivery of the first
// loop.
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

// turn proceeds to the next batch, or returns the channel to wait for.
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
		s.rest = s.now.body
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

// Close ends the subscription. You may omit it, because a subscription holds only one batch. The error is always nil.
func (s *Subscription) Close() error {
	s.now, s.index, s.rest, s.ended = deliveredBatch{}, 0, nil, kernel.ErrClosed
	return nil
}
