package link

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// session is one connection with an admitted peer.
//
// Writing has one owner at a time (owned). A goroutine that flushes becomes the owner if there is none, and stops
// being it when nothing is left to write. When it has written a block, or the socket accepts no more, it passes
// ownership to the writer, a goroutine that may wait.
type session struct {
	p       *peer
	m       *Mesh
	conn    *conn
	tls     *tls.Conn
	hello   Hello  // of the peer
	version uint16 // negotiated wire version, for Stats
	since   time.Time

	mu      sync.Mutex
	urgent  queue
	bulk    bulk
	owned   bool
	shut    bool          // accepts no more frames
	wrote   time.Duration // end of the last write
	pings   [64]time.Duration
	pinged  uint64        // pings sent
	ponged  uint64        // pings answered
	last    time.Duration // when the last ping was sent
	wake    chan struct{} // passes ownership of writing to the writer
	written sync.WaitGroup

	once sync.Once
	why  *Down // set before stop is closed
	stop chan struct{}
	done chan struct{} // closed when all is over, including Down

	// Fields of the reader.
	r         *reader
	got, data int // frames since the last burst, and those of them for the handler
	gotBytes  int
	owing     bool // a frame of ours (a pong) must be flushed
	pingTime  time.Duration
	pingCount int

	heard atomic.Int64 // arrival of the last frame, on the coarse clock
	begun atomic.Int64 // arrival of the start of the current frame, or 0
	busy  atomic.Bool  // the handler is at work: the peer is not expected to send
}

func newSession(p *peer, c *conn, t *tls.Conn, h Hello, version uint16) *session {
	s := &session{
		p: p, m: p.m, conn: c, tls: t, hello: h, version: version, since: time.Now(),
		owned: true, // until Up has been called
		wake:  make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	s.heard.Store(int64(p.m.now()))
	s.busy.Store(true) // Up comes before the first read
	return s
}

// inlineGap is how long after a write the next one is left to the writer. A goroutine that flushes again at once
// has more to send, which is better sent together; an answer to the last write takes longer than this.
const inlineGap = 3 * time.Microsecond

// serve runs the connection to its end, on the goroutine that made it.
func (s *session) serve() {
	defer s.p.leave(s)
	defer s.m.c.Identity.Watch(s.tls.ConnectionState(), func(why error) {
		s.fail(&Down{Reason: Untrusted, Err: why})
	})()
	s.p.connections.Add(1)
	s.r = newReader(s.m.c.Limits.Frame)
	s.conn.before = s.burst
	s.mu.Lock() // fail may read it
	s.conn.setFree()
	s.mu.Unlock()
	s.written.Add(1)
	go s.writer()
	h := s.m.c.Handler
	h.Up(s.p.id, s.hello.Incarnation)
	s.mu.Lock()
	s.pump(false) // writes what was queued before, and releases ownership
	s.read()
	s.burst()
	s.mu.Lock()
	s.shut = true
	lost := s.urgent.drop() + s.bulk.drop()
	s.mu.Unlock()
	s.written.Wait()
	s.p.framesLost.Add(uint64(lost))
	h.Down(s.p.id, s.why)
}

// send queues a frame.
func (s *session) send(class Class, channel uint32, head, body []byte) Reason {
	l := &s.m.c.Limits
	n := len(head) + len(body)
	if n > l.Frame || class == Urgent && n > fill {
		return Oversize
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.shut:
		return NotConnected
	case class == Urgent && s.urgent.bytes+n > l.Urgent, class == Bulk && s.bulk.waiting()+n > l.Bulk:
		return Overflow
	case class == Urgent:
		s.urgent.data(typeUrgent, channel, head, body)
	default:
		s.bulk.data(channel, head, body)
	}
	return 0
}

// control queues a frame of the link itself.
func (s *session) control(kind byte, body ...byte) {
	s.mu.Lock()
	full := s.urgent.bytes > s.m.c.Limits.Urgent
	if !s.shut && !full {
		s.urgent.add(kind, body...)
	}
	s.mu.Unlock()
	if full {
		s.fail(&Down{Reason: Overflow})
	}
}

func (s *session) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting()
}

func (s *session) waiting() int { return s.urgent.bytes + s.bulk.waiting() }

// flush writes what is queued, or leaves it to the current owner.
func (s *session) flush() {
	s.mu.Lock()
	if s.owned || s.shut || s.waiting() == 0 {
		s.mu.Unlock()
		return
	}
	s.owned = true
	if !s.conn.free || s.m.now()-s.wrote < inlineGap {
		s.mu.Unlock()
		s.wake <- struct{}{}
		return
	}
	s.pump(false)
}

// settle flushes, and waits until nothing is left to write or the time is over.
func (s *session) settle(until time.Time) {
	for s.flush(); time.Now().Before(until); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		idle := s.shut || !s.owned && s.waiting() == 0
		s.mu.Unlock()
		if idle {
			return
		}
	}
}

// pump writes. The owner calls it with s.mu held; it releases both. The writer continues until everything is
// written; other owners pass the rest to it after one block.
func (s *session) pump(writer bool) {
	for n := 0; ; n++ {
		behind := s.conn.behind.Load()
		if s.shut || !behind && s.waiting() == 0 {
			s.owned = false
			s.wrote = s.m.now()
			s.mu.Unlock()
			return
		}
		if !writer && (behind || n > 0 || !s.conn.free) {
			s.mu.Unlock()
			s.wake <- struct{}{} // never full: only the owner sends, and the receiver becomes the owner
			return
		}
		var b *block
		if !behind {
			b = s.take()
		}
		s.mu.Unlock()
		s.put(b)
		s.mu.Lock()
	}
}

// take returns the next block: urgent frames, together with short bulk frames if those are few.
func (s *session) take() *block {
	if s.urgent.bytes == 0 {
		return s.bulk.take()
	}
	b, short := s.urgent.take(), &s.bulk.short
	if s.urgent.bytes == 0 && short.bytes > 0 && short.bytes+len(b.b) <= fill/4 {
		more := short.take()
		b.b = append(b.b, more.b...)
		b.frames += more.frames
		more.release()
	}
	return b
}

// put writes a block, or with nil waits until the socket has accepted the spill.
func (s *session) put(b *block) {
	if b == nil {
		if err := s.conn.drain(s.m.c.Limits.WriteTime); err != nil {
			s.fail(broken(err))
		}
		return
	}
	if !s.conn.free {
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.m.c.Limits.WriteTime)) // an error would show at the write
	}
	if _, err := s.tls.Write(b.b); err != nil {
		s.p.framesLost.Add(uint64(b.frames))
		s.fail(broken(err))
	} else {
		s.p.framesOut.Add(uint64(b.frames))
		s.p.bytesOut.Add(uint64(len(b.b)))
	}
	b.release()
}

// writer is the goroutine that writes when writing must wait.
func (s *session) writer() {
	defer s.written.Done()
	for {
		select {
		case <-s.wake:
			s.mu.Lock()
			s.pump(true)
		case <-s.stop:
			return
		}
	}
}

// fail ends the connection, with a bye to the peer if that needs no waiting. The reader then ends the session.
// Only the first reason counts.
func (s *session) fail(why *Down) {
	s.once.Do(func() {
		s.why = why
		s.p.count(why)
		s.mu.Lock()
		s.shut = true                   // before the bye, which is the last frame
		tell := !s.owned || s.conn.free // otherwise the owner may be waiting
		s.owned = true                  // forever
		s.mu.Unlock()
		if tell && why.Reason != Broken && why.Reason != ToldOff {
			_ = s.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
			_, _ = s.tls.Write(append(appendHeader(nil, typeBye, 2), byte(why.Reason))) // best effort
		}
		close(s.stop)
		_ = s.conn.Close()
	})
}

func (s *session) ended() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// broken returns the reason of a failed read or write.
func broken(err error) *Down {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errSpill) {
		return &Down{Reason: Stuck, Err: err}
	}
	return &Down{Reason: Broken, Err: err}
}

// read handles frames until the connection ends.
func (s *session) read() {
	for {
		n, err := s.tls.Read(s.r.free())
		s.busy.Store(true)
		s.r.end += n
		s.gotBytes += n
		for {
			b, why := s.r.next()
			if why == 0 && b != nil {
				why = s.frame(b)
			}
			if why != 0 {
				s.fail(&Down{Reason: why})
				return
			}
			if b == nil {
				break
			}
		}
		switch {
		case err == nil:
		case s.r.end > s.r.start || len(s.r.long) > 0:
			s.fail(&Down{Reason: Truncated, Err: err})
			return
		case errors.Is(err, io.EOF):
			s.fail(&Down{Reason: Broken, Err: err})
			return
		default:
			s.fail(&Down{Reason: Broken, Err: s.m.c.Identity.Explain(err)})
			return
		}
	}
}

// frame handles one frame, which begins with its type.
func (s *session) frame(b []byte) (why Reason) {
	s.got++
	kind, b := b[0], b[1:]
	switch kind {
	case typeBulk:
		if b, why = s.r.whole(b); why != 0 {
			return why
		}
		fallthrough
	case typeUrgent:
		channel, rest, why := s.r.open(b)
		if why == 0 {
			s.data++
			s.m.c.Handler.Frame(s.p.id, channel, rest)
		}
		return why
	case typePart:
		return s.r.part(b)
	case typePing:
		return s.ping(b)
	case typePong:
		return s.pong(b)
	case typeHello:
		return SecondHello
	case typeBye:
		if len(b) != 1 {
			return Malformed
		}
		down := told(b[0])
		if down.Told == Closed {
			down = &Down{Reason: Closed}
		}
		s.fail(down)
		return Closed // later frames are ignored
	}
	return UnknownType
}

// burst is called by the reader before it reads from the socket.
func (s *session) burst() {
	now := s.m.coarse.Load()
	under := s.r.end > s.r.start
	if s.got > 0 {
		s.p.framesIn.Add(uint64(s.got))
		s.p.bytesIn.Add(uint64(s.gotBytes))
		s.heard.Store(now)
		s.begun.Store(0)
		if s.data > 0 {
			s.m.c.Handler.Burst(s.p.id)
		}
		s.got, s.data, s.gotBytes = 0, 0, 0
	}
	if under && s.begun.Load() == 0 {
		s.begun.Store(now)
	}
	if s.owing {
		s.owing = false
		s.flush()
	}
	s.busy.Store(false)
}

// ping answers a ping, within limits.
func (s *session) ping(b []byte) Reason {
	if len(b) != 8 {
		return Malformed
	}
	if now := time.Duration(s.m.coarse.Load()); now-s.pingTime > time.Second {
		s.pingTime, s.pingCount = now, 0
	}
	if s.pingCount++; s.pingCount > s.m.c.Limits.Pings {
		return PingFlood
	}
	s.control(typePong, b...)
	s.owing = true
	return 0
}

// pong handles the answer to the oldest unanswered ping.
func (s *session) pong(b []byte) Reason {
	if len(b) != 8 {
		return Malformed
	}
	at := time.Duration(binary.BigEndian.Uint64(b))
	s.mu.Lock()
	ok := s.ponged < s.pinged && s.pings[s.ponged%uint64(len(s.pings))] == at
	if ok {
		s.ponged++
	}
	s.mu.Unlock()
	if !ok {
		return BadPong
	}
	if now := s.m.now(); at >= time.Duration(s.m.held.Load()) && !s.m.late(now) {
		s.p.rtt.add(now, now-at)
	} // otherwise the answer lay here while this process was paused
	return 0
}

// keep is called once a tick: it sends pings, and checks deadlines. A peer is not blamed after a pause of our own
// process, or while our handler is at work.
func (s *session) keep(now time.Duration, paused bool) {
	l := &s.m.c.Limits
	begun, heard := s.begun.Load(), s.heard.Load()
	switch {
	case paused || s.busy.Load():
		s.heard.Store(int64(now))
		if begun != 0 {
			s.begun.CompareAndSwap(begun, int64(now))
		}
	case begun != 0 && now-time.Duration(begun) > l.FrameTime:
		s.fail(&Down{Reason: SlowFrame})
		return
	case begun == 0 && now-time.Duration(heard) > l.Silence:
		s.fail(&Down{Reason: Silent})
		return
	}
	if now-s.last < l.Ping {
		return
	}
	s.last = now
	s.mu.Lock()
	due := s.pinged-s.ponged < uint64(len(s.pings)) // otherwise enough pings are unanswered
	at := s.m.now()
	if due {
		s.pings[s.pinged%uint64(len(s.pings))] = at
		s.pinged++
	}
	s.mu.Unlock()
	if due {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(at))
		s.control(typePing, b[:]...)
	}
	s.flush()
}
