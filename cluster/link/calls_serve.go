package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/parleyv1"
)

// newCallee returns a peer that can be called.
func (m *Calls) newCallee(p *peer) *callee {
	l := &m.c.Limits
	t := &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			config := m.c.Identity.Dial(p.id)
			config.NextProtos = []string{"h2"}
			conn, err := m.dialTLS(ctx, p.addr, config)
			if err != nil {
				return nil, err
			}
			if who, err := m.c.Identity.Who(conn.ConnectionState()); err != nil || who != p.id {
				return nil, errors.Join(errors.New("link: "+OtherPeer.String()), err, conn.Close())
			}
			return conn, nil
		},
		HTTP2: &http.HTTP2Config{SendPingTimeout: l.Silence, PingTimeout: l.Silence},
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	return &callee{
		peer: p, wake: make(chan struct{}, 1), moved: make(chan struct{}), idle: t.CloseIdleConnections,
		service: parleyv1.NewLinkServiceClient(&http.Client{Transport: t}, "https://"+p.addr,
			connect.WithReadMaxBytes(1<<10), connect.WithAcceptCompression("gzip", nil, nil)),
	}
}

// incoming is a connection on which a peer calls. The peer is authenticated once, for as long as its certificate
// is trusted.
type incoming struct {
	conn  net.Conn
	once  sync.Once
	who   *callee
	leaf  *x509.Certificate
	leave func() // removes it from the strangers
	mu    sync.Mutex
	stop  func() // stops watching the certificate
}

type incomingKey struct{}

// serve starts the server for calls.
func (m *Calls) serve(config *tls.Config) {
	var all sync.Map // incoming by net.Conn
	path, handler := parleyv1.NewLinkServiceHandler(calling{m}, connect.WithReadMaxBytes(m.c.Limits.Frame+2*batch),
		connect.WithCompression("gzip", nil, nil))
	mux := http.NewServeMux()
	mux.Handle(path, m.known(handler))
	m.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: m.c.Limits.Greeting, ReadTimeout: m.c.Limits.FrameTime,
		IdleTimeout: 2 * m.c.Limits.Silence, MaxHeaderBytes: 8 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 4}, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			in := &incoming{conn: c, leave: sync.OnceFunc(m.gate.leave)}
			all.Store(c, in)
			return context.WithValue(ctx, incomingKey{}, in)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			in, ok := all.Load(c)
			if !ok || state != http.StateClosed && state != http.StateHijacked {
				return
			}
			all.Delete(c)
			one := in.(*incoming)
			one.leave()
			one.mu.Lock()
			if one.stop != nil {
				one.stop()
			}
			one.mu.Unlock()
		},
	}
	m.wg.Go(func() { _ = m.server.Serve(tls.NewListener(gated{m.listen, m.Mesh}, config)) })
}

// known authenticates the caller before the call is read. Two calls of a peer are read at a time: one in flight,
// and one that replaces it after a failure.
func (m *Calls) known(next http.Handler) http.Handler {
	slots := make([]chan struct{}, len(m.peers))
	for i := range slots {
		slots[i] = make(chan struct{}, 2)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, ok := r.Context().Value(incomingKey{}).(*incoming)
		if !ok || r.TLS == nil {
			panic(http.ErrAbortHandler)
		}
		m.using.RLock()
		defer m.using.RUnlock()
		if m.ctx.Err() != nil {
			panic(http.ErrAbortHandler) // the mesh is being closed
		}
		in.once.Do(func() { m.meet(in, *r.TLS) })
		if in.who == nil {
			_ = in.conn.Close()
			panic(http.ErrAbortHandler)
		}
		slot := slots[in.who.id]
		select {
		case slot <- struct{}{}:
			defer func() { <-slot }()
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "too many calls", http.StatusTooManyRequests)
		}
	})
}

// meet authenticates a connection.
func (m *Calls) meet(in *incoming, state tls.ConnectionState) {
	in.leave()
	id, err := m.c.Identity.Who(state)
	if err != nil || int(id) >= len(m.peers) || m.peers[id] == nil {
		m.refuse(nil, in.conn.RemoteAddr().String(), &Down{Reason: OtherPeer, Err: err})
		return
	}
	in.who, in.leaf = m.peers[id], state.PeerCertificates[0]
	stop := m.c.Identity.Watch(state, func(why error) {
		in.who.give(&Down{Reason: Untrusted, Err: why}) // first, because the peer reconnects when it is closed
		_ = in.conn.Close()
	})
	in.mu.Lock()
	in.stop = stop
	in.mu.Unlock()
}

// calling implements LinkService.
type calling struct{ m *Calls }

// Carry handles the frames of one call.
func (h calling) Carry(ctx context.Context, r *parleyv1.CarryRequest) (*parleyv1.CarryResponse, error) {
	in, _ := ctx.Value(incomingKey{}).(*incoming)
	p := in.who
	var why Reason
	if r.GetNumber() == 0 {
		why = p.greeted(r, in.leaf)
	} else {
		why = p.carried(ctx, r)
	}
	if why != 0 {
		p.refused.add(why)
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New(why.String()))
	}
	return &parleyv1.CarryResponse{Incarnation: h.m.c.Hello.Incarnation}, nil
}

// greeted handles the first call of a session.
func (p *callee) greeted(r *parleyv1.CarryRequest, leaf *x509.Certificate) Reason {
	x := r.GetHello()
	hello := Hello{Cluster: x.GetCluster(), Incarnation: x.GetIncarnation()}
	hello.Disk = Disk{Store: x.GetStore(), Began: x.GetBegan(), Position: x.GetPosition()}
	hello.Min, hello.Max = uint16(min(x.GetMin(), 1<<16-1)), uint16(min(x.GetMax(), 1<<16-1))
	if x == nil || len(r.GetFrames()) > 0 || r.GetSession() == 0 ||
		copy(hello.Config[:], x.GetConfig()) != len(hello.Config) {
		return BadHello
	}
	if _, why := p.m.c.Hello.agree(hello); why != 0 {
		return why
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	if down := p.judge(hello, leaf); down != nil {
		p.m.note("peer", p.name(), down)
		return down.Reason
	}
	if hello.Incarnation == p.life && r.GetSession() <= p.past {
		return OldLife
	}
	if p.up { // the peer has lost our session, and possibly its memory
		p.up, p.out = false, 0
		p.give(&Down{Reason: Replaced}) // keeps an earlier reason of our own
		p.mu.Lock()
		why := p.given
		p.mu.Unlock()
		p.m.c.Handler.Down(p.id, why)
	}
	p.session, p.past, p.life, p.next = r.GetSession(), r.GetSession(), hello.Incarnation, 1
	p.changed()
	return 0
}

// carried handles a later call of a session. The peer's hello may be answered before ours is.
func (p *callee) carried(ctx context.Context, r *parleyv1.CarryRequest) Reason {
	late := time.After(p.m.c.Limits.Silence)
	p.turn.Lock()
	defer p.turn.Unlock()
	for p.session == r.GetSession() && !p.up {
		moved := p.moved
		p.turn.Unlock()
		select {
		case <-moved:
		case <-late:
		case <-ctx.Done():
		}
		p.turn.Lock()
		if p.moved == moved { // it was a timeout
			return NotConnected
		}
	}
	if p.session != r.GetSession() || p.next != r.GetNumber() {
		return NotConnected
	}
	p.next++
	bytes := 0
	for _, f := range r.GetFrames() {
		bytes += len(f.GetMessage())
		if len(f.GetMessage()) > p.m.c.Limits.Frame {
			return LongFrame
		}
		p.m.c.Handler.Frame(p.id, f.GetChannel(), f.GetMessage())
	}
	if len(r.GetFrames()) > 0 {
		p.framesIn.Add(uint64(len(r.GetFrames())))
		p.bytesIn.Add(uint64(bytes))
		p.m.c.Handler.Burst(p.id)
	}
	return 0
}
