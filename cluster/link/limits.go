package link

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits bounds what peers and strangers can make a node hold, and for how long. A field
// that is 0 takes its default.
type Limits struct {
	Frame  int // bytes of a frame; 16 MiB
	Urgent int // bytes that wait for a peer; 1 MiB. Beyond, the connection is given up
	Bulk   int // the same; 64 MiB, and at least twice Frame

	Greeting     time.Duration // for TLS and hello; 3 s
	Strangers    int           // connections without hello at a time; 64
	AddressRate  int           // connections without hello from an address in a second; 32
	AddressBurst int           // the same at once; 64
	Backoff      time.Duration // after a first failure to connect; doubles; 20 ms
	BackoffMax   time.Duration // 500 ms
	Dial         time.Duration // for a connection, before TLS; 1 s
	Ping         time.Duration // between pings; 250 ms
	Pings        int           // pings from a peer in a second; 100
	Silence      time.Duration // without a frame, and the peer is taken for dead; 3 s
	FrameTime    time.Duration // for a frame of the wire (64 KiB), once begun; 10 s
	WriteTime    time.Duration // for a peer to read a block of ours (64 KiB); 5 s
}

// fill puts the defaults in and checks the rest.
func (l *Limits) fill() error {
	l.Frame, l.Urgent = cmp.Or(l.Frame, 16<<20), cmp.Or(l.Urgent, 1<<20)
	l.Bulk, l.Strangers = cmp.Or(l.Bulk, max(64<<20, 2*l.Frame)), cmp.Or(l.Strangers, 64)
	l.AddressRate, l.AddressBurst, l.Pings = cmp.Or(l.AddressRate, 32), cmp.Or(l.AddressBurst, 64), cmp.Or(l.Pings, 100)
	l.Greeting, l.Dial = cmp.Or(l.Greeting, 3*time.Second), cmp.Or(l.Dial, time.Second)
	l.Backoff, l.BackoffMax = cmp.Or(l.Backoff, 20*time.Millisecond), cmp.Or(l.BackoffMax, 500*time.Millisecond)
	l.Ping, l.Silence = cmp.Or(l.Ping, 250*time.Millisecond), cmp.Or(l.Silence, 3*time.Second)
	l.FrameTime, l.WriteTime = cmp.Or(l.FrameTime, 10*time.Second), cmp.Or(l.WriteTime, 5*time.Second)
	if n := min(l.Frame, l.Urgent, l.Bulk, l.Strangers, l.AddressRate, l.AddressBurst, l.Pings); n < 0 {
		return fmt.Errorf("link: a limit is %d", n)
	}
	d := min(l.Greeting, l.Dial, l.Backoff, l.BackoffMax, l.Ping, l.Silence, l.FrameTime, l.WriteTime)
	if d < 0 {
		return fmt.Errorf("link: a limit is %s", d)
	}
	switch {
	case l.Frame > 1<<30:
		return fmt.Errorf("link: frames of %d bytes: at most %d", l.Frame, 1<<30)
	case l.Bulk < 2*l.Frame:
		return fmt.Errorf("link: a queue of %d bytes: at least two frames of %d", l.Bulk, l.Frame)
	case l.Urgent < blockSize:
		return fmt.Errorf("link: an urgent queue of %d bytes: at least %d", l.Urgent, blockSize)
	case l.Silence < 2*l.Ping:
		return fmt.Errorf("link: silence after %s with pings every %s: at least two pings", l.Silence, l.Ping)
	}
	return nil
}

// tick is how often connections are looked after.
func (l *Limits) tick() time.Duration {
	return max(time.Millisecond, min(l.Ping, l.Silence, l.FrameTime)/4)
}

// AddressRates bounds how often each address may do something. Addresses share the buckets of
// a table of fixed size, so that many addresses take no more memory than few; which ones share
// is not for an attacker to know. Its methods may be called at once.
type AddressRates struct {
	mu          sync.Mutex
	rate, burst int // times a second, times at once
	seed        maphash.Seed
	buckets     [1024]Allowance
}

// Allowance is how much of a rate is spent. Times are by any clock that does not go back.
type Allowance struct {
	spent float64
	at    time.Duration
}

// Spend tells whether one more is within so many a second, and so many at once. If so, it counts as spent.
func (a *Allowance) Spend(now time.Duration, rate, once int) bool {
	a.spent, a.at = a.Spent(now, rate), now
	if a.spent+1 > float64(once) {
		return false
	}
	a.spent++
	return true
}

// Spent is how much of it is spent yet.
func (a *Allowance) Spent(now time.Duration, rate int) float64 {
	return max(0, a.spent-float64(rate)*(now-a.at).Seconds())
}

// NewAddressRates returns one for so many times a second, and so many at once.
func NewAddressRates(rate, burst int) *AddressRates {
	return &AddressRates{rate: rate, burst: burst, seed: maphash.MakeSeed()}
}

// Customer is the part of an address that one customer of a provider has.
func Customer(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		p, _ := a.Prefix(64)
		a = p.Addr()
	}
	return a
}

// Take tells whether an address may do it now, by any clock that does not go back. If so, it
// counts as done.
func (r *AddressRates) Take(a netip.Addr, now time.Duration) bool {
	b := &r.buckets[maphash.Comparable(r.seed, Customer(a))%uint64(len(r.buckets))]
	r.mu.Lock()
	defer r.mu.Unlock()
	return b.Spend(now, r.rate, r.burst)
}

// gate bounds the connections that have not said hello.
type gate struct {
	rates *AddressRates

	mu          sync.Mutex
	inside, max int
}

func newGate(l Limits) *gate {
	return &gate{max: l.Strangers, rates: NewAddressRates(l.AddressRate, l.AddressBurst)}
}

// enter counts a connection in, or says why not.
func (g *gate) enter(a netip.Addr, now time.Duration) Reason {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.inside >= g.max:
		return Crowd
	case !g.rates.Take(a, now):
		return Rate
	}
	g.inside++
	return 0
}

func (g *gate) leave() {
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
}

// AddressOf is the address at the other end, without the port.
func AddressOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr()
	}
	return netip.Addr{}
}
