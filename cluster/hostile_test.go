package cluster_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/broadcast/byzantine"
	"parley/cluster"
	"parley/cluster/link"
	"parley/lockstep"
)

// frame returns a frame of a slot.
func frame(slot uint64, round int, body []byte) parley.Msg {
	return parley.Msg{Kind: lockstep.Frame, Value: slot, Seq: uint64(round), Body: body}
}

// inside returns the body of a frame with messages.
func inside(list ...parley.Msg) (b []byte) {
	for _, m := range list {
		b = parley.AppendMsg(b, 0, m)
	}
	return b
}

// hostile is something that a peer may send.
type hostile struct {
	what string
	why  string // of its refusal
	end  bool   // the connection ends, too
	send func() [][]byte
}

// framesOfSlots returns messages and frames of slots that no correct node sends. The hostile node is the source
// of the stream eig, and the second node that of of1.
func (s *siege) framesOfSlots(eig, of1 uint32, limit int) []hostile {
	slot, ofKing := uint64(1), uint64(0)
	return []hostile{
		{"bytes that are no message", "no message", false, func() [][]byte {
			return [][]byte{raw(rawBulk, binary.AppendUvarint(nil, uint64(eig)), []byte("none"))}
		}},
		{"bytes after a message", "no message", false, func() [][]byte {
			return [][]byte{message(eig, frame(1, 0, nil)), raw(rawBulk, binary.AppendUvarint(nil, uint64(eig)),
				parley.Encode(nil, parley.Env{}, frame(1, 0, nil)), []byte{0})}
		}},
		{"a number in a longer form", "no message", false, func() [][]byte {
			return [][]byte{raw(rawBulk, binary.AppendUvarint(nil, uint64(eig)), []byte{0x80, 0, 1, 0, 0, 0, 0})}
		}},
		{"a kind that is local", "no message", false, func() [][]byte {
			return [][]byte{raw(rawBulk, binary.AppendUvarint(nil, uint64(eig)), []byte{0, 0xF0, 0, 0, 0, 0})}
		}},
		{"a channel there is not", "no channel", false, func() [][]byte {
			return [][]byte{message(1<<20, frame(1, 0, nil))}
		}},
		{"an algorithm there is not", "no channel", false, func() [][]byte {
			return [][]byte{message(2048+9<<7, frame(1, 0, nil))}
		}},
		{"more liars than there may be", "no channel", false, func() [][]byte {
			return [][]byte{message(2048|3<<4, frame(1, 0, nil))}
		}},
		{"a source there is not", "no channel", false, func() [][]byte {
			return [][]byte{message(2048|1<<4|7, frame(1, 0, nil))}
		}},
		{"a kind there is not", "no message of a stream", false, func() [][]byte {
			return [][]byte{message(eig, parley.Msg{Kind: 77})}
		}},
		{"a frame of slot 0", "not a frame", false, func() [][]byte { return [][]byte{message(eig, frame(0, 0, nil))} }},
		{"a frame in another's name", "not a frame", false, func() [][]byte {
			m := frame(slot+1, 0, nil)
			m.Origin = 2
			return [][]byte{message(eig, m)}
		}},
		{"a frame past the window", "frame of a slot past the window", false, func() [][]byte {
			return [][]byte{message(eig, frame(1<<40, 0, nil))}
		}},
		{"round 1 of a slot that has not begun", "frame of a slot that has not begun", false, func() [][]byte {
			return [][]byte{message(eig, frame(slot+2, 1, nil))}
		}},
		{"a frame over the limit", "frame over the limit of the stream", false, func() [][]byte {
			return [][]byte{message(eig, frame(slot+1, 0, make([]byte, limit+1)))}
		}},
		{"two rounds ahead", "frame more than a round ahead", false, func() [][]byte {
			_, king, _ := cluster.AgreementRounds(cluster.PhaseKing, 1, 0, 4)
			ofKing++
			return [][]byte{message(king, frame(ofKing, 0, nil)), message(king, frame(ofKing, 3, nil))}
		}},
		{"a round there is not", "frame of a round there is not", false, func() [][]byte {
			slot++
			return [][]byte{message(eig, frame(slot, 0, nil)), message(eig, frame(slot, 9, nil))}
		}},
		{"a second frame of a round", "second frame of a round", false, func() [][]byte {
			slot++
			return [][]byte{message(eig, frame(slot, 0, nil)), message(eig, frame(slot, 1, nil)), message(eig, frame(slot, 1, nil))}
		}},
		{"a frame of a slot that is over", "frame of a slot that is over", false, func() [][]byte {
			return [][]byte{message(of1, frame(1, 0, nil))}
		}},
		{"a malformed frame", "malformed frame", false, func() [][]byte {
			slot++
			return [][]byte{message(eig, frame(slot, 0, nil)), message(eig, frame(slot, 1, []byte{1, 2, 3}))}
		}},
	}
}

// levels returns possible contents of a frame of round 1 of a slot that is open as long as nobody answers: a
// level has two paths, one for each of the other lieutenants.
func (s *siege) levels(of1 uint32) []hostile {
	level := func(b ...byte) parley.Msg { return parley.Msg{Kind: 2, Seq: 1, Body: b} }
	nothing := []byte{9, 0, 'n', 'o', 't', 'h', 'i', 'n', 'g', 0}
	var out []hostile
	for _, c := range []struct {
		why  string
		list []parley.Msg
	}{
		{"level of the wrong length", []parley.Msg{level(0, 0, 0, 0, 0)}},
		{"level with a code out of the dictionary", []parley.Msg{level(1, 1, 'x', 2)}},
		{"level with too many values", []parley.Msg{level(9, 1, 'x')}},
		{"level with values out of order", []parley.Msg{level(append(append([]byte{1}, nothing...), 1)...)}},
		{"level with an unused value", []parley.Msg{level(1, 1, 'x', 0)}},
		{"level with an oversized value", []parley.Msg{level(1, 0xFF, 0x7F)}},
		{"second level of a round", []parley.Msg{level(0, 0), level(0, 0)}},
		{"message not due in this round", []parley.Msg{{Kind: 2, Body: []byte{0, 0}}}},
	} {
		out = append(out, hostile{"in a level", c.why, false, func() [][]byte {
			ctx, cancel := context.WithTimeout(s.t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _ = s.nodes[1].Agree(ctx, cluster.AgreeRequest{Value: []byte("x")})
			last := s.lastSlot(of1)
			return [][]byte{message(of1, frame(last, 0, nil)), message(of1, frame(last, 1, inside(c.list...)))}
		}})
	}
	return out
}

// others returns what else a peer may send.
func others(eig, of1 uint32) []hostile {
	return []hostile{
		{"an account that nobody asked for", "an account that nobody asked for", false, func() [][]byte {
			return [][]byte{message(of1, parley.Msg{Kind: lockstep.Frame + 2, Value: 1, Body: []byte{0}})}
		}},
		{"evidence of slots past the window", "asks for evidence of too much, or too late", false, func() [][]byte {
			return [][]byte{message(eig, parley.Msg{Kind: lockstep.Frame + 1, Value: 1 << 40})}
		}},
		{"evidence of more slots than it may", "asks for evidence of too much, or too late", false, func() (list [][]byte) {
			for k := range uint64(40) {
				list = append(list, message(eig, parley.Msg{Kind: lockstep.Frame + 1, Value: 20 + k}))
			}
			return list
		}},
		{"evidence that another than the source asks for", "no message of a stream", false, func() [][]byte {
			return [][]byte{message(of1, parley.Msg{Kind: lockstep.Frame + 1, Value: 1 << 20})}
		}},
		{"a group's message that is none", "malformed message", false, func() [][]byte {
			return [][]byte{message(16, parley.Msg{Kind: 1, Seq: 1 << 50, Body: []byte{0xFF}})}
		}},
		{"a group's cut that is none", "cut that cannot be read", false, func() [][]byte {
			return [][]byte{message(16, parley.Msg{Kind: 1, Seq: 1, Body: []byte{0xFF}})}
		}},
		{"a group's batch that is none", "batch that cannot be read", false, func() [][]byte {
			return [][]byte{message(16, parley.Msg{Kind: byzantine.Batch, Body: []byte{0xFF}})}
		}},
		{"a batch in the name of another node", notItsBatch, false, func() [][]byte {
			return [][]byte{message(16, parley.Msg{Kind: byzantine.Batch, Body: batchOf(1, 1, [32]byte{}, []byte("forged"))})}
		}},
		{"decisions that are none", "decisions that cannot be read", false, func() [][]byte {
			return [][]byte{message(16, parley.Msg{Kind: byzantine.Answer, Seq: 1, Body: []byte{0xFF}})}
		}},
		{"length 0", "empty frame", true, func() [][]byte { return [][]byte{{0, 0, 0, 0}} }},
		{"length 2^32-1", "frame too long", true, func() [][]byte { return [][]byte{{255, 255, 255, 255, rawBulk}} }},
		{"a type there is not", "unknown frame type", true, func() [][]byte { return [][]byte{raw(99)} }},
		{"a second hello", "second hello", true, func() [][]byte { return [][]byte{raw(rawHello, make([]byte, 50))} }},
		{"a pong to no ping", "pong without ping", true, func() [][]byte { return [][]byte{raw(rawPong, make([]byte, 8))} }},
		{"pings without end", "too many pings", true, func() (list [][]byte) {
			return [][]byte{bytes.Repeat(raw(rawPing, make([]byte, 8)), 2000)}
		}},
	}
}

// Hostile messages on the links of agreements are each refused with the right counter, and the others continue to
// decide.
func TestHostileMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := besieged(t, nil)
		_, eig, limit := cluster.AgreementRounds(cluster.EIG, 1, 0, 4)
		_, of1, _ := cluster.AgreementRounds(cluster.EIG, 1, 1, 4)
		for _, c := range slices.Concat(s.framesOfSlots(eig, of1, limit), s.levels(of1), others(eig, of1)) {
			if s.says(c); t.Failed() {
				t.Fatalf("after %s: %s", c.what, c.why)
			}
		}
	})
}

// says makes the hostile node send something that node 3 refuses while the others decide.
func (s *siege) says(c hostile) {
	time.Sleep(2 * roomy) // until the last slot is finished everywhere
	before := s.nodes[2].Refusals(0)[c.why]
	s.rude(true) // so that slots stay open
	for _, b := range c.send() {
		s.all(b)
	}
	s.refuses(2, c.why, before)
	s.rude(false)
	if c.end {
		s.connect()
	}
	s.decides()
}

// lastSlot returns the slot of the last frame that node 3 sent on a channel.
func (s *siege) lastSlot(channel uint32) (slot uint64) {
	w := s.wires[2]
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.heard {
		if f.channel == channel {
			slot = max(slot, f.m.Value)
		}
	}
	if slot == 0 {
		s.t.Fatal("nothing was heard on channel", channel)
	}
	return slot
}

// loads returns how a hostile peer may load a node, with the reason of the refusal, if any.
func (s *siege) loads() []hostileLoad {
	return []hostileLoad{
		{"all slots of all streams begun, with the longest frames", "frame of a slot past the window", func() {
			s.rude(true)
			cluster.EachChannel(s.config, func(channel uint32, window, limit int) {
				body := inside(parley.Msg{Kind: 1, Body: make([]byte, limit-100)})
				for slot := uint64(3 * window); slot > 0; slot-- {
					s.all(message(channel, frame(slot, 0, body)))
				}
			})
		}},
		{"10,000 slots of one stream", "frame of a slot past the window", func() {
			_, channel, _ := cluster.AgreementRounds(cluster.EIG, 1, 0, 4)
			for slot := uint64(1); slot <= 10000; slot++ {
				s.all(message(channel, frame(slot, 0, nil)))
			}
		}},
		{"long frames that do not end", "", func() {
			part := raw(rawPart, make([]byte, 60<<10))
			for range 16<<20/(60<<10) - 1 {
				s.all(part)
			}
		}},
		{"frames as long as they may be, of no message", "no message", func() {
			part := raw(rawPart, binary.AppendUvarint(nil, 16), bytes.Repeat([]byte{0xFF}, 60<<10))
			s.all(part)
			for range 16<<20/(60<<10) - 3 {
				s.all(raw(rawPart, make([]byte, 60<<10)))
			}
			s.all(raw(rawBulk, make([]byte, 100)))
		}},
		{"messages of no channel", "no channel", func() {
			s.all(bytes.Repeat(message(1<<20, frame(1, 0, make([]byte, 1000))), 2000))
		}},
		{"more batches than the group may keep", notItsBatch, func() {
			var before [sha256.Size]byte
			for k := range uint64(400) {
				b := batchOf(0, k+1, before, make([]byte, 60<<10))
				before = sha256.Sum256(b)
				s.all(message(16, parley.Msg{Kind: byzantine.Batch, Body: b}))
			}
		}},
		{"cuts of slots to come", "", func() {
			for k := range uint64(300) {
				s.all(message(16, parley.Msg{Kind: 1, Seq: 1 + k%4, Value: k << 3, Body: make([]byte, 60<<10)}))
			}
		}},
	}
}

// notItsBatch is the reason for which an order refuses a batch.
const notItsBatch = "batch of another process, a second one of its number, or too many"

// batchOf returns a batch of a node in an order, with one request.
func batchOf(source byte, number uint64, before [sha256.Size]byte, request []byte) []byte {
	b := binary.AppendUvarint([]byte{1, source, 0}, number)
	b = append(append(b, before[:]...), 1)
	return append(parley.AppendBytes(b, request), 0)
}

type hostileLoad struct {
	what, why string
	load      func()
}

// Under a hostile peer's load, memory grows by less than 32 MB, the others continue to decide, and no goroutine
// is left: otherwise the bubble would not end.
func TestHostileLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *cluster.Config) { c.Round = 300 * time.Millisecond })
		s.decides()
		for _, c := range s.loads() {
			before := heapInUse()
			refused := s.nodes[2].Refusals(0)[c.why]
			c.load()
			if c.why != "" {
				s.refuses(2, c.why, refused)
			}
			synctest.Wait()                                      // until all frames have been handled
			if grown := heapInUse() - before; grown > 3*32<<20 { // of three nodes
				t.Errorf("%s: %d MB more than before, in three nodes", c.what, grown>>20)
			} else {
				t.Logf("%s: %d MB", c.what, grown>>20)
			}
			s.connect()
			s.decides()
		}
	})
}

// forger is the host of a step with signatures made by a test.
type forger struct{ sign func(b []byte) []byte }

func (forger) Choose(int) int                              { return 0 }
func (f forger) Sign(_ parley.ID, b []byte) []byte         { return f.sign(b) }
func (forger) Verify(_ parley.ID, _ []byte, _ []byte) bool { return true }
func (forger) Refused(_, _ parley.ID, _ string)            {}

// signed returns the first message of a source, with signatures by sign.
func signed(p lockstep.Protocol, value string, sign func(b []byte) []byte) parley.Msg {
	s := &parley.Step{Self: 0, N: 4, Host: forger{sign}}
	r := p.New(0)
	r.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte(value)})
	r.Emit(s, 0)
	return s.Effects[0].Msg
}

// Invalid signatures, signatures of another slot, and chains with too many or too few links are each refused, and
// the others decide the same.
func TestHostileSignatures(t *testing.T) { bubble(t, hostileSignatures) }

func hostileSignatures(t *testing.T) {
	s := besieged(t, nil)
	p, channel, _ := cluster.AgreementRounds(cluster.SM, 1, 0, 4)
	with := func(name string, m int, slot uint64) func(b []byte) []byte {
		return cluster.SignAs(name, s.key, cluster.SM, m, 0, slot)
	}
	change := func(m parley.Msg, f func(b []byte) []byte) parley.Msg {
		m.Body = f(bytes.Clone(m.Body))
		return m
	}
	// A chain of one link is: length, value, 1, signer, 64, signature.
	const value, links = "v", 2
	slot := uint64(0)
	for _, c := range []struct {
		what, why string
		round     int
		list      func(good parley.Msg) []parley.Msg
	}{
		{"a forged signature", "bad-signature", 0, func(good parley.Msg) []parley.Msg {
			return []parley.Msg{change(good, func(b []byte) []byte { b[len(b)-1] ^= 1; return b })}
		}},
		{"a signature of another slot", "bad-signature", 0, func(parley.Msg) []parley.Msg {
			return []parley.Msg{signed(p, value, with("test", 1, slot+1))}
		}},
		{"a signature of another cluster", "bad-signature", 0, func(parley.Msg) []parley.Msg {
			return []parley.Msg{signed(p, value, with("post", 1, slot))}
		}},
		{"a signature in spite of other liars", "bad-signature", 0, func(parley.Msg) []parley.Msg {
			return []parley.Msg{signed(p, value, with("test", 2, slot))}
		}},
		{"three values of a source", "third-value", 0, func(good parley.Msg) []parley.Msg {
			return []parley.Msg{good, signed(p, "w", with("test", 1, slot)), signed(p, "x", with("test", 1, slot))}
		}},
		{"one value twice", "duplicate-unverified", 0, func(good parley.Msg) []parley.Msg { return []parley.Msg{good, good} }},
		{"a short chain in the last round", "chain-length", 1, func(good parley.Msg) []parley.Msg {
			good.Seq = 1
			return []parley.Msg{good}
		}},
		{"a long chain", "chain-length", 0, func(good parley.Msg) []parley.Msg {
			return []parley.Msg{change(good, func(b []byte) []byte {
				b[links] = 2
				return append(b, b[links+1:]...)
			})}
		}},
		{"a signer twice", "repeated-signer", 1, func(good parley.Msg) []parley.Msg {
			good.Seq = 1
			return []parley.Msg{change(good, func(b []byte) []byte {
				b[links] = 2
				return append(b, b[links+1:]...)
			})}
		}},
		{"signers in another order", "not-from-source", 0, func(good parley.Msg) []parley.Msg {
			return []parley.Msg{change(good, func(b []byte) []byte { b[links+1] = 3; return b })}
		}},
		{"a signer there is not", "unknown-signer", 1, func(good parley.Msg) []parley.Msg {
			good.Seq = 1
			return []parley.Msg{change(good, func(b []byte) []byte {
				b[links] = 2
				more := bytes.Clone(b[links+1:])
				more[0] = 9
				return append(b, more...)
			})}
		}},
		{"a value that is too long", "oversized-value", 0, func(parley.Msg) []parley.Msg {
			body := append(binary.AppendUvarint(nil, 1100), make([]byte, 1100)...)
			return []parley.Msg{{Kind: 1, Body: append(body, 0)}}
		}},
		{"bytes after a chain", "malformed", 0, func(good parley.Msg) []parley.Msg {
			return []parley.Msg{change(good, func(b []byte) []byte { return append(b, 0) })}
		}},
	} {
		slot++
		before := s.nodes[2].Refusals(0)[c.why]
		s.rude(true)
		list := c.list(signed(p, value, with("test", 1, slot)))
		for round := range 2 {
			var body []byte
			if round == c.round {
				body = inside(list...)
			}
			s.all(message(channel, frame(slot, round, body)))
		}
		s.refuses(2, c.why, before)
		s.rude(false)
		if s.decides(); t.Failed() {
			t.Fatal("after " + c.what)
		}
	}
}

// What was sent on one connection is worthless on a later one: repeated frames belong to finished slots, and an
// older incarnation of the peer is refused.
func TestHostileReplay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := besieged(t, nil)
		s.decides()
		w := s.wires[2]
		w.mu.Lock()
		heard := w.heard
		w.mu.Unlock()
		if len(heard) == 0 {
			t.Fatal("nothing was heard")
		}
		s.connect()
		const why = "frame of a slot that is over"
		before := s.nodes[2].Refusals(0)[why]
		over := waited(10*time.Second, func() bool { // the others may be slower than the first node to decide
			for _, f := range heard { // frames of node 3, as if they were the hostile node's
				s.all(message(f.channel, f.m))
			}
			return s.nodes[2].Refusals(0)[why] >= before+uint64(len(heard))
		})
		if !over {
			t.Errorf("node 2 has not refused %q, but %v", why, s.nodes[2].Refusals(0))
		}
		s.decides()
		life := s.life
		s.connect()
		if kind, b := s.greeted(2, life); kind != rawBye {
			t.Errorf("an older life is answered by a frame of type %d: %v", kind, b)
		}
		s.refuses(2, "old incarnation", 0)
		if kind, _ := s.greeted(2, s.life); kind != rawBye {
			t.Errorf("a second connection is answered by a frame of type %d", kind)
		}
		s.refuses(2, "duplicate connection", 0)
		s.decides()
	})
}

// A peer that reads nothing blocks no other node: its queue is bounded, and then its connection is closed.
func TestHostileReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, func(c *cluster.Config) {
			c.Round = 100 * time.Millisecond
			c.Test().Limits = link.Limits{WriteTime: 300 * time.Millisecond, Silence: time.Hour, Ping: time.Minute}
		})
		s.decides()
		s.rude(true)
		for _, w := range s.wires[1:] {
			w.mu.Lock()
			w.deaf = true
			w.mu.Unlock()
		}
		before := heapInUse()
		ctx, stop := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		for range 64 {
			for _, node := range s.nodes[1:] {
				sending.Go(func() {
					for ctx.Err() == nil { // the result does not matter
						_, _ = node.Agree(ctx, cluster.AgreeRequest{Value: make([]byte, cluster.MaxValue)})
					}
				})
			}
		}
		s.refuses(2, "peer does not read", 0)
		if grown := heapInUse() - before; grown > 3*32<<20 {
			t.Errorf("%d MB more than before, in three nodes", grown>>20)
		} else {
			t.Logf("%d MB", grown>>20)
		}
		stop()
		sending.Wait()
		s.connect()
		s.decides()
	})
}
