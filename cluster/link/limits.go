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

// Limits bounds the resources that peers and strangers can occupy, and for how long. A zero field means its
// default.
type Limits struct {
	Frame  int // bytes of a frame; 16 MiB
	Urgent int // bytes that wait for a peer; 1 MiB. Above, the connection is closed
	Bulk   int // the same; 64 MiB, and at least twice Frame

	Greeting     time.Duration // for TLS and hello; 3 s
	Strangers    int           // connections without a hello; 64
	AddressRate  int           // connections without a hello from one address in a second; 32
	AddressBurst int           // burst of AddressRate; 64
	Backoff      time.Duration // after the first failure to connect; doubles; 20 ms
	BackoffMax   time.Duration // 500 ms
	Dial         time.Duration // for a connection, before TLS; 1 s
	Ping         time.Duration // between pings; 250 ms
	Pings        int           // pings from a peer in a second; 100
	Silence      time.Duration // without a frame until the peer counts as crashed; 3 s
	FrameTime    time.Duration // for a frame of the wire (64 KiB), from its first byte; 10 s
	WriteTime    time.Duration // for a peer to read a block of ours (64 KiB); 5 s
}

// fill sets the defaults and validates the rest.
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

// tick is how often connections are checked.
func (l *Limits) tick() time.Duration {
	return max(time.Millisecond, min(l.Ping, l.Silence, l.FrameTime)/4)
}

// AddressRates limits how often each address may do something. Addresses share the buckets of a table of fixed size,
// so many addresses take no more memory than few addresses. An attacker cannot know which addresses share a bucket.
// AddressRates is safe for concurrent use.
type AddressRates struct {
	mu          sync.Mutex
	rate, burst int // events a second, and their burst
	seed        maphash.Seed
	buckets     [1024]Allowance
}

// Allowance is the spent part of a rate. Times are of any monotonic clock.
type Allowance struct {
	spent float64
	at    time.Duration
}

// Spend reports whether one more event is allowed, given a rate in events per second and a burst of the number once.
// If it is allowed, Spend counts the event.
func (a *Allowance) Spend(now time.Duration, rate, once int) bool {
	a.spent, a.at = a.Spent(now, rate), now
	if a.spent+1 > float64(once) {
		return false
	}
	a.spent++
	return true
}

// Spent returns how many events still count against the burst.
func (a *Allowance) Spent(now time.Duration, rate int) float64 {
	return max(0, a.spent-float64(rate)*(now-a.at).Seconds())
}

// NewAddressRates returns limits of rate events a second, with a burst, for each address.
func NewAddressRates(rate, burst int) *AddressRates {
	return &AddressRates{rate: rate, burst: burst, seed: maphash.MakeSeed()}
}

// Customer returns the part of an address that identifies one customer of a provider: the
// /64 prefix of an IPv6 address, and the whole of an IPv4 address.
func Customer(a netip.Addr) netip.Addr {
	if a = a.Unmap(); a.Is6() {
		p, _ := a.Prefix(64)
		a = p.Addr()
	}
	return a
}

// Take reports whether an address may act now. The time now may be of any monotonic clock. If the address may act,
// Take counts the event.
func (r *AddressRates) Take(a netip.Addr, now time.Duration) bool {
	b := &r.buckets[maphash.Comparable(r.seed, Customer(a))%uint64(len(r.buckets))]
	r.mu.Lock()
	defer r.mu.Unlock()
	return b.Spend(now, r.rate, r.burst)
}

// gate limits the connections without a hello.
type gate struct {
	rates *AddressRates

	mu          sync.Mutex
	inside, max int
}

func newGate(l Limits) *gate {
	return &gate{max: l.Strangers, rates: NewAddressRates(l.AddressRate, l.AddressBurst)}
}

// enter adds a connection, or returns why not.
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

// AddressOf returns the address of a, without the port.
func AddressOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr()
	}
	return netip.Addr{}
}
