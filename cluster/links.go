package cluster

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"parley"
	"parley/cluster/link"
)

// Links is how nodes are linked.
type Links uint8

// The forms of links.
const (
	// Streams are connections with mutual TLS: what is sent arrives once and in order, or
	// the connection goes down.
	Streams Links = iota
	// Datagrams are packets over UDP, each message in one. They may be lost, come twice or
	// out of order, and nothing is encrypted or authenticated: on loopback, or on a network
	// to which nobody else has access. Agreements stand that: what is lost was not said, and
	// a node of which something is lost counts among those that may lie. Values must leave
	// room in a packet of 1200 bytes. Groups, tables and transactions, which need links that
	// keep order, are refused.
	Datagrams
)

var linkNames = [...]string{"streams", "datagrams"}

func (l Links) String() string {
	if int(l) < len(linkNames) {
		return linkNames[l]
	}
	return fmt.Sprintf("links %d", uint8(l))
}

// ParseLinks reads what String writes.
func ParseLinks(text string) (Links, error) {
	for i, name := range linkNames {
		if name == text {
			return Links(i), nil
		}
	}
	return 0, fmt.Errorf("links %q: allowed are %s", text, strings.Join(linkNames[:], " and "))
}

// CheckLinks tells what a configuration has that its links do not carry.
func (c Config) CheckLinks() error {
	switch {
	case int(c.Links) >= len(linkNames):
		return fmt.Errorf("there are no %v: there are %s", c.Links, strings.Join(linkNames[:], " and "))
	case c.Links == Datagrams && len(c.Groups)+len(c.Tables) > 0:
		return errors.New("groups and tables need streams: datagrams may be lost and come out of order")
	case c.Links == Datagrams && c.Participant != nil:
		return errors.New("transactions need streams: datagrams may be lost and come out of order")
	}
	return nil
}

// newLinks makes the links of the node.
func (n *Node) newLinks(incarnation uint64) (link.Transport, error) {
	n.links.moved.L = &n.links.mu
	var addresses []string
	for _, m := range n.c.Members {
		addresses = append(addresses, m.Address)
	}
	if n.c.Links == Streams {
		m, err := n.newMesh(incarnation, addresses)
		if err != nil {
			return nil, err // and not a mesh that is nil
		}
		return m, nil
	}
	n.c.Log.Warn("links are datagrams: nothing is encrypted, and who can put packets on the network speaks for any node")
	for i, address := range addresses { // a packet shows the number of an address, not its name
		a, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return nil, fmt.Errorf("cluster: %s: %w", n.nameOf(parley.ID(i)), err)
		}
		addresses[i] = a.AddrPort().String()
	}
	d, err := link.NewDatagrams(link.DatagramConfig{
		Self: n.self, Peers: addresses, Socket: n.c.hooks.socket, Handler: carrier{n}, Meddle: n.c.hooks.meddle,
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}
