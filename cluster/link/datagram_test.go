package link_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"parley"
	"parley/cluster/link"
	"parley/cluster/link/memory"
)

var (
	_ link.Transport = (*link.Mesh)(nil)
	_ link.Transport = (*link.Datagrams)(nil)
)

// datagrams starts two nodes, on hosts a and b of a network.
func datagrams(t *testing.T) (d [2]*link.Datagrams, h [2]*host, n *memory.Network) {
	t.Helper()
	n = memory.New(memory.Options{})
	hosts := []*memory.Host{n.Host("a"), n.Host("b")}
	addrs := []string{hosts[0].Addr(7), hosts[1].Addr(7)}
	for i := range 2 {
		h[i] = &host{}
		var err error
		d[i], err = link.NewDatagrams(link.DatagramConfig{Self: parley.ID(i), Peers: addrs, Network: hosts[i], Handler: h[i]})
		must(t, err)
		must(t, d[i].Start())
		t.Cleanup(func() { _ = d[i].Close() })
	}
	return d, h, n
}

func socket(t testing.TB, n link.Network, address string) link.Socket {
	t.Helper()
	c, err := n.ListenPacket(t.Context(), "udp", address)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c.(link.Socket)
}

func TestDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h, _ := datagrams(t)
		for i := range 2 {
			to := parley.ID(1 - i)
			if !d[i].Send(to, link.Urgent, 300, []byte("he"), []byte("llo")) {
				t.Fatal("not sent")
			}
			d[i].Flush(to)
			h[to].await(t, "frame "+parley.ID(i).String()+"/300 hello")
		}
		p := d[0].Stats().Peers[0]
		if p.ID != 1 || p.FramesIn != 1 || p.FramesOut != 1 || p.BytesOut != 2+2+5 {
			t.Errorf("%+v", p)
		}
		must(t, d[0].Close())
		if got := h[0].all(); got != "up 1.0\nframe 1/300 hello\ndown 1 closed" {
			t.Error(got)
		}
		if d[0].Send(1, link.Bulk, 1, nil, nil) {
			t.Error("sent after the end")
		}
	})
}

// A packet holds one frame, up to its maximum size.
func TestDatagramSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 1200
		d, h, _ := datagrams(t)
		room := size - 2 - 1
		if d[0].Send(1, link.Bulk, 5, []byte{1}, make([]byte, room)) || d[0].Stats().Peers[0].Refused[link.Oversize] != 1 {
			t.Errorf("%d bytes and one more were sent", size)
		}
		if !d[0].Send(1, link.Bulk, 5, []byte{1}, make([]byte, room-1)) {
			t.Errorf("%d bytes were not sent", size)
		}
		await(t, "the packet", func() bool { return strings.Contains(h[1].all(), "frame 0/5 ") })
	})
}

// Packets that are not a peer's are refused.
func TestHostileDatagrams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h, n := datagrams(t)
		to := netip.MustParseAddrPort(n.Host("b").Addr(7))
		stranger := socket(t, n.Host("stranger"), ":7")
		seen := func(why link.Reason) func() bool {
			return func() bool { return d[1].Stats().Refused[why] > 0 }
		}
		for _, c := range []struct {
			what string
			b    []byte
			why  link.Reason
		}{
			{"another address", []byte{0, 0, 5, 'x'}, link.OtherAddress},
			{"no peer", []byte{0, 2, 5, 'x'}, link.OtherPeer},
			{"ourselves", []byte{0, 1, 5, 'x'}, link.OtherPeer},
			{"a byte", []byte{0}, link.Truncated},
			{"nothing", nil, link.Truncated},
		} {
			_, _ = stranger.WriteToUDPAddrPort(c.b, to)
			await(t, c.what, seen(c.why))
		}
		// From the peer's own address.
		_ = d[0].Close()
		peer := socket(t, n.Host("a"), ":7")
		for why, b := range map[link.Reason][]byte{
			link.LongFrame: append([]byte{0, 0, 5}, make([]byte, 1198)...), link.Malformed: {0, 0, 0x80, 0},
		} {
			_, _ = peer.WriteToUDPAddrPort(b, to)
			await(t, why.String(), func() bool { return d[1].Stats().Peers[0].Refused[why] == 1 })
		}
		_, _ = peer.WriteToUDPAddrPort([]byte{0, 0, 5, 'o', 'k'}, to)
		h[1].await(t, "frame 0/5 ok")
		if got := h[1].all(); got != "up 0.0\nframe 0/5 ok" {
			t.Error(got)
		}
	})
}

func TestDatagramConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := link.DatagramConfig{
			Peers: []string{"127.0.0.1:0"}, Network: memory.New(memory.Options{}).Host("a"), Handler: &host{},
		}
		for what, spoil := range map[string]func(c *link.DatagramConfig){
			"no such node": func(c *link.DatagramConfig) { c.Self = 1 },
			"a name":       func(c *link.DatagramConfig) { c.Peers = []string{"localhost:1"} },
			"no handler":   func(c *link.DatagramConfig) { c.Handler = nil },
		} {
			c := good
			spoil(&c)
			if _, err := link.NewDatagrams(c); err == nil {
				t.Errorf("%s was accepted", what)
			}
		}
		d, err := link.NewDatagrams(good)
		must(t, err)
		must(t, d.Start())
		must(t, d.Close())
	})
}
