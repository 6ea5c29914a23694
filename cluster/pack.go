package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// ErrTooLarge is the error of a payload that no pack has room for.
var ErrTooLarge = errors.New("the payload is too large")

// A group carries payloads in packs: one message of its machine has all payloads that
// were asked for while earlier packs of this node were under way. When few are asked
// for, each goes at once and alone; when many are, the cost of a message is shared.

// packs is how many packs of a node are under way at most before payloads gather.
const packs = 4

// packer gathers the payloads of one node in one group.
type packer struct {
	most int                                  // bytes of a pack
	send func(pack []byte, level Level) error // without the lock

	mu    sync.Mutex
	room  sync.Cond
	buf   []byte // the pack that gathers
	count int    // payloads in it
	level Level  // of them
	away  int    // packs under way
	sends bool   // somebody is about to send
	err   error  // why nothing is taken now
	ended bool   // and never will be again
}

func newPacker(most int, send func([]byte, Level) error) *packer {
	p := &packer{most: most, send: send}
	p.room.L = &p.mu
	return p
}

// add puts a payload into a pack, and sends it unless too many are under way. It waits
// while the pack is full: who asks for more than is carried is held back. Payloads of
// another level wait for a pack of their own.
func (p *packer) add(payload []byte, level Level) error {
	size := len(payload) + binary.MaxVarintLen32
	if size > p.most {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), p.most-binary.MaxVarintLen32)
	}
	p.mu.Lock()
	for p.err == nil && p.count > 0 && (len(p.buf)+size > p.most || p.level != level) {
		p.room.Wait()
	}
	if p.err != nil {
		p.mu.Unlock()
		return p.err
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(len(payload)))
	p.buf = append(p.buf, payload...)
	p.count++
	p.level = level
	p.flush()
	p.mu.Unlock()
	return nil
}

// flush sends what has gathered, as long as it may. The lock is held, and let go while
// something is sent; one caller sends at a time, so that packs keep their order.
func (p *packer) flush() {
	for !p.sends && p.count > 0 && p.away < packs && p.err == nil {
		pack, level := p.buf, p.level
		p.buf, p.count = make([]byte, 0, min(p.most, 2*len(pack)+64)), 0
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

// back says that packs of this node have been delivered.
func (p *packer) back(n int) {
	p.mu.Lock()
	p.away = max(0, p.away-n)
	p.flush()
	p.mu.Unlock()
}

// fail takes nothing more. The lock is held.
func (p *packer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.room.Broadcast()
}

// busy tells whether anything waits or is under way.
func (p *packer) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && (p.count > 0 || p.away > 0)
}

// close takes nothing more until it is opened.
func (p *packer) close(err error) {
	p.mu.Lock()
	p.fail(err)
	p.mu.Unlock()
}

// end takes nothing more for good.
func (p *packer) end(err error) {
	p.mu.Lock()
	p.ended = true
	p.fail(err)
	p.mu.Unlock()
}

// open goes on after a close. What was under way before will not come back.
func (p *packer) open() {
	p.mu.Lock()
	if p.err != nil && !p.ended {
		p.err, p.away = nil, 0
	}
	p.mu.Unlock()
}

// mostPayloads is how many payloads of a pack are delivered at most: what more a liar puts into
// one is left out everywhere.
const mostPayloads = 1 << packBits

// unpack goes through the payloads of a pack, which alias it. It tells whether it is one
// to its end.
func unpack(pack []byte, each func(i int, payload []byte)) bool {
	for i := 0; len(pack) > 0; i++ {
		payload, rest := first(pack)
		if payload == nil || i == mostPayloads {
			return false
		}
		each(i, payload)
		pack = rest
	}
	return true
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
