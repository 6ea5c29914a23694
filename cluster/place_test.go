package cluster_test

import (
	"net"
	"testing"

	"parley/cluster"
	"parley/cluster/link/memory"
)

// places are where the nodes of a test are: hosts of a network in memory, for tests in a bubble,
// or for what is measured this machine.
type places struct{ network *memory.Network }

// take gives a node its place, and returns the address.
func (p *places) take(tb testing.TB, c *cluster.Config) string {
	tb.Helper()
	if _, measured := tb.(*testing.B); measured {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		c.Listen = l
		return l.Addr().String()
	}
	h := p.host(c.Name)
	c.Network = h
	return h.Addr(7000)
}

// host is that of a node, or of somebody else.
func (p *places) host(name string) *memory.Host {
	if p.network == nil {
		p.network = memory.New(memory.Options{})
	}
	return p.network.Host(name)
}
