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
	// Calls are remote procedure calls over HTTP/2, with the same mutual TLS, and promise what
	// streams do: for a network that lets nothing else through. A message takes many times
	// as long.
	Calls
)

var linkNames = [...]string{"streams", "datagrams", "calls"}

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
	return 0, fmt.Errorf("links %q: allowed are %s", text, strings.Join(linkNames[:], ", "))
}

// CheckLinks tells what a configuration has that its links do not carry.
func (c Config) CheckLinks() error {
	switch {
	case int(c.Links) >= len(linkNames):
		return fmt.Errorf("there are no %v: there are %s", c.Links, strings.Join(linkNames[:], ", "))
	case c.Links == Datagrams && len(c.Groups)+len(c.Tables) > 0:
		return errors.New("groups and tables need streams or calls: datagrams may be lost and come out of order")
	case c.Links == Datagrams && c.Participant != nil:
		return errors.New("transactions need streams or calls: datagrams may be lost and come out of order")
	}
	return nil
}

// newLinks makes the links of the node.
func (n *Node) newLinks(incarnation uint64) (link.Transport, error) {
	var addresses []string
	for _, m := range n.c.Members {
		addresses = append(addresses, m.Address)
	}
	if n.c.Links != Datagrams {
		c := n.linking(incarnation, addresses)
		if n.c.Links == Calls {
			return n.wrapped(links(link.NewCalls(c)))
		}
		return n.wrapped(links(link.New(c)))
	}
	n.c.Log.Warn("links are datagrams: nothing is encrypted, and who can put packets on the network speaks for any node")
	for i, address := range addresses { // a packet shows the number of an address, not its name
		a, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return nil, fmt.Errorf("cluster: %s: %w", n.k.Name(parley.ID(i)), err)
		}
		addresses[i] = a.AddrPort().String()
	}
	return links(link.NewDatagrams(link.DatagramConfig{
		Self: n.k.Self, Peers: addresses, Network: n.c.Network, Handler: carrier{n},
		Meddle: n.c.hooks.meddle,
	}))
}

// wrapped is what a test has put between the node and its links.
func (n *Node) wrapped(made link.Transport, err error) (link.Transport, error) {
	if err == nil && n.c.hooks.wrap != nil {
		made = n.c.hooks.wrap(made)
	}
	return made, err
}

// links are those that were made: none after an error, and not some that are nil.
func links[T link.Transport](made T, err error) (link.Transport, error) {
	if err != nil {
		return nil, err
	}
	return made, nil
}
