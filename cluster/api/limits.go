package api

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/link"
)

// Limits bounds the resources that clients can occupy on a node, and for how long. A zero field means its
// default.
type Limits struct {
	Body        int           // bytes of a message; 1 MiB
	Strangers   int           // connections without a request yet; 256
	OfAddress   int           // of these from one address; 64. One more replaces the oldest
	AddressRate int           // connections from one address in a second; 256
	AddressOnce int           // burst of AddressRate; 1024
	Rate        int           // requests of one client in a second, and their burst; 20,000
	Resets      int           // requests of one client in a second that it cancels; 100, with a burst of ten times as many
	Connections int           // of one client; 64
	Requests    int           // of one client at a time, including streams; 1024
	Streams     int           // of one client at a time; 64
	All         int           // requests of all clients at a time; 8192
	Watchers    int           // connections for monitoring; 64. One more replaces the oldest
	Header      time.Duration // for TLS, and for the header of a request; 5 s
	Read        time.Duration // for the body of a request, after its header; 10 s
	Write       time.Duration // for a client to read what is sent to it; 10 s
	Idle        time.Duration // without a request; 2 min
}

func (l Limits) withDefaults() Limits {
	l.Body, l.All, l.Watchers = cmp.Or(l.Body, 1<<20), cmp.Or(l.All, 8192), cmp.Or(l.Watchers, 64)
	l.Strangers, l.OfAddress = cmp.Or(l.Strangers, 256), cmp.Or(l.OfAddress, 64)
	l.AddressRate, l.AddressOnce = cmp.Or(l.AddressRate, 256), cmp.Or(l.AddressOnce, 1024)
	l.Rate, l.Resets = cmp.Or(l.Rate, 20_000), cmp.Or(l.Resets, 100)
	l.Connections, l.Requests, l.Streams = cmp.Or(l.Connections, 64), cmp.Or(l.Requests, 1024), cmp.Or(l.Streams, 64)
	l.Header, l.Read = cmp.Or(l.Header, 5*time.Second), cmp.Or(l.Read, 10*time.Second)
	l.Write, l.Idle = cmp.Or(l.Write, 10*time.Second), cmp.Or(l.Idle, 2*time.Minute)
	return l
}

// clients tracks each client's connections and requests.
type clients struct {
	limits Limits

	began time.Time
	rates *link.AddressRates // of connections

	mu        sync.Mutex
	strangers []*conn // without a request yet, oldest first
	all       int
	byName    map[string]*usage // of clients with current or recent activity
	swept     time.Time         // when inactive clients were last removed
}

// usage is one client's connections, requests, and recent rates.
type usage struct {
	connections, requests, streams int
	asked, taken                   link.Allowance // of requests, and of canceled requests
}

func (c *clients) init(l Limits) {
	c.limits, c.byName, c.began = l, make(map[string]*usage), time.Now()
	c.rates = link.NewAddressRates(l.AddressRate, l.AddressOnce)
}

// meet adds a connection without a request yet, or returns false if its address has connected too often. If there
// is no room, it returns a connection to close: the oldest of the address with the most, so that silent
// connections keep nobody else out.
func (c *clients) meet(one *conn) (leaves *conn, ok bool) {
	if !c.rates.Take(one.address, time.Since(c.began)) {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	from := make(map[netip.Addr]int)
	most := one.address
	for _, s := range c.strangers {
		if from[s.address]++; from[s.address] > from[most] {
			most = s.address
		}
	}
	if from[one.address] >= c.limits.OfAddress {
		most = one.address
	}
	if from[one.address] >= c.limits.OfAddress || len(c.strangers) >= c.limits.Strangers {
		i := slices.IndexFunc(c.strangers, func(s *conn) bool { return s.address == most })
		leaves = c.strangers[i]
		c.strangers = slices.Delete(c.strangers, i, i+1)
	}
	c.strangers = append(c.strangers, one)
	return leaves, true
}

// part removes a connection that never had a request.
func (c *clients) part(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetStranger(one)
}

// forgetStranger removes a connection from the strangers. The lock is held.
func (c *clients) forgetStranger(one *conn) {
	c.strangers = slices.DeleteFunc(c.strangers, func(s *conn) bool { return s == one })
}

// know assigns a stranger's connection to a client, or returns false if the client has too many.
func (c *clients) know(name string, one *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	if u.connections >= c.limits.Connections {
		return false
	}
	c.forgetStranger(one)
	u.connections++
	return true
}

// took counts a canceled request, and reports whether the client cancels too often.
func (c *clients) took(name string) (often bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	often = !u.taken.Spend(time.Since(c.began), c.limits.Resets, 10*c.limits.Resets)
	c.forget(name, u)
	return often
}

// tired reports whether a client recently canceled so many requests that it is refused now. It is for connections
// that are not ours to close.
func (c *clients) tired(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.byName[name]
	return u != nil && u.taken.Spent(time.Since(c.began), c.limits.Resets)+1 > float64(10*c.limits.Resets)
}

// leave removes a connection of a client.
func (c *clients) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	u.connections--
	c.forget(name, u)
}

// begin adds a request, or returns the error of a client above its limits.
func (c *clients) begin(name string, stream bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	switch {
	case c.all >= c.limits.All:
		return refuse(connect.CodeResourceExhausted, "busy",
			"%d requests are in flight, the limit of this node: try again later", c.all)
	case !u.asked.Spend(time.Since(c.began), c.limits.Rate, c.limits.Rate):
		return refuse(connect.CodeResourceExhausted, "busy", "client %s sends more than %d requests a second, its "+
			"limit: slow down", name, c.limits.Rate)
	case u.requests >= c.limits.Requests:
		return refuse(connect.CodeResourceExhausted, "busy",
			"client %s has %d requests in flight, its limit: wait for answers", name, u.requests)
	case stream && u.streams >= c.limits.Streams:
		return refuse(connect.CodeResourceExhausted, "busy", "client %s has %d streams, its limit: close some",
			name, u.streams)
	}
	c.all++
	u.requests++
	if stream {
		u.streams++
	}
	return nil
}

// end removes a request.
func (c *clients) end(name string, stream bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	c.all--
	u.requests--
	if stream {
		u.streams--
	}
	c.forget(name, u)
}

// of returns a client's usage. The lock is held.
func (c *clients) of(name string) *usage {
	u := c.byName[name]
	if u == nil {
		if now := time.Now(); now.Sub(c.swept) > time.Second {
			c.swept = now
			for other, u := range c.byName {
				c.forget(other, u)
			}
		}
		u = new(usage)
		c.byName[name] = u
	}
	return u
}

// forget drops the usage of a client without connections and requests, unless its rates are not yet back at zero:
// reconnecting must not reset them. The lock is held.
func (c *clients) forget(name string, u *usage) {
	now, l := time.Since(c.began), &c.limits
	if u.connections+u.requests+u.streams == 0 && u.asked.Spent(now, l.Rate)+u.taken.Spent(now, l.Resets) == 0 {
		delete(c.byName, name)
	}
}
