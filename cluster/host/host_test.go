package host_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/agreement/eig"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/store"
	"parley/lockstep"
	"parley/membership/group"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// network carries messages between the hosts of one test, in order, with a constant delay.
type network struct {
	hosts []*host.Host
	links map[[2]parley.ID]chan packet
	cut   atomic.Int32 // the disconnected process, or -1
}

type packet struct {
	due     time.Time
	channel uint32
	b       []byte
}

// port is the end of the network at one host.
type port struct {
	net  *network
	from parley.ID
}

func (p port) Send(to parley.ID, _ link.Class, channel uint32, head, body []byte) bool {
	if cut := parley.ID(p.net.cut.Load()); cut == p.from || cut == to {
		return false
	}
	p.net.links[[2]parley.ID{p.from, to}] <- packet{time.Now().Add(time.Millisecond), channel, slices.Concat(head, body)}
	return true
}

func (port) Flush(parley.ID) {}

// connected returns n connected hosts.
func connected(t *testing.T, n int) *network {
	t.Helper()
	net := &network{links: make(map[[2]parley.ID]chan packet)}
	net.cut.Store(-1)
	for id := range parley.ID(n) {
		net.hosts = append(net.hosts, host.New(host.Config{Self: id, N: n, Transport: port{net, id}}))
	}
	for from := range parley.ID(n) {
		for to := range parley.ID(n) {
			link := make(chan packet, 1000)
			net.links[[2]parley.ID{from, to}] = link
			go func() {
				for p := range link {
					time.Sleep(time.Until(p.due))
					if err := net.hosts[to].Frame(from, p.channel, p.b); err != nil {
						t.Error(err)
					}
					net.hosts[to].Flush()
				}
			}()
		}
	}
	return net
}

func (net *network) close() {
	for _, h := range net.hosts {
		h.Close()
	}
	for _, link := range net.links {
		close(link)
	}
}

// heard is an UpperLayer that records its calls.
type heard struct {
	mu   sync.Mutex
	list []string
}

func (h *heard) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, fmt.Sprintf("%d:%s", from, m.Body))
}

func (h *heard) Indicate(parley.Path, parley.Msg) {}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// open opens a protocol on all hosts.
func open(t *testing.T, net *network, p parley.Protocol) (all []*host.Process, up []*heard) {
	t.Helper()
	for id, h := range net.hosts {
		u := &heard{}
		one, err := h.Open(host.Options{Channel: 1, Name: p.Name, Machine: p.New(parley.ID(id)), Upper: u})
		must(t, err)
		all, up = append(all, one), append(up, u)
	}
	return all, up
}

const ms = parley.Tick(time.Millisecond)

// EIG runs its rounds between hosts that have only clocks and links.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := connected(t, 4)
		defer net.close()
		p := eig.New(eig.Config{N: 4, M: 1}, lockstep.Schedule{Begin: 10 * ms, Delta: 5 * ms})
		all, up := open(t, net, p)
		must(t, all[0].Request(parley.Msg{Kind: parley.Propose, Body: []byte("attack")}))
		time.Sleep(time.Second)
		synctest.Wait()
		for id, u := range up {
			if got := u.all(); !slices.Equal(got, []string{"0:attack"}) {
				t.Errorf("process %d decides %v", id, got)
			}
		}
	})
}

func ordered(n int) parley.Protocol {
	c := group.Config{N: n, Flush: 50 * ms, Wait: 100 * ms, Stagger: 50 * ms, Admit: 100 * ms}
	c.Detector.Period, c.Detector.Timeout = 10*ms, 50*ms
	return timestamp.New(timestamp.Config{Config: c})
}

// All members deliver in one order, and continue when one is disconnected.
func TestTotalOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := connected(t, 3)
		defer net.close()
		all, up := open(t, net, ordered(3))
		for i := range 20 {
			for id, p := range all {
				must(t, p.Request(problem.Request(fmt.Appendf(nil, "%d.%d", id, i))))
			}
			time.Sleep(time.Millisecond / 2)
			if i == 10 {
				net.cut.Store(2)
			}
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		first := up[0].all()
		if len(first) < 40 || !slices.Equal(first, up[1].all()) {
			t.Errorf("%d messages at one and %d at the other", len(first), len(up[1].all()))
		}
		last := up[2].all()
		if len(last) > len(first) || !slices.Equal(last, first[:len(last)]) {
			t.Errorf("who was cut off delivered %v", last)
		}
	})
}

// echo appends each request, and delivers it; it also responds to a timer.
type echo struct {
	parley.Base
	log [][]byte
}

func (m *echo) Start(s *parley.Step) {
	for _, r := range s.Log {
		m.log = append(m.log, r.Body)
	}
}

func (m *echo) Request(s *parley.Step, q parley.Msg) {
	if string(q.Body) == "panic" {
		panic("as asked")
	}
	if len(q.Body) > 0 {
		m.log = append(m.log, q.Body)
		s.Append(q.Body)
	}
	s.Deliver(s.Self, parley.Msg{Kind: parley.Carried, Body: q.Body})
	if string(q.Body) == "b" {
		s.SetTimer(1, parley.Tick(time.Millisecond))
	}
	s.SetTimer(2, parley.Tick(time.Hour))
	s.StopTimer(2)
}

func (m *echo) Timeout(s *parley.Step, t parley.Timer) {
	s.Deliver(s.Self, parley.Msg{Kind: parley.Carried, Body: fmt.Appendf(nil, "timer %d", t)})
}

func (m *echo) State(v *parley.Vars) {
	v.Durable(func() { parley.Slice(v, "log", &m.log, func(_ int, b *[]byte) { v.Bytes("record", b) }) })
}

// What a step appends is on the disk before any effect of this step or a later one, and is there after a
// restart.
func TestDurableFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		var h *host.Host
		gate := make(chan struct{})
		s, err := store.Open(dir, store.Options{Durable: func(upto uint64) { <-gate; h.Durable(upto) }})
		must(t, err)
		h = host.New(host.Config{N: 1, Store: s})
		u := &heard{}
		p, err := h.Open(host.Options{Name: "echo", Machine: new(echo), Upper: u})
		must(t, err)
		for _, body := range []string{"a", "", "b"} { // the second step appends nothing, but must wait too
			must(t, p.Request(parley.Msg{Kind: parley.Carried, Body: []byte(body)}))
		}
		synctest.Wait()
		if got := u.all(); len(got) > 0 {
			t.Errorf("before anything is on the disk: %v", got)
		}
		close(gate)
		time.Sleep(time.Second) // the timer takes about a millisecond
		if got, want := u.all(), []string{"0:a", "0:", "0:b", "0:timer 1"}; !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		h.Close()
		if err := p.Request(parley.Msg{Kind: parley.Carried}); err == nil {
			t.Error("a process that has stopped took a request")
		}
		must(t, s.Close())
		s, err = store.Open(dir, store.Options{})
		must(t, err)
		h = host.New(host.Config{N: 1, Store: s})
		again := new(echo)
		if _, err := h.Open(host.Options{Name: "echo", Machine: again}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s", again.log); got != "[a b]" {
			t.Errorf("comes back with %s", got)
		}
		h.Close()
		must(t, s.Close())
	})
}

// A message for a channel without a machine may have one opened, and is then the first message that it
// receives; if none is opened, the message is counted.
func TestAbsent(t *testing.T) {
	var h *host.Host
	var asked []uint32
	u := &heard{}
	h = host.New(host.Config{N: 2, Transport: port{net: &network{}}, Absent: func(channel uint32) bool {
		asked = append(asked, channel)
		if channel != 7 {
			return false
		}
		_, err := h.Open(host.Options{Channel: 7, Name: "said", Machine: said{}, Upper: u})
		return err == nil
	}})
	h.Expect(9)
	message := parley.Encode(nil, parley.Env{}, parley.Msg{Kind: 1, Body: []byte("x")})
	for _, channel := range []uint32{7, 7, 8, 9} {
		if err := h.Frame(1, channel, message); err != nil {
			t.Error(err)
		}
	}
	if got := u.all(); !slices.Equal(got, []string{"1:x", "1:x"}) {
		t.Errorf("the machine took %v", got)
	}
	if !slices.Equal(asked, []uint32{7, 8}) || h.Strange() != 1 {
		t.Errorf("asked for %v, and %d messages were for nobody", asked, h.Strange())
	}
	h.Close()
}

// said delivers what it receives.
type said struct{ parley.Base }

func (said) Receive(s *parley.Step, from parley.ID, m parley.Msg) { s.Deliver(from, m) }

func (said) State(*parley.Vars) {}

// frozen is a clock set by hand.
type frozen struct{ now atomic.Int64 }

func (c *frozen) Now() parley.Tick { return parley.Tick(c.now.Load()) }

// The time of a timer counts from the step that set it, even if the disk releases it after a later step.
func TestTimerCountsFromItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *host.Host
		gate := make(chan struct{})
		s, err := store.Open(t.TempDir(), store.Options{Durable: func(upto uint64) { <-gate; h.Durable(upto) }})
		must(t, err)
		clock := new(frozen)
		h = host.New(host.Config{N: 1, Store: s, Clock: clock})
		u := &heard{}
		p, err := h.Open(host.Options{Name: "echo", Machine: new(echo), Upper: u})
		must(t, err)
		for _, body := range []string{"b", "later"} {
			must(t, p.Request(parley.Msg{Kind: parley.Carried, Body: []byte(body)}))
			clock.now.Add(int64(time.Millisecond)) // after "b", the timer is due
		}
		clock.now.Store(int64(time.Millisecond))
		close(gate)
		synctest.Wait()
		if !slices.Contains(u.all(), "0:timer 1") {
			t.Errorf("the timer that is due has not run out: %v", u.all())
		}
		h.Close()
		must(t, s.Close())
	})
}

// series sets one timer after another, and delivers how late each has expired.
type series struct {
	parley.Base
	after, due parley.Tick
	left       int
}

func (m *series) Start(s *parley.Step) { m.set(s) }

func (m *series) set(s *parley.Step) {
	m.due = s.Now + m.after
	s.SetTimer(0, m.after)
}

func (m *series) Timeout(s *parley.Step, _ parley.Timer) {
	s.Deliver(s.Self, parley.Msg{Kind: parley.Carried, Value: uint64(s.Now - m.due)})
	if m.left--; m.left > 0 {
		m.set(s)
	}
}

func (m *series) State(*parley.Vars) {}

// late receives how late timers were.
type late chan time.Duration

func (l late) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) { l <- time.Duration(m.Value) }

func (late) Indicate(parley.Path, parley.Msg) {}

// Timers of several machines expire when they are due, and with punctual alarms not before. A closed host
// opens no machine.
func TestPunctual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i, late := range runOut(t, false) {
			if late != 0 {
				t.Errorf("timer %d is late by %v", i, late)
			}
		}
	})
	for i, late := range runOut(t, true) { // by the system's clock
		if late < 0 {
			t.Errorf("punctual timer %d is early by %v", i, -late)
		}
	}
}

// runOut expires timers of several machines, and returns how late each was.
func runOut(t *testing.T, punctual bool) (all []time.Duration) {
	t.Helper()
	h := host.New(host.Config{N: 1, Punctual: punctual})
	const each = 20
	var told []late
	for i := range 3 {
		l := make(late, each)
		told = append(told, l)
		m := &series{after: parley.Tick(i+1) * parley.Tick(700*time.Microsecond), left: each}
		if _, err := h.Open(host.Options{Channel: uint32(i), Name: fmt.Sprint("series", i), Machine: m, Upper: l}); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range told {
		for range each {
			all = append(all, <-l)
		}
	}
	h.Close()
	if _, err := h.Open(host.Options{Channel: 9, Name: "after", Machine: &series{after: 1, left: 1}}); !errors.Is(err, host.ErrStopped) {
		t.Errorf("a machine of a host that is closed: %v", err)
	}
	return all
}

// BenchmarkAlarm reports how late timers expire.
func BenchmarkAlarm(b *testing.B) {
	for _, punctual := range []bool{false, true} {
		b.Run(fmt.Sprintf("punctual=%v", punctual), func(b *testing.B) {
			h := host.New(host.Config{N: 1, Punctual: punctual})
			defer h.Close()
			l := make(late, b.N)
			m := &series{after: parley.Tick(3100 * time.Microsecond), left: b.N}
			if _, err := h.Open(host.Options{Name: "series", Machine: m, Upper: l}); err != nil {
				b.Fatal(err)
			}
			var all []time.Duration
			for range b.N {
				all = append(all, <-l)
			}
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1e3, "late-p50-us")
			b.ReportMetric(float64(all[len(all)*99/100].Nanoseconds())/1e3, "late-p99-us")
		})
	}
}

// A machine that panics stops its process and reports to the node.
func TestBroken(t *testing.T) {
	told := make(chan error, 1)
	h := host.New(host.Config{N: 1, Broken: func(err error) { told <- err }})
	p, err := h.Open(host.Options{Channel: 7, Name: "echo", Machine: new(echo)})
	must(t, err)
	must(t, p.Request(parley.Msg{Kind: parley.Carried, Body: []byte("panic")}))
	if err := <-told; err == nil || p.Request(parley.Msg{}) == nil {
		t.Error("it goes on:", err)
	}
	if _, err := h.Open(host.Options{Channel: 7, Name: "other", Machine: new(echo)}); err == nil {
		t.Error("two machines on one channel")
	}
	if err := h.Frame(0, 99, nil); err != nil || h.Strange() != 1 {
		t.Error("a frame for no channel:", err, h.Strange())
	}
	if err := h.Frame(0, 7, []byte{0xFF}); err == nil {
		t.Error("bytes that are no message were taken")
	}
	h.Close()
}

// Early messages are kept up to a separate limit for each node: a node that sends much does not crowd out
// another.
func TestEarlyOfEach(t *testing.T) {
	h := host.New(host.Config{Self: 0, N: 4})
	defer h.Close()
	h.Expect(7)
	b := parley.Encode(nil, parley.Env{}, parley.Msg{Kind: 1, Body: make([]byte, 1000)})
	for range 2000 {
		must(t, h.Frame(3, 7, b))
	}
	must(t, h.Frame(2, 7, parley.Encode(nil, parley.Env{}, parley.Msg{Kind: 1, Body: []byte("honest")})))
	all := new(echo)
	if _, err := h.Open(host.Options{Channel: 7, Name: "echo", Machine: all}); err != nil {
		t.Fatal(err)
	}
	if h.StrangeOf(2) > 0 || h.StrangeOf(3) < 1500 || h.Strange() != h.StrangeOf(3) {
		t.Errorf("of node 2 %d messages were lost, of node 3 %d", h.StrangeOf(2), h.StrangeOf(3))
	}
	if err := h.Frame(1, 7, []byte{1}); err == nil || h.Malformed(1) != 1 {
		t.Error("what is no message is not counted")
	}
}
