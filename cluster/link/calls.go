package link

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"parley"
	"parley/cluster/api/parleyv1"
)

// Calls is the form of the link with remote procedure calls. The frames that are queued for a peer during a call are
// sent in the next call. So calls carry more frames when more frames are queued. Calls uses HTTP/2 and mutual TLS
// with the same certificates.
//
// A peer is up when each of the two nodes has received a hello of the other's current session. Frames that are sent
// from then on arrive once and in order, or the peer goes down. A failed call ends the session. Its frames and the
// queued frames are then lost and counted. A call without frames serves as a ping.
type Calls struct {
	*Mesh  // for its configuration, counters, and notes; it is not started
	peers  []*callee
	server *http.Server
	using  sync.RWMutex // held by calls that are being answered
}

// callee is a peer, which is called and calls.
type callee struct {
	*peer
	service parleyv1.LinkServiceClient
	idle    func()
	wake    chan struct{}

	mu     sync.Mutex // guards the queue
	queues [classes][]*parleyv1.LinkFrame
	bytes  [classes]int
	open   bool

	// turn is held while the handler is called. It guards the following fields.
	turn    sync.Mutex
	moved   chan struct{} // closed when any of them changes
	session uint64        // of its calls; 0: none is valid
	next    uint64        // number of its next call
	past    uint64        // latest session of the latest incarnation
	life    uint64        // incarnation in the hello of its session
	out     uint64        // 1 + the incarnation in its answer to our session's hello; 0: none yet
	up      bool
	since   time.Time
	cut     context.CancelCauseFunc // cancels our session
	given   *Down                   // why our session was given up, or nil
}

// batch is how many bytes of frames a call carries before it accepts no more.
const batch = 1 << 20

// NewCalls validates the configuration.
func NewCalls(c Config) (*Calls, error) {
	base, err := New(c)
	if err != nil {
		return nil, err
	}
	m := &Calls{Mesh: base}
	for _, p := range base.peers {
		var one *callee
		if p != nil {
			one = m.newCallee(p)
		}
		m.peers = append(m.peers, one)
	}
	return m, nil
}

// Start listens and starts calling.
func (m *Calls) Start() error {
	config := m.c.Identity.Accept()
	config.NextProtos = []string{"h2"}
	if err := m.open(); err != nil {
		return err
	}
	m.serve(config)
	for _, p := range m.peers {
		if p != nil {
			m.wg.Go(p.run)
		}
	}
	return nil
}

// Close ends all calls. Queued frames are lost.
func (m *Calls) Close() error {
	m.cancel()
	var err error
	if m.server != nil {
		err = m.server.Close()
	} else if m.listen != nil { // not started
		err = m.listen.Close()
	}
	m.using.Lock() // until the last call has been answered
	defer m.using.Unlock()
	m.wg.Wait()
	for _, p := range m.peers {
		if p != nil {
			p.idle()
		}
	}
	return err
}

// Send queues a frame for a peer. See Transport.
func (m *Calls) Send(to parley.ID, class Class, channel uint32, head, body []byte) bool {
	p, l := m.peers[to], &m.c.Limits
	limit := l.Bulk
	if class == Urgent {
		limit = l.Urgent
	}
	n := len(head) + len(body)
	why := Reason(0)
	p.mu.Lock()
	switch {
	case n > l.Frame:
		why = Oversize
	case !p.open:
		why = NotConnected
	case p.bytes[class]+n > limit:
		why = Overflow
	default:
		b := append(append(make([]byte, 0, n), head...), body...)
		p.queues[class] = append(p.queues[class], &parleyv1.LinkFrame{Channel: channel, Message: b})
		p.bytes[class] += n + 16
	}
	p.mu.Unlock()
	switch why {
	case 0:
		return true
	case Overflow:
		p.give(&Down{Reason: why}) // it counts the reason
	default:
		p.refused.add(why)
	}
	return false
}

// give ends our session with a peer.
func (p *callee) give(why *Down) {
	p.mu.Lock()
	p.open = false
	cut := p.cut
	if p.given == nil {
		p.given = why
	}
	p.mu.Unlock()
	if cut != nil {
		cut(why)
	}
}

// Flush starts a call with the frames queued for a peer.
func (m *Calls) Flush(to parley.ID) {
	select {
	case m.peers[to].wake <- struct{}{}:
	default:
	}
}

// Stats returns the counters.
func (m *Calls) Stats() Stats {
	out := Stats{Refused: m.refused.seen()}
	for _, p := range m.peers {
		if p == nil {
			continue
		}
		s := p.stats()
		p.mu.Lock()
		s.Connected, s.Since, s.Queued = p.open, p.since, p.bytes[Urgent]+p.bytes[Bulk]
		p.mu.Unlock()
		out.Peers = append(out.Peers, s)
	}
	return out
}

// take removes the frames of the next call, urgent ones first.
func (p *callee) take() (frames []*parleyv1.LinkFrame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := 0
	for class := range p.queues {
		q := p.queues[class]
		n := 0
		for ; n < len(q) && size < batch && len(frames) < batch/16; n++ {
			size += len(q[n].GetMessage())
			p.bytes[class] -= len(q[n].GetMessage()) + 16
			frames = append(frames, q[n])
		}
		if p.queues[class] = q[n:]; n == len(q) {
			p.queues[class] = nil
		}
	}
	return frames
}

// run runs one session after another.
func (p *callee) run() {
	l := &p.m.c.Limits
	for wait := l.Backoff; p.m.ctx.Err() == nil; wait = min(2*wait, l.BackoffMax) {
		begin := p.m.now()
		ctx, cut := context.WithCancelCause(p.m.ctx)
		p.mu.Lock()
		p.cut, p.given = cut, nil
		p.mu.Unlock()
		why := p.talk(ctx)
		if d, given := errors.AsType[*Down](context.Cause(ctx)); given {
			why = d
		}
		if p.m.ctx.Err() != nil {
			why = &Down{Reason: Closed}
		}
		cut(nil)
		p.count(why)
		p.ended(why)
		p.idle() // the next session uses another connection
		if p.m.now()-begin > l.BackoffMax+l.Greeting {
			wait = l.Backoff // it was stable
		}
		select {
		case <-p.m.ctx.Done():
		case <-time.After(jitter(wait)):
		}
	}
}

// talk runs one session to its end.
func (p *callee) talk(ctx context.Context) *Down {
	h, session := p.m.hello(), uint64(p.m.now())+1
	answer, down := p.call(ctx, &parleyv1.CarryRequest{Session: session, Hello: &parleyv1.LinkHello{
		Cluster: h.Cluster, Config: h.Config[:], Incarnation: h.Incarnation, Min: uint32(h.Min), Max: uint32(h.Max),
		Store: h.Disk.Store, Began: h.Disk.Began, Position: h.Disk.Position,
	}})
	if down != nil {
		return down
	}
	p.change(func() { p.out = answer.GetIncarnation() + 1 }) // so that it is not 0
	ping := time.NewTicker(p.m.c.Limits.Ping)
	defer ping.Stop()
	for number := uint64(1); ; {
		idle := false
		select {
		case <-ctx.Done():
			return &Down{Reason: Broken}
		case <-p.wake:
		case <-ping.C:
			idle = true
		}
		for frames := p.take(); len(frames) > 0 || idle; frames = p.take() {
			_, down := p.call(ctx, &parleyv1.CarryRequest{Session: session, Number: number, Frames: frames})
			if down != nil {
				p.framesLost.Add(uint64(len(frames)))
				return down
			}
			number, idle = number+1, false
		}
	}
}

// call makes a call.
func (p *callee) call(ctx context.Context, r *parleyv1.CarryRequest) (*parleyv1.CarryResponse, *Down) {
	ctx, cancel := context.WithTimeout(ctx, p.m.c.Limits.Silence)
	defer cancel()
	p.mu.Lock()
	ping := p.open && len(r.GetFrames()) == 0 // before that, calls wait for connections and hellos
	p.mu.Unlock()
	begin := p.m.now()
	answer, err := p.service.Carry(ctx, r)
	if err == nil {
		if ping {
			now := p.m.now()
			p.rtt.add(now, now-begin)
		}
		for _, f := range r.GetFrames() {
			p.bytesOut.Add(uint64(len(f.GetMessage())))
		}
		p.framesOut.Add(uint64(len(r.GetFrames())))
		return answer, nil
	}
	down := &Down{Reason: Broken, Err: p.m.c.Identity.Explain(err)}
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		down.Reason = Silent
	case errors.As(err, &op) && op.Op == "dial":
		down.Reason = Unreachable
	case connect.CodeOf(err) == connect.CodeFailedPrecondition:
		down.Reason = ToldOff
		if said, ok := errors.AsType[*connect.Error](err); ok {
			down.Told = Reason(max(0, slices.Index(reasonText[:], said.Message())))
		}
	}
	return nil, down
}

// change changes the state of the sessions, and calls Up if the peer is up now.
func (p *callee) change(what func()) {
	p.turn.Lock()
	defer p.turn.Unlock()
	what()
	p.changed()
}

// changed is called with turn held.
func (p *callee) changed() {
	close(p.moved)
	p.moved = make(chan struct{})
	if p.up || p.session == 0 || p.out != p.life+1 {
		return
	}
	p.up = true
	p.connections.Add(1)
	p.mu.Lock()
	p.open, p.since = true, time.Now()
	p.mu.Unlock()
	p.m.c.Handler.Up(p.id, p.life)
}

// ended ends both sessions with a peer: queued frames are lost.
func (p *callee) ended(why *Down) {
	p.mu.Lock()
	p.open = false
	lost := len(p.queues[Urgent]) + len(p.queues[Bulk])
	p.queues, p.bytes = [classes][]*parleyv1.LinkFrame{}, [classes]int{}
	p.mu.Unlock()
	p.framesLost.Add(uint64(lost))
	p.change(func() {
		was := p.up
		if p.up, p.out = false, 0; was {
			p.session = 0 // the peer must begin a new session, too
			p.m.c.Handler.Down(p.id, why)
		}
	})
}
