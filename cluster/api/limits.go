package api

import (
	"sync"
	"time"

	"connectrpc.com/connect"
)

// Limits bounds what clients can make a node hold, and for how long. A field that is 0
// takes its default.
type Limits struct {
	Body        int           // bytes of a message; 1 MiB
	Strangers   int           // connections that have asked for nothing yet, at a time; 256
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
	for _, f := range []struct {
		value *int
		other int
	}{
		{&l.Body, 1 << 20}, {&l.Strangers, 256}, {&l.Connections, 64}, {&l.Requests, 1024}, {&l.Streams, 64},
		{&l.All, 8192},
	} {
		if *f.value == 0 {
			*f.value = f.other
		}
	}
	for _, f := range []struct {
		value *time.Duration
		other time.Duration
	}{
		{&l.Header, 5 * time.Second}, {&l.Read, 10 * time.Second}, {&l.Write, 10 * time.Second},
		{&l.Idle, 2 * time.Minute},
	} {
		if *f.value == 0 {
			*f.value = f.other
		}
	}
	return l
}

// clients counts what each client has under way.
type clients struct {
	limits Limits

	mu        sync.Mutex
	strangers int
	all       int
	byName    map[string]*usage // of those who have anything
}

// usage is what one client has under way.
type usage struct{ connections, requests, streams int }

func (c *clients) init(l Limits) { c.limits, c.byName = l, make(map[string]*usage) }

// meet counts a connection in of which nothing is known yet, or tells that there are too
// many.
func (c *clients) meet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.strangers >= c.limits.Strangers {
		return false
	}
	c.strangers++
	return true
}

// part counts out a connection of which nothing became known.
func (c *clients) part() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.strangers--
}

// know makes a stranger's connection one of a client, or tells that it has too many.
func (c *clients) know(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name)
	if u.connections >= c.limits.Connections {
		return false
	}
	c.strangers--
	u.connections++
	return true
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
		u = new(usage)
		c.byName[name] = u
	}
	return u
}

// forget drops the usage of a client that has nothing. The lock is held.
func (c *clients) forget(name string, u *usage) {
	if *u == (usage{}) {
		delete(c.byName, name)
	}
}
