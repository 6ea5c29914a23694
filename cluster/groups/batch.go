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

// A group carries payloads in packs: one message of its machine has all payloads that
// were asked for while earlier packs of this node were under way. When few are asked
// for, each goes at once and alone; when many are, the cost of a message is shared.

// deepPacks is how many are in a Byzantine order, if they are half full at least: with a silent
// node each takes as long as all the rounds do. It is what the order's own window comes to.
const deepPacks = 128

// batcher gathers the payloads of one node in one group.
type batcher struct {
	most int                                         // bytes of a pack
	deep int                                         // packs under way, if they are half full
	send func(pack []byte, level kernel.Level) error // without the lock

	mu    sync.Mutex
	room  sync.Cond
	buf   []byte       // the pack that gathers
	count int          // payloads in it
	level kernel.Level // of them
	away  int          // packs under way
	sends bool         // somebody is about to send
	err   error        // why nothing is taken now
	ended bool         // and never will be again

	tag     uint64          // of the last pack that is awaited
	awaited *pendingBatch   // the pack that gathers, if it is
	under   []*pendingBatch // those under way
}

// pendingBatch is a pack of this node that somebody waits for.
type pendingBatch struct {
	tag   uint64
	done  chan struct{} // closed when what follows is known
	first uint64        // the position of its first payload
	err   error         // why that is not known
}

func newBatcher(most, deep int, send func([]byte, kernel.Level) error) *batcher {
	p := &batcher{most: most - tagSize, deep: deep, send: send}
	p.room.L = &p.mu
	var b [8]byte
	_, _ = rand.Read(b[:]) // what a life before sent may come in this one, and is not taken for anything of it
	p.tag = binary.BigEndian.Uint64(b[:])
	return p
}

// post puts a payload into a pack, and sends it unless too many are under way. It waits
// while the pack is full: who asks for more than is carried is held back. Payloads of
// another level wait for a pack of their own.
func (p *batcher) post(payload []byte, level kernel.Level) error {
	if err := p.enter(context.Background(), payload, level); err != nil {
		return err
	}
	p.flush()
	p.mu.Unlock()
	return nil
}

// add is post, and returns the position at which the payload has been delivered here.
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
		return 0, fmt.Errorf("%w: the payload is on its way: %w", kernel.ErrUnknown, context.Cause(ctx))
	}
}

// enter puts a payload into the pack that gathers, and waits for room there. If there is no
// error the lock is held then.
func (p *batcher) enter(ctx context.Context, payload []byte, level kernel.Level) error {
	size := len(payload) + binary.MaxVarintLen32
	if size > p.most {
		return fmt.Errorf("%w: %d bytes, at most %d", kernel.ErrTooLarge, len(payload), p.most-binary.MaxVarintLen32)
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

// flush sends what has gathered, as long as it may. The lock is held, and let go while
// something is sent; one caller sends at a time, so that packs keep their order.
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

// delivered says that a pack of this node has been, and where.
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

// back says that packs of this node have been delivered, or with 0 that it is open again: what
// has gathered goes.
func (p *batcher) back(n int) {
	p.mu.Lock()
	p.away = max(0, p.away-n)
	p.flush()
	p.mu.Unlock()
}

// fail takes nothing more, and gives up what is under way and what has gathered: they may be
// delivered, and nobody here would learn it. The lock is held.
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

// busy tells whether anything waits or is under way.
func (p *batcher) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && (p.count > 0 || p.away > 0)
}

// close takes nothing more until it is opened.
func (p *batcher) close(err error) {
	p.mu.Lock()
	p.fail(err)
	p.mu.Unlock()
}

// end takes nothing more for good.
func (p *batcher) end(err error) {
	p.mu.Lock()
	p.ended = true
	p.fail(err)
	p.mu.Unlock()
}

// open goes on after a close, with so many packs under way: others of before will not come
// back.
func (p *batcher) open(away int) {
	p.mu.Lock()
	if p.err != nil && !p.ended {
		p.err, p.away = nil, away
	}
	p.mu.Unlock()
}

// mostPayloads is how many payloads of a pack are delivered at most: what more a liar puts into
// one is left out everywhere.
const mostPayloads = 1 << packBits

// unpack goes through the payloads of a pack, which alias it, and returns what is behind them.
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

// A pack that its sender waits for has a tag behind its payloads, which begins as a payload
// would that is longer than any.
const (
	noPayload = 1<<35 - 1
	tagSize   = 5 + 8
)

func appendTag(pack []byte, tag uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.AppendUvarint(pack, noPayload), tag)
}

// readTag reads what is behind the payloads of a pack.
func readTag(b []byte) (tag uint64, tagged bool) {
	if size, n := binary.Uvarint(b); size != noPayload || len(b) != tagSize || n != tagSize-8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b[tagSize-8:]), true
}

// first returns the first payload of a pack and what follows; nil if there is none.
func first(pack []byte) (payload, rest []byte) {
	size, n := binary.Uvarint(pack)
	if n <= 0 || size > uint64(len(pack)-n) {
		return nil, nil
	}
	end := n + int(size)
	return pack[n:end:end], pack[end:]
}
