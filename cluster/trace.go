package cluster

import (
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/cluster/agree"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/traces"
	"parley/trace"
)

// Recorder is what keeps the last events of the node's machines.
func (n *Node) Recorder() *host.Recorder { return n.tracer.Recorder }

// header says what a trace of one of the machines is a trace of.
func (n *Node) header(o host.Options, now parley.Tick) trace.Header {
	h := trace.Header{N: len(n.c.Members), M: n.c.M, Node: &trace.Node{
		Machine: o.Name, Channel: o.Channel, Round: int64(n.c.Round), Self: int(n.k.Self), Life: n.admin.life,
		Began: time.Now().UnixNano() - int64(now),
	}}
	if n.c.Trust != nil {
		h.Node.Cluster = n.c.Trust.Cluster()
	}
	for _, m := range n.c.Members {
		h.Node.Members = append(h.Node.Members, m.Name)
	}
	if n.c.Lab != nil {
		h.Node.Lies = n.c.Lab.Traitor.Name
	}
	size := fmt.Sprintf("--n=%d", h.N)
	switch channel := o.Channel; {
	case channel == kernel.AdminChannel:
		h.Protocol = "expel"
		h.Args = []string{h.Protocol, size, fmt.Sprintf("--m=%d", h.M)}
	case channel >= kernel.FirstGroup && channel < kernel.FirstTable:
		n.groups.Describe(&h)
	case channel >= kernel.FirstStream && channel <= kernel.LastStream:
		agree.Describe(&h)
	}
	return h
}

// DumpFlight writes what the recorder has into the file flight.jsonl of the node's folder,
// in place of one that is there, or into a temporary file if the node has no folder, and
// returns its name.
func (n *Node) DumpFlight() (file string, err error) {
	return n.dumpFlight(n.c.DiskLimit)
}

func (n *Node) dumpFlight(limit time.Duration) (file string, err error) {
	return diskAnswers(limit, "write "+traces.FlightFile, func() (string, error) {
		return n.tracer.Dump(n.disk(), n.c.Dir)
	})
}

// flight dumps the recorder of a node that can not go on, if it has a folder.
func (n *Node) flight() {
	if n.c.Dir == "" || n.tracer == nil {
		return
	}
	file, err := n.dumpFlight(diskPatience)
	if err != nil {
		n.c.Log.Error("the last events can not be kept", "why", err)
		return
	}
	n.c.Log.Info("the last events are kept", "file", file)
}

// GroupProtocol is the protocol of the group whose trace it is; false for other traces.
func GroupProtocol(h trace.Header) (parley.Protocol, bool) {
	if h.Node == nil || !strings.HasPrefix(h.Node.Machine, "group/") || h.N < 1 || h.M < 0 || h.M > h.N-2 {
		return parley.Protocol{}, false
	}
	level, err := ParseLevel(h.Node.Level)
	if err != nil {
		return parley.Protocol{}, false
	}
	c := Config{Members: make([]Member, h.N)}
	p, err := groups.Protocol(level, c.views(), h.M, time.Duration(max(h.Node.Round, 1)))
	return p, err == nil
}
