package harness

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"parley"
	"parley/cluster/link"
	"parley/trace"
)

// carrier sends messages through the weather, and records those lost at once. Its Send is called within a
// step of the machine, one step at a time.
type carrier member

// Send sends as many copies as the weather delivers.
func (c *carrier) Send(to parley.ID, class link.Class, channel uint32, head, body []byte) bool {
	c.mu.Lock()
	of, now := trace.Sending(c.Life, c.sends), c.sentAt
	due, why := c.weather.copies(to, now)
	c.counted.Sent[to] += uint64(len(due)) - 1
	if len(due) == 0 {
		c.lose(to, now, parley.Msg{Value: why})
	}
	c.mu.Unlock()
	sent := false
	for _, at := range due {
		c.stamped = binary.LittleEndian.AppendUint64(c.stamped[:0], of)
		c.stamped = append(binary.LittleEndian.AppendUint64(c.stamped, uint64(at)), head...)
		if c.mesh.Send(to, class, channel, c.stamped, body) {
			sent = true
			continue
		}
		c.mu.Lock()
		c.counted.Sent[to]--
		if c.up.Has(to) || !c.down.Has(to) {
			c.lose(to, now, parley.Msg{Value: byLink, Seq: c.met[to]})
		}
		c.mu.Unlock()
	}
	return sent
}

// The causes of a loss, as the Value of a trace.Lose that a process writes.
const (
	byChance = iota // the weather
	byCut           // the weather cuts the link
	byLink          // the link was broken. Seq: the incarnation of its peer, 0 before the first link
)

// lose records that the last send does not reach a process, or not another time. The caller holds the lock.
func (c *carrier) lose(to parley.ID, now parley.Tick, how parley.Msg) {
	c.written.Add(trace.Event{Op: trace.Lose, At: c.Self, Peer: to, Time: max(now, 0), Msg: how})
}

func (c *carrier) Flush(to parley.ID) { c.mesh.Flush(to) }

// handler handles the input from the links.
type handler member

func (h *handler) Up(id parley.ID, life uint64) {
	h.mu.Lock()
	h.up.Add(id)
	h.met[id] = life
	h.inbox.links[id]++
	h.inbox.cancelCrash(id)
	if h.down.Has(id) { // its counts start again at zero, like ours
		h.down.Remove(id)
		h.counted.Sent[id], h.counted.Received[id] = 0, 0
	}
	all := h.up.Len() == h.Header.N-1
	h.mu.Unlock()
	if all {
		(*member)(h).say(answer{Connected: true})
	}
}

func (h *handler) Down(id parley.ID, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up.Remove(id)
	h.down.Add(id)
	(*member)(h).wakeInbox()
}

// Frame handles a frame for the machine.
func (h *handler) Frame(from parley.ID, _ uint32, b []byte) {
	if len(b) < stamp {
		(*member)(h).say(answer{Failed: fmt.Sprintf("a frame of %s of %d bytes", name(from), len(b))})
		return
	}
	(*member)(h).receive(from, b)
}

// Burst does nothing: the inbox flushes after the machine has received a message.
func (*handler) Burst(parley.ID) {}

// signer signs with the key of this process, and verifies with the public keys of all processes.
type signer member

func (g *signer) Sign(_ string, b []byte) []byte { return ed25519.Sign(g.signer, b) }

func (g *signer) Verify(_ string, id parley.ID, b, sig []byte) bool {
	return int(id) < len(g.Signers) && ed25519.Verify(g.Signers[id], b, sig)
}
