package cluster_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/lockstep"
)

// siege is a cluster of four in which the test plays the first node: it has a valid certificate, and sends raw
// frames.
type siege struct {
	*rig
	t      *testing.T
	nodes  []*cluster.Node // the first is nil
	config cluster.Config  // of the hostile node
	key    []byte          // its signing key
	life   uint64
	wires  [4]*rawWire
	asked  int
}

// rawWire is a connection of the hostile node.
type rawWire struct {
	net.Conn
	s      *siege
	to     parley.ID
	ended  chan struct{} // closed when the other side ends it
	turn   chan struct{} // lock for writing
	mu     sync.Mutex
	polite bool // it answers every round with an empty frame
	deaf   bool // it has stopped reading
	seen   map[[3]uint64]bool
	heard  []rawFrame // received frames of streams
}

type rawFrame struct {
	from    parley.ID
	channel uint32
	m       parley.Msg
}

// The types of frames of a link.
const (
	rawHello byte = iota + 1
	rawBye
	rawPing
	rawPong
	rawUrgent
	rawBulk
	rawPart
)

func raw(kind byte, parts ...[]byte) []byte {
	b := []byte{0, 0, 0, 0, kind}
	for _, p := range parts {
		b = append(b, p...)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// message encodes a message on a channel as a frame of a link.
func message(channel uint32, m parley.Msg) []byte {
	return raw(rawBulk, binary.AppendUvarint(nil, uint64(channel)), parley.Encode(nil, parley.Env{}, m))
}

// besieged starts the cluster, with the hostile node admitted by all others.
func besieged(t *testing.T, change func(c *cluster.Config)) *siege {
	t.Helper()
	r := configured(t, 4, func(i int, c *cluster.Config) {
		c.Times, c.Round = cluster.Times{}, roomy
		c.Groups = []cluster.GroupConfig{{Name: "b", Level: cluster.Byzantine}}
		c.Broken = func(err error) { t.Errorf("node %d: %v", i, err) }
		if change != nil {
			change(c)
		}
	})
	s := &siege{rig: r, t: t, nodes: make([]*cluster.Node, 4), config: r.configs[0], key: r.configs[0].SignerKey}
	var joins sync.WaitGroup
	joins.Go(func() { r.join(1, 2, 3) })
	s.connect()
	joins.Wait()
	t.Cleanup(func() {
		r.stop(all(4)...)
		s.disconnect()
	})
	if t.Failed() {
		t.FailNow()
	}
	for i := range r.nodes {
		s.nodes[i] = r.nodes[i].Load()
	}
	return s
}

// connect connects the hostile node to all others, as a new incarnation.
func (s *siege) connect() {
	s.t.Helper()
	s.disconnect()
	s.life++
	for to := 1; to < 4; to++ {
		s.wires[to] = s.dial(parley.ID(to), s.life)
	}
}

func (s *siege) disconnect() {
	for i, w := range s.wires {
		if w != nil {
			_ = w.Close()
			<-w.ended
			s.wires[i] = nil
		}
	}
}

// dial makes one polite connection.
func (s *siege) dial(to parley.ID, life uint64) *rawWire {
	s.t.Helper()
	w := s.greets(to, life)
	if kind, b := w.next(); kind != rawHello {
		s.t.Fatalf("the hello is answered by a frame of type %d: %v", kind, b)
	}
	go w.read()
	return w
}

// greeted returns the answer to a hello.
func (s *siege) greeted(to parley.ID, life uint64) (kind byte, b []byte) {
	s.t.Helper()
	w := s.greets(to, life)
	defer func() { _ = w.Close() }()
	return w.next()
}

// greets makes a connection and sends a hello.
func (s *siege) greets(to parley.ID, life uint64) *rawWire {
	s.t.Helper()
	member := s.config.Members[to]
	var under net.Conn
	within(s.t, time.Second, "the node listens", func() (so bool) {
		var err error
		under, err = s.host(0).DialContext(s.t.Context(), "tcp", member.Address)
		return err == nil
	})
	c := tls.Client(under, s.config.Trust.Dial(s.config.Self, cert.Identity{
		Cluster: "test", Kind: cert.Node, Name: member.Name,
	}))
	h := cluster.Greeting(s.config, life)
	b := binary.BigEndian.AppendUint16(nil, h.Min)
	b = binary.BigEndian.AppendUint16(b, h.Max)
	b = binary.BigEndian.AppendUint64(b, h.Incarnation)
	b = append(append(append(b, h.Config[:]...), byte(len(h.Cluster))), h.Cluster...)
	w := &rawWire{Conn: c, s: s, to: to, ended: make(chan struct{}), turn: make(chan struct{}, 1), polite: true, seen: make(map[[3]uint64]bool)}
	w.send(raw(rawHello, b))
	return w
}

func (w *rawWire) send(b []byte) {
	w.turn <- struct{}{} // a blocked lock of crypto/tls would stop the bubble's time while the other side does not read
	defer func() { <-w.turn }()
	_ = w.SetWriteDeadline(time.Now().Add(10 * time.Second))
	if _, err := w.Write(b); err != nil && !errors.Is(err, net.ErrClosed) {
		return // the other side has closed it
	}
}

// next reads a frame, and returns its type and its content; 0 at the end.
func (w *rawWire) next() (byte, []byte) {
	var head [4]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return 0, nil
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(w, b); err != nil {
		return 0, nil
	}
	return b[0], b[1:]
}

func (w *rawWire) read() {
	defer close(w.ended)
	for {
		w.mu.Lock()
		deaf := w.deaf
		w.mu.Unlock()
		if deaf {
			time.Sleep(10 * time.Millisecond)
			if w.SetReadDeadline(time.Now().Add(time.Hour)) != nil {
				return // closed
			}
			continue
		}
		switch kind, b := w.next(); kind {
		case 0:
			return
		case rawPing:
			w.send(raw(rawPong, b))
		case rawUrgent, rawBulk:
			channel, n := binary.Uvarint(b)
			if _, m, err := parley.Decode(b[n:]); err == nil && channel >= 2048 && m.Kind == lockstep.Frame {
				w.s.hear(w, rawFrame{w.to, uint32(channel), m})
			}
		}
	}
}

// hear handles a frame of a stream: a polite node answers each round with an empty frame to all.
func (s *siege) hear(w *rawWire, f rawFrame) {
	name := [3]uint64{uint64(f.channel), f.m.Value, f.m.Seq}
	w.mu.Lock()
	if w.heard = append(w.heard, f); len(w.heard) > 64 {
		w.heard = w.heard[1:]
	}
	answer := w.polite && !w.seen[name]
	w.seen[name] = true
	w.mu.Unlock()
	if answer {
		w.send(message(f.channel, parley.Msg{Kind: lockstep.Frame, Seq: f.m.Seq, Value: f.m.Value}))
	}
}

// all sends the same frame to all others.
func (s *siege) all(b []byte) {
	for _, w := range s.wires[1:] {
		w.send(b)
	}
}

// rude stops answering, or resumes.
func (s *siege) rude(is bool) {
	for _, w := range s.wires[1:] {
		w.mu.Lock()
		w.polite = !is
		w.mu.Unlock()
	}
}

// decides checks that the others still agree, on a value of the second node.
func (s *siege) decides() {
	s.t.Helper()
	s.asked++
	value := fmt.Sprint("value ", s.asked)
	var short *cluster.RoundError
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		d, err := s.nodes[1].Agree(s.t.Context(), cluster.AgreeRequest{Value: []byte(value)})
		if err == nil && string(d.Value) == value {
			return
		}
		if err == nil || time.Now().After(end) || !errors.Is(err, cluster.ErrAbstained) && !errors.As(err, &short) {
			s.t.Fatalf("the others do not decide on %s, but on %q: %v", value, d.Value, err)
		}
	}
}

// refuses waits until a node has counted a reason more often than before.
func (s *siege) refuses(at int, why string, before uint64) {
	s.t.Helper()
	if !waited(10*time.Second, func() bool { return s.nodes[at].Refusals(0)[why] > before }) {
		s.t.Errorf("node %d has not refused %q, but %v", at, why, s.nodes[at].Refusals(0))
	}
}

// heapInUse returns the bytes in use after a collection.
func heapInUse() int {
	var m runtime.MemStats
	for range 3 { // pools release their entries at the second one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}
