package cluster

import (
	"crypto/ed25519"
	"encoding/binary"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/agree"
	"parley/cluster/link"
	"parley/cluster/mesh"
	"parley/cluster/protocols"
	"parley/lockstep"
)

// Hooks are the settings that a test changes in a node.
type Hooks = hooks

// Test returns the settings that a test changes.
func (c *Config) Test() *Hooks { return &c.hooks }

// Greeting returns the hello of a node, with the digest of its configuration.
func Greeting(c Config, incarnation uint64) link.Hello {
	c = c.filled()
	return link.Hello{Cluster: c.Trust.Cluster(), Config: c.digest(), Min: link.WireMin, Max: link.WireMin, Incarnation: incarnation}
}

// AgreementRounds returns the protocol of a slot of a stream, its channel, and the maximum size of a frame.
func AgreementRounds(a Algorithm, m int, source parley.ID, n int) (p lockstep.Protocol, channel uint32, limit int) {
	t := stream.Key{Algorithm: a, M: m, Source: source}
	return t.Rounds(n), protocols.Channel(t), t.FrameLimit(n)
}

// EachChannel calls each for the channels of all streams of a configuration, with the stream's window.
func EachChannel(c Config, each func(channel uint32, window, limit int)) {
	c = c.filled()
	all := agree.NewBudget(len(c.Members), c.Round, c.Agreements)
	for t := range all.Streams() {
		each(protocols.Channel(t), all.Window(t), t.FrameLimit(len(c.Members)))
	}
}

// SignAs returns a function that signs for a slot of a stream.
func SignAs(cluster string, key ed25519.PrivateKey, a Algorithm, m int, source parley.ID, slot uint64) func(b []byte) []byte {
	context := protocols.StreamName(stream.Key{Algorithm: a, M: m, Source: source})
	return func(b []byte) []byte {
		return mesh.Signer{Cluster: cluster, Key: key}.Sign(context, append(binary.BigEndian.AppendUint64(nil, slot), b...))
	}
}

// Refusals counts what a node has refused of another one, by reason: links, host, and machines together.
func (n *Node) Refusals(from parley.ID) map[string]uint64 {
	out := make(map[string]uint64)
	for _, p := range n.mesh.Stats().Peers {
		if p.ID == from {
			for why, times := range p.Refused {
				out[why.String()] += times
			}
		}
	}
	out["no message"] = n.k.Host.Malformed(from)
	out["no channel"] = n.k.Host.StrangeOf(from)
	n.k.Host.Refused(func(_ string, who parley.ID, why string, times uint64) {
		if who == from {
			out[why] += times
		}
	})
	return out
}

// WireVersion returns the version that two nodes use, 0 if they are not connected.
func (n *Node) WireVersion(id int) uint16 {
	for _, p := range n.mesh.Stats().Peers {
		if int(p.ID) == id {
			return p.Version
		}
	}
	return 0
}
