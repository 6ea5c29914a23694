package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"
)

// environment is what the nodes run in.
type environment interface {
	// listen returns the addresses on which a node listens for other nodes, for clients and for metrics.
	listen(i int) (nodes, api, metrics string)
	// data returns the folder of a node's data.
	data(i int) string
	// start starts a process of a node.
	start(i int, cmd *exec.Cmd) error
	// dial connects to a node from the network in which it runs.
	dial(ctx context.Context, i int, network, address string) (net.Conn, error)
	// close releases the environment's resources.
	close() error
}

// faultyNetwork is the network of an environment that can inject network faults.
type faultyNetwork interface {
	set(r rule, from, to []int)
	clear()
}

// faultyDisk is the disk of a node in an environment that can inject disk faults.
type faultyDisk interface {
	fill() error
	free() error
	stall(how time.Duration) error
	slow(ctx context.Context, each time.Duration) error
}

// rule is what happens to packets.
type rule struct {
	lost   float64 // the fraction that is lost
	delay  time.Duration
	jitter time.Duration // up to this much more
}

// cut is the rule of a link that carries nothing.
var cut = rule{lost: 1}

// loopback is the plain computer: processes can be killed and paused, and nothing else. It needs no privileges.
type loopback struct {
	dir   string
	ports []int // three for each node
}

// newLoopback finds ports for n nodes.
func newLoopback(ctx context.Context, dir string, n int) (*loopback, error) {
	w := &loopback{dir: dir}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	for port := 10_000 + int(time.Now().UnixNano()/1000%20_000); len(w.ports) < 3*n; port++ {
		if port == 32_000 {
			port = 10_000
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			held, w.ports = append(held, l), append(w.ports, port)
		}
	}
	return w, nil
}

func (w *loopback) listen(i int) (nodes, api, metrics string) {
	at := func(k int) string { return fmt.Sprintf("127.0.0.1:%d", w.ports[3*i+k]) }
	return at(0), at(1), at(2)
}

func (w *loopback) data(i int) string { return filepath.Join(w.dir, nodeName(i), "data") }

func (w *loopback) start(_ int, cmd *exec.Cmd) error { return cmd.Start() }

func (w *loopback) dial(ctx context.Context, _ int, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

func (w *loopback) close() error { return nil }
