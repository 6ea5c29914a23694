package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cluster/agree"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/trace"
)

// Tracing is where a node writes the traces of its machines: one each, in the format of
// the simulator, while things happen. Machines do not wait for it: what can not be written
// fast enough is left out, and the trace says so.
type Tracing struct {
	// Open is called for each machine with the header of its trace, and returns where the
	// trace goes. TraceFolder makes files. If it fails, the node says so and goes on.
	Open func(h trace.Header) (io.WriteCloser, error)
	// Limit is how much is written of each machine, in bytes, and Buffer how much waits to
	// be written. By default there is no limit, and 8 MiB may wait.
	Limit  int64
	Buffer int
}

// TraceFolder makes a file for each trace in a folder, which it makes if there is none. The
// names have the machine, the node and the number of the node's life.
func TraceFolder(dir string) func(h trace.Header) (io.WriteCloser, error) {
	return func(h trace.Header) (io.WriteCloser, error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		machine := strings.ReplaceAll(h.Node.Machine, "/", "-")
		name := fmt.Sprintf("%s.%s.%d.jsonl", machine, h.Name(parley.ID(h.Node.Self)), h.Node.Life)
		return os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
}

// tracer keeps the traces of a node, and its recorder.
type tracer struct {
	recorder *host.Recorder
	life     uint64

	mu   sync.Mutex
	open []traced
}

// traced is one trace that is being written.
type traced struct {
	machine string
	stream  *trace.Stream
	file    io.Closer
}

// Recorder is what keeps the last events of the node's machines.
func (n *Node) Recorder() *host.Recorder { return n.tracer.recorder }

// header says what a trace of one of the machines is a trace of.
func (n *Node) header(o host.Options, now parley.Tick) trace.Header {
	h := trace.Header{N: len(n.c.Members), M: n.c.M, Node: &trace.Node{
		Machine: o.Name, Channel: o.Channel, Round: int64(n.c.Round), Self: int(n.k.Self), Life: n.tracer.life,
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

// trace begins the trace of a machine.
func (n *Node) trace(h trace.Header) func(trace.Event) {
	w, err := n.c.Trace.Open(h)
	if err == nil {
		var s *trace.Stream
		s, err = trace.NewStream(w, h, trace.StreamOptions{Buffer: n.c.Trace.Buffer, Limit: n.c.Trace.Limit})
		if err == nil {
			n.tracer.mu.Lock()
			n.tracer.open = append(n.tracer.open, traced{h.Node.Machine, s, w})
			n.tracer.mu.Unlock()
			return s.Add
		}
		err = errors.Join(err, w.Close())
	}
	n.c.Log.Error("no trace is written", "machine", h.Node.Machine, "why", err)
	return nil
}

// close ends the traces. A trace that could not be written is no reason for the node to fail.
func (t *tracer) close(n *Node) {
	t.mu.Lock()
	open := t.open
	t.open = nil
	t.mu.Unlock()
	for _, one := range open {
		err := errors.Join(one.stream.Close(), one.file.Close())
		if dropped := one.stream.Dropped(); dropped > 0 || err != nil {
			n.c.Log.Warn("a trace is not complete", "machine", one.machine, "dropped", dropped, "why", err)
		}
	}
}

// flightFile is where the recorder is dumped when the node breaks.
const flightFile = "flight.jsonl"

// DumpFlight writes what the recorder has into the file flight.jsonl of the node's folder,
// in place of one that is there, or into a temporary file if the node has no folder, and
// returns its name.
func (n *Node) DumpFlight() (file string, err error) {
	return diskAnswers(n.c.DiskLimit, "write "+flightFile, n.dumpFlight)
}

func (n *Node) dumpFlight() (file string, err error) {
	if n.c.Dir == "" {
		f, err := os.CreateTemp("", "flight-*.jsonl")
		if err != nil {
			return "", err
		}
		return f.Name(), errors.Join(n.tracer.recorder.Dump(f), f.Close())
	}
	var b bytes.Buffer
	if err := n.tracer.recorder.Dump(&b); err != nil {
		return "", err
	}
	d := n.disk()
	file = filepath.Join(n.c.Dir, flightFile)
	if err := d.Remove(file + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := d.Create(file + ".new")
	if err != nil {
		return "", err
	}
	_, err = f.WriteAt(b.Bytes(), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return file, d.Rename(file+".new", file)
}

// flight dumps the recorder of a node that can not go on, if it has a folder.
func (n *Node) flight() {
	if n.c.Dir == "" || n.tracer.recorder == nil {
		return
	}
	file, err := diskAnswers(diskPatience, "write "+flightFile, n.dumpFlight)
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
