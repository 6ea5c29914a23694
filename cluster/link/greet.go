package link

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// acceptBackoff is how long the mesh waits after the listener failed; it doubles up to 1 s.
const acceptBackoff = 5 * time.Millisecond

// accept accepts connections until the mesh is closed.
func (m *Mesh) accept() {
	wait := acceptBackoff
	for {
		nc, err := m.listen.Accept()
		switch {
		case m.ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return
		case err != nil:
			// Most likely there are no descriptors left: other connections may release some.
			m.refuse(nil, "listener", &Down{Reason: AcceptFailed, Err: err})
			select {
			case <-m.ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, time.Second)
			continue
		}
		wait = acceptBackoff // also after a refused connection, or a flood of these would keep peers waiting
		if m.admits(nc) {
			m.wg.Go(func() { m.answer(nc, AddressOf(nc.RemoteAddr()).String()) })
		}
	}
}

// admits closes a connection, before TLS, when too many strangers connect.
func (m *Mesh) admits(c net.Conn) bool {
	a := AddressOf(c.RemoteAddr())
	why := m.gate.enter(a, m.now())
	if why == 0 {
		return true
	}
	m.refuse(nil, a.String(), &Down{Reason: why})
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // so that the system keeps nothing of it
	}
	_ = c.Close()
	return false
}

// gated is a listener that returns only connections that the mesh admits.
type gated struct {
	net.Listener
	m *Mesh
}

// Accept returns the next admitted connection.
func (g gated) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil || g.m.admits(c) {
			return c, err
		}
	}
}

// answer serves an accepted connection until its end. The peer's hello is read and judged before ours is sent, so
// that our hello tells the peer that it is admitted.
func (m *Mesh) answer(nc net.Conn, from string) {
	leave := sync.OnceFunc(m.gate.leave)
	defer leave()
	alive := context.AfterFunc(m.ctx, func() { _ = nc.Close() })
	defer alive()
	c := newConn(nc)
	t := tls.Server(c, m.tls)
	p, s, down := m.greet(c, t, nil)
	leave()
	if down == nil {
		down = p.admit(s)
	}
	if down != nil {
		m.refuse(p, from, down)
		m.part(t, down)
		return
	}
	if _, err := t.Write(m.hello().encode()); err != nil {
		p.leave(s)
		m.refuse(p, from, greetingError(err))
		_ = nc.Close()
		return
	}
	m.run(s, alive)
}

// call dials a peer once, serves the connection until its end, and returns how long it was up.
func (m *Mesh) call(p *peer) (up time.Duration) {
	nc, err := m.dial(m.ctx, p.addr)
	if err != nil {
		m.refuse(p, "", &Down{Reason: Unreachable, Err: err})
		return 0
	}
	alive := context.AfterFunc(m.ctx, func() { _ = nc.Close() })
	defer alive()
	config := m.c.Identity.Dial(p.id)
	config.DynamicRecordSizingDisabled = true // large records from the beginning
	c := newConn(nc)
	t := tls.Client(c, config)
	_, s, down := m.greet(c, t, p)
	if down == nil {
		down = p.admit(s)
	}
	if down != nil {
		m.refuse(p, "", down)
		m.part(t, down)
		return 0
	}
	began := m.now()
	m.run(s, alive)
	return m.now() - began
}

// run serves a connection, unless the mesh was closed meanwhile: alive no longer watches it, and Close ends it.
func (m *Mesh) run(s *session, alive func() bool) {
	if !alive() {
		s.p.leave(s)
		return
	}
	_ = s.conn.SetDeadline(time.Time{}) // a failure shows at the first read
	s.serve()
}

// greet performs the handshake and exchanges hellos, with one deadline for all. The other side must be the dialed
// peer, or one of the peers that dial us. It returns the peer once it is authenticated.
func (m *Mesh) greet(c *conn, t *tls.Conn, dialed *peer) (p *peer, s *session, down *Down) {
	if err := c.SetDeadline(time.Now().Add(m.c.Limits.Greeting)); err != nil {
		return dialed, nil, greetingError(err)
	}
	if err := t.HandshakeContext(context.Background()); err != nil { // the deadline ends it
		down := greetingError(err)
		if down.Reason == Handshake {
			down.Err = m.c.Identity.Explain(err)
		}
		return dialed, nil, down
	}
	state := t.ConnectionState()
	id, err := m.c.Identity.Who(state)
	switch {
	case err != nil:
		return dialed, nil, &Down{Reason: Handshake, Err: err}
	case state.Version < tls.VersionTLS13 || state.DidResume:
		return dialed, nil, &Down{Reason: Handshake} // the configuration should prevent this
	case dialed != nil && id != dialed.id, int(id) >= len(m.peers), dialed == nil && id >= m.c.Self:
		return dialed, nil, &Down{Reason: OtherPeer}
	}
	p = m.peers[id]
	if dialed != nil {
		if _, err := t.Write(m.hello().encode()); err != nil {
			return p, nil, greetingError(err)
		}
	}
	hello, down := readHello(t, m.c.Hello.Max)
	if down != nil {
		if down.Reason == Handshake { // the alert of a peer that refuses our certificate
			down.Err = m.c.Identity.Explain(down.Err)
		}
		return p, nil, down
	}
	version, why := m.c.Hello.agree(hello)
	if why != 0 {
		return p, nil, &Down{Reason: why}
	}
	return p, newSession(p, c, t, hello, version), nil
}

// part closes a refused connection, and sends the peer the reason if possible.
func (m *Mesh) part(t *tls.Conn, down *Down) {
	switch down.Reason {
	case Handshake, Late, Broken, Truncated, ToldOff:
	default:
		_, _ = t.Write(append(appendHeader(nil, typeBye, 2), byte(down.Reason))) // best effort
	}
	_ = t.NetConn().Close()
}

// refuse counts and logs a connection that was not made.
func (m *Mesh) refuse(p *peer, from string, down *Down) {
	if m.ctx.Err() != nil {
		return // the mesh is being closed
	}
	if p == nil {
		m.refused.add(down.Reason)
		m.note("address", from, down)
		return
	}
	p.count(down)
}

// notes remembers what was logged, to log it at most once a minute.
type notes struct {
	mu    sync.Mutex
	last  map[note]time.Duration
	swept time.Duration // when old entries were last removed
}

type note struct {
	kind, who string
	why, told Reason
	about     string // for strangers: the subject of the error, because several may share an address
}

const (
	noteEvery   = time.Minute
	notesKept   = 1024 // of different addresses and reasons; above that, strangers are only counted
	notesOfEach = 16   // of these for one address
)

// due reports whether a note should be logged now.
func (n *notes) due(k note, now time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.last[k]; ok && now-at < noteEvery {
		return false
	}
	if n.last == nil {
		n.last = make(map[note]time.Duration)
	}
	if k.kind != "peer" && len(n.last) >= notesKept {
		if now-n.swept < time.Second {
			return false // a flood must not cost more than it does anyway
		}
		n.swept = now
		for k, at := range n.last {
			if now-at >= noteEvery {
				delete(n.last, k)
			}
		}
		if len(n.last) >= notesKept {
			return false
		}
	}
	if k.about != "" && n.of(k.who, now) >= notesOfEach {
		return false // a stranger that invents a new name each time
	}
	n.last[k] = now
	return true
}

// of returns how many notes of an address were logged recently.
func (n *notes) of(address string, now time.Duration) (count int) {
	for k, at := range n.last {
		if k.kind == "address" && k.who == address && now-at < noteEvery {
			count++
		}
	}
	return count
}

// note logs an event of a peer or a stranger.
func (m *Mesh) note(kind, who string, down *Down) {
	k := note{kind: kind, who: who, why: down.Reason, told: down.Told}
	var about interface{ Subject() string }
	if kind == "address" && errors.As(down.Err, &about) {
		k.about = about.Subject()
	}
	if !m.notes.due(k, m.now()) {
		return
	}
	level := slog.LevelWarn
	if down.Reason == Closed {
		level = slog.LevelInfo
	}
	m.c.Log.LogAttrs(context.Background(), level, "link refused or lost",
		slog.String(kind, who), slog.String("reason", down.Reason.String()), slog.String("err", down.Error()))
}
