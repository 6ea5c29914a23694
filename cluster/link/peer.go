package link

import (
	"crypto/x509"
	"sync/atomic"
	"time"

	"parley"
)

// peer is another node: the state that outlives connections.
type peer struct {
	m    *Mesh
	id   parley.ID
	addr string
	live atomic.Pointer[session]

	judging chan struct{} // a lock, held while a connection is judged

	newest atomic.Uint64 // incarnation that was admitted last
	rtt    window
	tally

	told                            atomic.Uint32 // the last Reason for which it refused us
	connections, framesLost, spills atomic.Uint64
}

// tally are the counters of a peer, in both forms of the link.
type tally struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
	refused                                counts
}

// name returns the peer's name for the log.
func (p *peer) name() string {
	if names := p.m.c.Names; names != nil {
		return names[p.id]
	}
	return p.id.String()
}

// admit makes s the peer's connection, or returns why not. There is one at a time: another one replaces it only
// if it has ended, or is of an earlier incarnation. The old one must end completely first, so that the host
// handles its Down before the new Up.
func (p *peer) admit(s *session) *Down {
	p.judging <- struct{}{}
	defer func() { <-p.judging }()
	if down := p.judge(s.hello, s.tls.ConnectionState().PeerCertificates[0]); down != nil {
		return down
	}
	for {
		old := p.live.Load() // nobody else sets live meanwhile, but a session may end
		switch {
		case old == nil:
			p.live.Store(s)
			return nil
		case !old.ended() && s.hello.Incarnation == old.hello.Incarnation:
			return &Down{Reason: Duplicate}
		}
		old.fail(&Down{Reason: Replaced})
		<-old.done
	}
}

// judge returns why a peer with this hello is refused, or nil. It may take as long as the disk.
func (p *peer) judge(h Hello, leaf *x509.Certificate) *Down {
	if judge := p.m.c.Judge; judge != nil {
		if down := judge(p.id, h, leaf); down != nil {
			return down
		}
	} else if h.Incarnation < p.newest.Load() {
		return &Down{Reason: OldLife}
	}
	p.newest.Store(h.Incarnation)
	return nil
}

// count counts a connection that ended or was refused, and logs it.
func (p *peer) count(why *Down) {
	if p.refused.add(why.Reason); why.Reason == ToldOff {
		p.told.Store(uint32(why.Told))
	}
	p.m.note("peer", p.name(), why)
}

// leave ends s as the peer's connection.
func (p *peer) leave(s *session) {
	p.live.Store(nil)
	p.spills.Add(s.conn.spills.Load())
	close(s.done)
}

func (p *peer) send(class Class, channel uint32, head, body []byte) bool {
	s := p.live.Load()
	if s == nil {
		p.refused.add(NotConnected)
		return false
	}
	why := s.send(class, channel, head, body)
	if why == 0 {
		return true
	}
	if why == Overflow {
		s.fail(&Down{Reason: why}) // it counts the reason
	} else {
		p.refused.add(why)
	}
	return false
}

func (p *peer) stats() PeerStats {
	out := p.tally.stats(p.id)
	out.Connections, out.FramesLost, out.Spills = p.connections.Load(), p.framesLost.Load(), p.spills.Load()
	out.RTT, out.Recent, out.Told = p.rtt.sum(), p.rtt.recent(p.m.now()), Reason(p.told.Load())
	out.Incarnation = p.newest.Load()
	if s := p.live.Load(); s != nil {
		out.Connected, out.Since, out.Version, out.Queued = true, s.since, s.version, s.queued()
		out.Spills += s.conn.spills.Load()
	}
	return out
}

func (t *tally) stats(id parley.ID) PeerStats {
	return PeerStats{
		ID: id, FramesIn: t.framesIn.Load(), FramesOut: t.framesOut.Load(),
		BytesIn: t.bytesIn.Load(), BytesOut: t.bytesOut.Load(), Refused: t.refused.seen(),
	}
}

// dial keeps the peer connected.
func (p *peer) dial() {
	l := &p.m.c.Limits
	for wait := l.Backoff; ; {
		if p.m.call(p) > l.BackoffMax { // it was stable: the peer is still there, or refuses at once
			wait = l.Backoff
			if p.m.ctx.Err() == nil {
				continue
			}
		}
		select {
		case <-p.m.ctx.Done():
			return
		case <-time.After(jitter(wait)):
		}
		wait = min(2*wait, l.BackoffMax)
	}
}
