package groups

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"parley/cluster/kernel"
)

// A group carries payloads in batches: one message of its machine has all payloads that were submitted while
// earlier batches of this node were in flight. Few payloads are sent at once, each in a batch of its own; many
// share the cost of a message.

// batcher gathers the payloads of one node in one group into batches.
type batcher struct {
	most int                                         // bytes of a batch
	deep int                                         // batches in flight, if they are half full
	send func(pack []byte, level kernel.Level) error // called without the lock

	mu    sync.Mutex
	room  sync.Cond
	buf   []byte       // the batch that gathers
	count int          // payloads in it
	level kernel.Level // of the payloads in it
	away  int          // batches in flight
	sends bool         // a caller is about to send
	err   error        // why payloads are refused now
	ended bool         // they are refused for good

	tag     uint64          // of the last batch with waiting callers
	awaited *pendingBatch   // the batch that gathers, if callers wait for it
	under   []*pendingBatch // batches in flight that callers wait for
}

// pendingBatch is a batch of this node that callers wait for.
type pendingBatch struct {
	tag   uint64
	done  chan struct{} // closed when first or err is set
	first uint64        // the position of its first payload
	err   error         // why first is not known
}

func newBatcher(most, deep int, send func([]byte, kernel.Level) error) *batcher {
	p := &batcher{most: most - tagSize, deep: deep, send: send}
	p.room.L = &p.mu
	var b [8]byte
	_, _ = rand.Read(b[:]) // batches of an earlier incarnation may still be delivered, and must not match
	p.tag = binary.BigEndian.Uint64(b[:])
	return p
}

// post adds a payload to a batch, and sends the batch unless too many are in flight. It blocks while the batch is
// full. Payloads of another level wait for a batch of their own.
func (p *batcher) post(payload []byte, level kernel.Level) error {
	if err := p.enter(context.Background(), payload, level); err != nil {
		return err
	}
	p.flush()
	p.mu.Unlock()
	return nil
}

// add is post, and returns the position at which this node has delivered the payload.
func (p *batcher) add(ctx context.Context, payload []byte, level kernel.Level) (position uint64, err error) {
	if err := p.enter(ctx, payload, level); err != nil {
		return 0, err
	}
	if p.awaited == nil {
		p.tag++
		p.awaited = &pendingBatch{tag: p.tag, done: make(chan struct{})}
	}
	a, i := p.awaited, p.count-1
	p.flush()
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.first + uint64(i), a.err
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: the payload is in flight: %w", kernel.ErrUnknown, context.Cause(ctx))
	}
}

// enter adds a payload to the batch that gathers, and waits for room there. If it returns nil, the lock is held.
func (p *batcher) enter(ctx context.Context, payload []byte, level kernel.Level) error {
	size := len(payload) + binary.MaxVarintLen32
	if size > p.most {
		return fmt.Errorf("%w: it has %d bytes: at most %d are allowed", kernel.ErrTooLarge, len(payload),
			p.most-binary.MaxVarintLen32)
	}
	full := func() bool {
		return p.err == nil && p.count > 0 && (len(p.buf)+size > p.most || p.level != level)
	}
	p.mu.Lock()
	if full() {
		defer context.AfterFunc(ctx, func() {
			p.mu.Lock()
			p.room.Broadcast()
			p.mu.Unlock()
		})()
		for full() && ctx.Err() == nil {
			p.room.Wait()
		}
	}
	err := p.err
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", kernel.ErrRefused, context.Cause(ctx))
	}
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(len(payload)))
	p.buf = append(p.buf, payload...)
	p.count++
	p.level = level
	return nil
}

// flush sends batches as long as it may. The lock is held, and released while a batch is sent. One caller sends
// at a time, so that batches keep their order.
func (p *batcher) flush() {
	for !p.sends && p.count > 0 && p.err == nil && (p.away < kernel.Packs || p.away < p.deep && len(p.buf) > p.most/2) {
		pack, level := p.buf, p.level
		p.buf, p.count = make([]byte, 0, min(p.most, 2*len(pack)+64)), 0
		if a := p.awaited; a != nil {
			pack = appendTag(pack, a.tag)
			p.under, p.awaited = append(p.under, a), nil
		}
		p.away++
		p.sends = true
		p.room.Broadcast()
		p.mu.Unlock()
		err := p.send(pack, level)
		p.mu.Lock()
		p.sends = false
		if err != nil {
			p.fail(err)
		}
	}
}

// delivered handles that a batch of this node was delivered, and at which position.
func (p *batcher) delivered(tag, first uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, a := range p.under {
		if a.tag == tag {
			p.under = slices.Delete(p.under, i, i+1)
			a.first = first
			close(a.done)
			return
		}
	}
}

// back handles that n batches of this node were delivered, or with 0 that the group is open again: it sends what
// has gathered.
func (p *batcher) back(n int) {
	p.mu.Lock()
	p.away = max(0, p.away-n)
	p.flush()
	p.mu.Unlock()
}

// fail refuses new payloads, and gives up those in flight and those that have gathered: they may be delivered,
// but this node would not learn it. The lock is held.
func (p *batcher) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	if p.awaited != nil {
		p.under, p.awaited = append(p.under, p.awaited), nil
	}
	for _, a := range p.under {
		a.err = fmt.Errorf("%w: %w", kernel.ErrUnknown, err)
		close(a.done)
	}
	p.under = nil
	p.room.Broadcast()
}

// busy reports whether a payload waits or is in flight.
func (p *batcher) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && (p.count > 0 || p.away > 0)
}

// close refuses payloads until open.
func (p *batcher) close(err error) {
	p.mu.Lock()
	p.fail(err)
	p.mu.Unlock()
}

// end refuses payloads for good.
func (p *batcher) end(err error) {
	p.mu.Lock()
	p.ended = true
	p.fail(err)
	p.mu.Unlock()
}

// open ends a close. Batches that were in flight before are not reported any more.
func (p *batcher) open() {
	p.mu.Lock()
	if p.err != nil && !p.ended {
		p.err, p.away = nil, 0
	}
	p.mu.Unlock()
}

// mostPayloads is the maximum number of payloads that are delivered of a batch. Further payloads, which only a
// faulty node sends, are ignored at all nodes.
const mostPayloads = 1 << batchBits

// unpack calls each for the payloads of a batch, which alias it, and returns what follows them.
func unpack(pack []byte, each func(i int, payload []byte)) (rest []byte) {
	for i := 0; len(pack) > 0 && i < mostPayloads; i++ {
		payload, rest := first(pack)
		if payload == nil {
			break
		}
		each(i, payload)
		pack = rest
	}
	return pack
}

// Payloads returns the payloads of a batch, as the machine of a group carries it. A batch that a recorder has truncated
// yields those that are complete.
func Payloads(batch []byte) (all [][]byte) {
	unpack(batch, func(_ int, payload []byte) { all = append(all, payload) })
	return all
}

// A batch that its sender waits for has a tag after its payloads. The tag begins like a payload that is longer
// than any.
const (
	noPayload = 1<<35 - 1
	tagSize   = 5 + 8
)

func appendTag(pack []byte, tag uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.AppendUvarint(pack, noPayload), tag)
}

// readTag parses what follows the payloads of a batch.
func readTag(b []byte) (tag uint64, tagged bool) {
	if size, n := binary.Uvarint(b); size != noPayload || len(b) != tagSize || n != tagSize-8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[tagSize-8:]), true
}

// first returns the first payload of a batch and what follows it; nil if there is none.
func first(pack []byte) (payload, rest []byte) {
	size, n := binary.Uvarint(pack)
	if n <= 0 || size > uint64(len(pack)-n) {
		return nil, nil
	}
	end := n + int(size)
	return pack[n:end:end], pack[end:]
}
