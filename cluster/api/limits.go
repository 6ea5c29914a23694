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

// Limits bounds what clients can make a node hold, and for how long. A field that is 0
// takes its default.
type Limits struct {
	Body        int           // bytes of a message; 1 MiB
	Strangers   int           // connections that have asked for nothing yet, at a time; 256
	OfAddress   int           // of these from one address; 64. One more takes the place of the oldest
	AddressRate int           // connections from one address in a second; 256
	AddressOnce int           // the same at once; 1024
	Rate        int           // requests of one client in a second, and at once; 20,000
	Resets      int           // requests of one client in a second that it takes back; 100, at once ten times as many
	Connections int           // of one client; 64
	Requests    int           // of one client at a time, streams too; 1024
	Streams     int           // of one client at a time; 64
	All         int           // requests of all clients at a time; 8192
	Header      time.Duration // for TLS, and for the header of a request; 5 s
	Read        time.Duration // for the rest of a request, once its header is there; 10 s
	Write       time.Duration // for a client to read what is sent to it; 10 s
	Idle        time.Duration // without a request; 2 min
}

func (l Limits) withDefaults() Limits {
	l.Body, l.All = cmp.Or(l.Body, 1<<20), cmp.Or(l.All, 8192)
	l.Strangers, l.OfAddress = cmp.Or(l.Strangers, 256), cmp.Or(l.OfAddress, 64)
	l.AddressRate, l.AddressOnce = cmp.Or(l.AddressRate, 256), cmp.Or(l.AddressOnce, 1024)
	l.Rate, l.Resets = cmp.Or(l.Rate, 20_000), cmp.Or(l.Resets, 100)
	l.Connections, l.Requests, l.Streams = cmp.Or(l.Connections, 64), cmp.Or(l.Requests, 1024), cmp.Or(l.Streams, 64)
	l.Header, l.Read = cmp.Or(l.Header, 5*time.Second), cmp.Or(l.Read, 10*time.Second)
	l.Write, l.Idle = cmp.Or(l.Write, 10*time.Second), cmp.Or(l.Idle, 2*time.Minute)
	return l
}

// clients counts what each client has under way.
type clients struct {
	limits Limits

	began time.Time
	rates *link.AddressRates // of connections

	mu        sync.Mutex
	strangers []*conn // that have asked for nothing yet, the oldest first
	all       int
	byName    map[string]*usage // of those who have anything, or had lately
	swept     time.Time         // when those who had were last taken out
}

// usage is what one client has under way, and has asked for lately.
type usage struct {
	connections, requests, streams int
	asked, taken                   link.Allowance // requests, and those that it took back
}

func (c *clients) init(l Limits) {
	c.limits, c.byName, c.began = l, make(map[string]*usage), time.Now()
	c.rates = link.NewAddressRates(l.AddressRate, l.AddressOnce)
}

// meet takes in a connection of which nothing is known yet, or tells that its address has had
// too many. If there is no room, another one is to leave: the oldest of the address that has the
// most, so that connections which ask for nothing keep nobody else out.
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

// part counts out a connection of which nothing became known.
func (c *clients) part(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgetStranger(one)
}

// forgetStranger takes a connection from the strangers. The lock is held.
func (c *clients) forgetStranger(one *conn) {
	c.strangers = slices.DeleteFunc(c.strangers, func(s *conn) bool { return s == one })
}

// know makes a stranger's connection one of a client, or tells that it has too many.
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

// took counts a request that a client took back, and tells whether it does so too often.
func (c *clients) took(name string) (often bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	often = !u.taken.Spend(time.Since(c.began), c.limits.Resets, 10*c.limits.Resets)
	c.forget(name, u)
	return often
}

// tired tells whether a client took back so many requests lately that it may ask for nothing now, where its
// connection is not ours to close.
func (c *clients) tired(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.byName[name]
	return u != nil && u.taken.Spent(time.Since(c.began), c.limits.Resets)+1 > float64(10*c.limits.Resets)
}

// leave counts out a connection of a client.
func (c *clients) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	u.connections--
	c.forget(name, u)
}

// begin counts a request in, or tells why not.
func (c *clients) begin(name string, stream bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	switch {
	case c.all >= c.limits.All:
		return refuse(connect.CodeResourceExhausted, "busy", "%d requests are under way: that is as many as may be", c.all)
	case !u.asked.Spend(time.Since(c.began), c.limits.Rate, c.limits.Rate):
		return refuse(connect.CodeResourceExhausted, "busy", "client %s asks more than %d times a second: that is as "+
			"often as it may", name, c.limits.Rate)
	case u.requests >= c.limits.Requests:
		return refuse(connect.CodeResourceExhausted, "busy",
			"client %s has %d requests under way: that is as many as it may have", name, u.requests)
	case stream && u.streams >= c.limits.Streams:
		return refuse(connect.CodeResourceExhausted, "busy", "client %s has %d streams: that is as many as it may have",
			name, u.streams)
	}
	c.all++
	u.requests++
	if stream {
		u.streams++
	}
	return nil
}

// end counts out a request.
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

// of is a client's usage. The lock is held.
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

// forget drops the usage of a client that has nothing, unless it has asked for much or taken requests back lately:
// another connection is no new beginning. The lock is held.
func (c *clients) forget(name string, u *usage) {
	now, l := time.Since(c.began), &c.limits
	if u.connections+u.requests+u.streams == 0 && u.asked.Spent(now, l.Rate)+u.taken.Spent(now, l.Resets) == 0 {
		delete(c.byName, name)
	}
}
