package harness

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/store"
	"parley/internal/lists"
	"parley/trace"
)

// channel is the channel of the machine.
const channel = 1

// member is one process of a run, seen from inside.
type member struct {
	Spec
	network link.Network // nil: the system's
	machine parley.Machine
	clock   clock
	trust   *cert.Trust
	self    *cert.Self
	signer  ed25519.PrivateKey

	listener net.Listener
	mesh     *link.Mesh
	host     *host.Host
	store    *store.Store
	asking   sync.WaitGroup
	end      context.CancelFunc
	ending   sync.Once

	out     sync.Mutex
	encoder *json.Encoder

	mu        sync.Mutex
	process   *host.Process
	asked     bool // all requests have been made
	over      bool // and the trace is complete
	up        parley.Set
	down      parley.Set // processes that were up before
	met       []uint64   // incarnations of the peers of the last links, by process
	inbox     inbox
	counted   status
	made      int // the number of requests made
	weather   *senderWeather
	sends     uint64      // of the machine so far
	sentAt    parley.Tick // the time of the last one
	crashPlan crashPlan
	stamped   []byte // scratch for a frame
	file      *os.File
	written   *trace.Stream // unbuffered: if the process is killed, its trace contains everything that it has sent
}

// Serve runs one process of a run. It follows the orders that it reads from in, and returns when in ends. The
// function make makes the machine. The argument n is the network; nil means the system's network.
func Serve(n link.Network, in io.Reader, out io.Writer, make func(Spec) (parley.Machine, error)) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	lines := json.NewDecoder(bufio.NewReader(in))
	m := &member{network: n, encoder: json.NewEncoder(out), end: cancel}
	if err := lines.Decode(&m.Spec); err != nil {
		return err
	}
	var err error
	if m.machine, err = make(m.Spec); err == nil {
		err = m.listen(ctx)
	}
	if err != nil {
		m.say(answer{Failed: err.Error()})
		return err
	}
	defer m.close()
	m.say(answer{Listens: m.listener.Addr().String()})
	for {
		var o order
		if err := lines.Decode(&o); err != nil {
			return nil // the starter has ended, or needs nothing more
		}
		if err := m.follow(ctx, o); err != nil {
			m.say(answer{Failed: err.Error()})
			return err
		}
	}
}

func (m *member) say(a answer) {
	m.out.Lock()
	defer m.out.Unlock()
	_ = m.encoder.Encode(a) //nolint:errchkjson // a starter that stops reading also closes the input
}

// follow executes an order.
func (m *member) follow(ctx context.Context, o order) error {
	switch {
	case o.Peers != nil:
		return m.connect(o.Peers)
	case o.Gone != nil:
		m.mu.Lock()
		m.inbox.crashed = append(m.inbox.crashed, o.Gone...)
		m.wakeInbox()
		m.mu.Unlock()
	case !o.Begin.IsZero():
		m.mu.Lock()
		m.clock = clock{o.Begin, m.Tick}
		m.mu.Unlock()
		m.Header.Node.Began = o.Begin.UnixNano()
		var err error
		if m.written, err = trace.NewStream(m.file, m.Header, trace.StreamOptions{AtOnce: true}); err != nil {
			return err
		}
		m.asking.Go(func() {
			if err := m.begin(ctx); err != nil && ctx.Err() == nil {
				m.say(answer{Failed: err.Error()})
			}
		})
		m.asking.Go(func() { m.measureLateness(ctx) })
		m.asking.Go(func() { m.deliver(ctx) })
	case o.End:
		m.stop()
		m.say(answer{Status: m.status(0)})
	case o.Ask > 0:
		m.say(answer{Status: m.status(o.Ask)})
	}
	return nil
}

// listen reads the certificates, creates the trace file, and listens.
func (m *member) listen(ctx context.Context) (err error) {
	n := m.Header.N
	m.counted.Sent, m.counted.Received = make([]uint64, n), make([]uint64, n)
	m.met = make([]uint64, n)
	m.inbox = inbox{links: make([]int, n), seen: make([]letter, n), wake: make(chan struct{}, 1)}
	m.weather, m.crashPlan = newSenderWeather(&m.Weather, m.Header.Seed, m.Self, n), crashPlan{m: m, steps: m.Steps}
	if m.trust, err = cert.LoadTrust(m.Certs, nil); err != nil {
		return err
	}
	if m.self, m.signer, err = cert.LoadNode(m.Certs, name(m.Self)); err != nil {
		return err
	}
	if m.file, err = os.OpenFile(m.Trace, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	if m.Store != "" {
		m.store, err = store.Open(m.Store, store.Options{
			Durable: func(upto uint64) { m.host.Durable(upto) },
			Failed:  func(err error) { m.say(answer{Failed: err.Error()}) },
		})
		if err != nil {
			return err
		}
	}
	listen := new(net.ListenConfig).Listen
	if m.network != nil {
		listen = m.network.Listen
	}
	m.listener, err = listen(ctx, "tcp", cmp.Or(m.Spec.Listen, "127.0.0.1:0"))
	return err
}

// name returns the name of a process in its certificate.
func name(id parley.ID) string { return fmt.Sprintf("p%d", id+1) }

// names returns the names of all processes.
func names(n int) []string { return lists.Each(parley.Everyone(n).All(), name) }

// connect makes the links.
func (m *member) connect(peers []string) (err error) {
	m.host = host.New(host.Config{
		Life: m.Life,
		Self: m.Self, N: m.Header.N, Transport: (*carrier)(m), Store: m.store, Clock: &m.clock, Signer: (*signer)(m),
		Broken:   func(err error) { m.say(answer{Failed: err.Error()}) },
		Punctual: m.network == nil,
	})
	m.mesh, err = link.New(link.Config{
		Self: m.Self, Peers: peers, Network: m.network, Listener: m.listener,
		Identity: link.Members{Self: m.self, Trust: m.trust, Names: names(m.Header.N)}, Handler: (*handler)(m),
		Hello: link.Hello{
			Cluster: m.trust.Cluster(), Incarnation: m.Life,
			Config: sha256.Sum256([]byte(strings.Join(m.Header.Args, "\x00"))),
		},
	})
	if err != nil {
		return err
	}
	if m.Header.N == 1 {
		m.say(answer{Connected: true})
	}
	return m.mesh.Start()
}

// begin starts the machine at its time, and makes its requests.
func (m *member) begin(ctx context.Context) error {
	if !m.Early && !sleep(ctx, m.clock.Until(0)) {
		return nil
	}
	p, err := m.host.Open(host.Options{
		Channel: channel, Name: "machine", Machine: m.machine, Class: link.Bulk, Clock: &wrong{&m.clock, m.Wrong},
		Again: m.Life > 1, Trace: m.note, Crash: &m.crashPlan,
		Chance: rand.NewPCG(m.Header.Seed, uint64(m.Self)<<32|m.Life),
	})
	if errors.Is(err, host.ErrStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.process = p
	m.wakeInbox()
	m.mu.Unlock()
	for _, q := range m.Requests {
		if q.When > 0 && !sleep(ctx, m.clock.Until(q.When)) {
			return nil
		}
		m.mu.Lock()
		m.made++
		m.mu.Unlock()
		if q.Msg.Kind == parley.Suspect {
			p.Indicate(q.Msg)
		} else if err := p.Request(q.Msg); err != nil && !errors.Is(err, host.ErrStopped) {
			return err
		}
	}
	m.mu.Lock()
	m.asked = true
	m.mu.Unlock()
	if m.Until > 0 && sleep(ctx, m.clock.Until(m.Until+1)) {
		m.stop()
	}
	return nil
}

// measureLateness measures how late the process wakes.
func (m *member) measureLateness(ctx context.Context) {
	const nap = 2 * time.Millisecond
	for since := time.Now(); sleep(ctx, nap); since = time.Now() {
		late := time.Since(since) - nap
		m.mu.Lock()
		m.counted.Late = max(m.counted.Late, late)
		m.mu.Unlock()
	}
}

// sleep waits for d, and returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// note counts and records an event of the machine.
func (m *member) note(e trace.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Time = max(m.Wrong.When(e.Time), 0)
	m.counted.Events++
	switch {
	case e.Op == trace.Receive:
		l := m.inbox.seen[e.Peer]
		if e.Cause = l.of; l.link == m.inbox.links[e.Peer] {
			m.counted.Received[e.Peer]++
		}
	case e.Op == trace.Send && e.Peer != parley.All:
		m.sent(e.Time)
		m.counted.Sent[e.Peer]++
	case e.Op == trace.Send:
		m.sent(e.Time)
		for to := range m.counted.Sent {
			m.counted.Sent[to]++
		}
	}
	m.written.Add(e)
}

// sent counts a send of the machine. The caller holds the lock.
func (m *member) sent(now parley.Tick) { m.sends, m.sentAt = m.sends+1, now }

// status returns the status of the process.
func (m *member) status(asked uint64) *status {
	m.mu.Lock()
	p := m.process
	m.mu.Unlock()
	rests := p != nil && p.Idle()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.counted
	s.Asked = asked
	s.Rests, s.Over, s.Down = rests && m.asked, m.over, slices.Collect(m.down.All())
	s.Sent, s.Received = slices.Clone(s.Sent), slices.Clone(s.Received)
	return &s
}

// stop stops the machine, and then the trace, which therefore contains every event.
func (m *member) stop() {
	m.ending.Do(func() {
		if m.host != nil {
			m.host.Close()
		}
		if m.written != nil {
			_ = m.written.Close() // an incomplete trace shows that its end is missing
		}
		if m.file != nil {
			_ = m.file.Close()
		}
		m.mu.Lock()
		m.over = true
		m.mu.Unlock()
	})
}

// close closes everything.
func (m *member) close() {
	m.end()
	m.stop()
	if m.mesh != nil {
		_ = m.mesh.Close()
	} else if m.listener != nil {
		_ = m.listener.Close()
	}
	m.asking.Wait()
	if m.store != nil {
		_ = m.store.Close()
	}
}
