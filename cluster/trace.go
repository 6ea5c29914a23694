package cluster

import (
	"fmt"
	"time"

	"parley"
	"parley/cluster/agree"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/protocols"
	"parley/trace"
)

// header returns the header of the trace of one of a node's machines.
func header(
	k *kernel.Kernel, all *groups.Service, streams *agree.Service, o host.Options, now parley.Tick,
) trace.Header {
	h := trace.Header{N: len(k.Members), M: k.M, Node: &trace.Node{
		Machine: o.Name, Channel: o.Channel, Round: int64(k.Round), Self: int(k.Self), Life: k.Life,
		Began: time.Now().UnixNano() - int64(now), Cluster: k.Cluster, Members: k.Members,
	}}
	if k.Lies != nil {
		h.Node.Lies = k.Lies.Name
	}
	switch channel := o.Channel; {
	case channel == kernel.AdminChannel:
		h.Protocol = "expel"
		h.Args = []string{h.Protocol, fmt.Sprintf("--n=%d", h.N), fmt.Sprintf("--m=%d", h.M)}
	case channel >= kernel.FirstGroup && channel < kernel.FirstTable:
		all.Describe(&h)
	case channel >= kernel.FirstStream && channel <= kernel.LastStream:
		agree.Describe(&h, streams)
	}
	return h
}

// GroupProtocol returns the protocol of a group, given the header of its trace: see [protocols.OfGroup].
func GroupProtocol(h trace.Header) (parley.Protocol, bool) { return protocols.OfGroup(h) }

// StreamProtocol returns the protocol of a stream of agreements without rounds, given the header of its trace: see
// [protocols.OfStream].
func StreamProtocol(h trace.Header) (parley.Protocol, bool) { return protocols.OfStream(h) }

// Payloads returns the payloads in the body of a request or a delivery in the trace of a group, which has several if
// they were broadcast at the same time.
func Payloads(body []byte) [][]byte { return groups.Payloads(body) }
