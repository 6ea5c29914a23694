package link_test

import (
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	hosting "parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/link/memory"
)

// forms are the three forms of the link. Each starts connected nodes with the test's handlers.
var forms = []struct {
	name string
	make func(t testing.TB, n int, handler func(i int) link.Handler) []link.Transport
}{
	{"stream", func(t testing.TB, n int, handler func(int) link.Handler) (out []link.Transport) {
		s := newSystem(t, n, func(c *link.Config) { c.Handler, c.Limits = handler(int(c.Self)), link.Limits{} })
		for i := range n {
			s.start(i)
			out = append(out, s.mesh[i])
		}
		return out
	}},
	{"datagram", func(t testing.TB, n int, handler func(int) link.Handler) []link.Transport {
		return packets(t, n, handler, nil)
	}},
	{"call", func(t testing.TB, n int, handler func(int) link.Handler) (out []link.Transport) {
		_, m := calls(t, n, func(c *link.Config) { c.Handler, c.Limits = handler(int(c.Self)), link.Limits{} })
		for i := range n {
			out = append(out, m[i])
		}
		return out
	}},
}

// packets starts nodes that are connected by datagrams.
func packets(
	t testing.TB, n int, handler func(int) link.Handler, meddle func(from, to parley.ID, b []byte, send func([]byte)),
) (out []link.Transport) {
	t.Helper()
	at := func(int) link.Network { return machine{} }
	if _, timed := t.(*testing.B); !timed {
		network := memory.New(memory.Options{})
		at = func(i int) link.Network { return network.Host(fmt.Sprint("node", i)) }
	}
	var addrs []string
	for i := range n {
		sock := socket(t, at(i), "127.0.0.1:0")
		addrs = append(addrs, sock.(net.PacketConn).LocalAddr().String())
		_ = sock.Close() // its address is free again
	}
	for i := range n {
		c := link.DatagramConfig{Self: parley.ID(i), Peers: addrs, Network: at(i), Handler: handler(i)}
		if meddle != nil {
			c.Meddle = func(to parley.ID, b []byte, send func([]byte)) { meddle(parley.ID(i), to, b, send) }
		}
		d, err := link.NewDatagrams(c)
		if err == nil {
			err = d.Start()
		}
		must(t, err)
		t.Cleanup(func() { _ = d.Close() })
		out = append(out, d)
	}
	return out
}

// member is a node with one machine. Frames go to its host, and the machine's deliveries are kept.
type member struct {
	ready chan struct{} // closed when host is set
	host  *hosting.Host
	up    atomic.Int32

	mu   sync.Mutex
	list []string
}

func (m *member) Up(parley.ID, uint64) { m.up.Add(1) }
func (m *member) Frame(from parley.ID, channel uint32, b []byte) {
	<-m.ready
	if err := m.host.Frame(from, channel, b); err != nil {
		panic(err)
	}
}
func (m *member) Burst(parley.ID)                  { m.host.Flush() }
func (m *member) Down(parley.ID, error)            {}
func (m *member) Indicate(parley.Path, parley.Msg) {}
func (m *member) Deliver(from parley.ID, _ parley.Path, msg parley.Msg) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, fmt.Sprintf("%d:%s", from, msg.Body))
}

func (m *member) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.list))
}

// The same machine runs over all three forms: all nodes deliver everything, once. Over datagrams this also holds
// when one link loses everything and the others duplicate and reorder packets, because that is what diffusion
// tolerates.
func TestForms(t *testing.T) {
	type maker = func(testing.TB, int, func(int) link.Handler) []link.Transport
	all := make(map[string]maker)
	for _, f := range forms {
		all[f.name] = f.make
	}
	var lost atomic.Int32
	all["datagram with loss"] = func(t testing.TB, n int, handler func(int) link.Handler) []link.Transport {
		var mu sync.Mutex
		kept := make(map[[2]parley.ID]func())
		return packets(t, n, handler, func(from, to parley.ID, b []byte, send func([]byte)) {
			if from+to == 1 { // between the first two
				lost.Add(1)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			send(b)
			if again := kept[[2]parley.ID{from, to}]; again != nil {
				again()
			}
			kept[[2]parley.ID{from, to}] = func() { send(b) } // once more, after the next one
		})
	}
	for name, form := range all {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { diffuses(t, form) })
		})
	}
	if lost.Load() == 0 {
		t.Error("nothing was lost")
	}
}

func diffuses(t *testing.T, form func(testing.TB, int, func(int) link.Handler) []link.Transport) {
	const n, k = 4, 20
	var members []*member
	for range n {
		members = append(members, &member{ready: make(chan struct{})})
	}
	links := form(t, n, func(i int) link.Handler { return members[i] })
	p := diffusion.New(diffusion.Config{N: n})
	var one []*hosting.Process
	var want []string
	for i, m := range members {
		m.host = hosting.New(hosting.Config{Self: parley.ID(i), N: n, Transport: links[i]})
		process, err := m.host.Open(hosting.Options{Channel: 16, Name: p.Name, Machine: p.New(parley.ID(i)), Upper: m})
		must(t, err)
		one = append(one, process)
		close(m.ready)
		for x := range k {
			want = append(want, fmt.Sprintf("%d:%02d", i, x))
		}
	}
	for i, m := range members {
		await(t, fmt.Sprintf("node %d is connected", i), func() bool { return m.up.Load() == n-1 })
	}
	for x := range k {
		for _, process := range one {
			must(t, process.Request(problem.Request(fmt.Appendf(nil, "%02d", x))))
		}
		for i, m := range members { // all of them, before more is sent: the system buffers few packets for a paused process
			await(t, fmt.Sprintf("node %d has delivered %d of each", i, x+1), func() bool { return len(m.all()) >= (x+1)*n })
		}
	}
	for i, m := range members {
		if got := m.all(); !slices.Equal(got, want) {
			t.Errorf("node %d has delivered %q", i, got)
		}
	}
}

// pace counts frames, and sends some of them back.
type pace struct {
	to    link.Transport
	got   atomic.Int64
	up    atomic.Int32
	echo  bool
	back  chan struct{} // or nil
	other parley.ID
}

func (p *pace) Up(parley.ID, uint64) { p.up.Add(1) }
func (p *pace) Frame(_ parley.ID, channel uint32, b []byte) {
	p.got.Add(1)
	if p.echo {
		p.to.Send(p.other, link.Bulk, channel, nil, b)
	}
	if p.back != nil {
		p.back <- struct{}{}
	}
}
func (p *pace) Burst(parley.ID) {
	if p.echo {
		p.to.Flush(p.other)
	}
}
func (p *pace) Down(parley.ID, error) {}

// linked starts two nodes with a form of the link.
func linked(b *testing.B, form int, echo bool) (ends []*pace) {
	ends = []*pace{{other: 1}, {other: 0, echo: echo}}
	all := forms[form].make(b, 2, func(i int) link.Handler { return ends[i] })
	for i := range ends {
		ends[i].to = all[i]
	}
	await(b, "connected", func() bool { return ends[0].up.Load()+ends[1].up.Load() == 2 })
	return ends
}

// Round trip of a frame of 100 bytes, with each form.
func BenchmarkFormRoundTrip(b *testing.B) {
	for i, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			ends, body := linked(b, i, true), make([]byte, 100)
			ends[0].back = make(chan struct{})
			b.ReportAllocs()
			for b.Loop() {
				ends[0].to.Send(1, link.Bulk, 7, nil, body)
				ends[0].to.Flush(1)
				<-ends[0].back
			}
		})
	}
}

// Rate of frames of 100 bytes in one direction, with each form. The number in flight is limited: for datagrams,
// to what the system buffers.
func BenchmarkFormRate(b *testing.B) {
	for i, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			ends, body := linked(b, i, false), make([]byte, 100)
			most := map[string]int64{"stream": 8192, "datagram": 128, "call": 8192}[f.name]
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for x := range int64(b.N) {
				for since := time.Now(); x-ends[1].got.Load() >= most; runtime.Gosched() {
					if time.Since(since) > time.Second {
						b.Fatalf("%d of %d have come", ends[1].got.Load(), x)
					}
				}
				ends[0].to.Send(1, link.Bulk, 7, nil, body)
				if x%64 == 63 {
					ends[0].to.Flush(1)
				}
			}
			ends[0].to.Flush(1)
			for ends[1].got.Load() < int64(b.N) && time.Since(begin) < time.Minute {
				runtime.Gosched()
			}
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "frames/s")
		})
	}
}
