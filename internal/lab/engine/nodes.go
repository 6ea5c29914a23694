package engine

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/internal/merged"
	"parley/trace"
)

// NodesAnswer says what is shown of the traces of the nodes of a cluster: one machine or, if that machine is a stream of
// agreements, one agreement of the stream.
type NodesAnswer struct {
	Hash     string   `json:"hash"` // of all traces: questions name them by it
	Cluster  string   `json:"cluster,omitempty"`
	Machine  string   `json:"machine"`
	Machines []string `json:"machines"`
	Slot     uint64   `json:"slot,omitempty"`  // 0: the machine is no stream of agreements
	First    uint64   `json:"first,omitempty"` // the first slot that a node decided
	Last     uint64   `json:"last,omitempty"`
	Nodes    []NodeOf `json:"nodes"` // by process
	Missing  []string `json:"missing"`
	Unjudged string   `json:"unjudged,omitempty"` // why there are no verdicts
}

// NodeOf names the node that ran a process.
type NodeOf struct {
	Process string `json:"process"`
	Node    string `json:"node"`
	Note    string `json:"note,omitempty"` // whether its own trace counts
}

// chooser makes runs from traces of nodes, as flags choose, and cluster describes one of these runs. Only an engine of
// NewWithNodes has them. A call of their methods by name would link the merger and the audit into the engine of the
// browser, which would be 2 % larger.
type (
	chooser interface {
		make(flags map[string]string) (*made, error)
	}
	cluster interface {
		answer() *NodesAnswer
		command() string
		export() (any, error)
	}
)

// NewWithNodes is New for an engine that also opens the traces of the nodes of a cluster, and merges them into one run.
func NewWithNodes(protocols []parley.Protocol, scenarios fs.FS, version string) *Engine {
	e := New(protocols, scenarios, version)
	e.merge = func(traces []trace.Trace) (recording, error) {
		n, err := newNodes(protocols, traces)
		if err != nil {
			return recording{}, err
		}
		return recording{hash: n.hash, nodes: n}, nil
	}
	e.readNodes = nodesIn
	return e
}

// errNodes is the error of an engine of New for the traces of nodes.
var errNodes = errors.New("these are traces of nodes of a cluster, which this form of the lab does not merge: open them " +
	"with the command parley lab and their names")

// nodes are the traces of the nodes of a cluster.
type nodes struct {
	*merged.Nodes
	traces []trace.Trace
	hash   string
}

// newNodes returns the traces of nodes. Nothing of them depends on the order in which the files were named.
func newNodes(protocols []parley.Protocol, traces []trace.Trace) (*nodes, error) {
	traces = slices.Clone(traces)
	slices.SortStableFunc(traces, func(a, b trace.Trace) int {
		if a.Header.Node == nil || b.Header.Node == nil { // an error that New finds
			return 0
		}
		return cmp.Or(cmp.Compare(a.Header.Node.Machine, b.Header.Node.Machine),
			cmp.Compare(a.Header.Node.Self, b.Header.Node.Self), cmp.Compare(a.Header.Node.Life, b.Header.Node.Life))
	})
	all, err := merged.New(protocols, traces)
	if err != nil {
		return nil, err
	}
	var sums []string
	for _, t := range traces {
		h, err := json.Marshal(t.Header)
		if err != nil {
			return nil, err
		}
		sums = append(sums, fmt.Sprintf("%s %s %t", h, t.Log.Hash(), t.Log.Broken))
	}
	slices.Sort(sums)
	sum := sha256.Sum256([]byte(strings.Join(sums, "\n")))
	return &nodes{all, traces, hex.EncodeToString(sum[:16])}, nil
}

// The flags of "parley trace show" that choose what is shown.
const machineFlag, slotFlag = "machine", "slot"

// tick is the unit of the times that the page shows, in ns: a microsecond.
const tick = 1000

// make makes the run of the chosen machine, or else of the first one that decided something.
func (n *nodes) make(flags map[string]string) (*made, error) {
	slot := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		var err error
		switch value := flags[name]; name {
		case machineFlag:
		case slotFlag:
			if slot, err = strconv.ParseUint(value, 10, 64); err != nil {
				return nil, parley.FlagErrorf(slotFlag, "%.40q is not the number of a slot: a number from 1 was expected", value)
			}
		default:
			return nil, parley.FlagErrorf(name, "the traces of nodes have no such setting: allowed are %s and %s",
				machineFlag, slotFlag)
		}
	}
	var s *merged.Shown
	var err error
	if name := flags[machineFlag]; name != "" {
		s, err = n.Show(name, slot)
	} else {
		for _, name := range n.Machines() {
			one, wrong := n.Show(name, slot)
			if s, err = one, wrong; !errors.Is(err, merged.ErrUndecided) {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	m, err := newMade(s.Run, s.Log, s.Header.Facts, nil, s.Report)
	if err != nil {
		return nil, err
	}
	m.recorded, m.of = true, shown{n, s}
	m.drawn.events = slices.Clone(m.drawn.events)
	for i := range m.drawn.events {
		m.drawn.events[i].Time /= tick
	}
	return m, nil
}

// shown is what is shown of traces of nodes.
type shown struct {
	*nodes
	*merged.Shown
}

// answer describes what is shown of the traces.
func (w shown) answer() *NodesAnswer {
	n, s := w.nodes, w.Shown
	a := &NodesAnswer{
		Hash: n.hash, Cluster: s.Header.Node.Cluster, Machine: s.Machine, Machines: n.Machines(), Slot: s.Slot,
		First: s.First, Last: s.Last, Missing: append([]string{}, s.Missing...), Unjudged: s.Unjudged,
	}
	for id, note := range s.Notes {
		a.Nodes = append(a.Nodes, NodeOf{s.Run.Names.Full(parley.ID(id)), s.Header.Name(parley.ID(id)), note})
	}
	return a
}

// command returns a command line that shows the same.
func (w shown) command() string {
	n, s := w.nodes, w.Shown
	words := []string{input.Program, "trace", "show"}
	files := lists.Of(n.Traces(s.Machine), func(t trace.Trace) string { return cmp.Or(t.Name, "nodes.jsonl") })
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		words = append(words, input.Quote(file))
	}
	words = append(words, "--"+machineFlag, input.Quote(s.Machine))
	if s.Slot > 0 {
		words = append(words, "--"+slotFlag, strconv.FormatUint(s.Slot, 10))
	}
	return strings.Join(words, " ")
}

// export writes the traces of the machine one after another, as "parley trace show" and the page read them.
func (w shown) export() (any, error) {
	n, s := w.nodes, w.Shown
	var b bytes.Buffer
	for _, t := range n.Traces(s.Machine) {
		if err := trace.Write(&b, t.Header, t.Log); err != nil {
			return nil, err
		}
	}
	return ExportAnswer{strings.ReplaceAll(s.Machine, "/", "-") + ".jsonl", "application/jsonl", b.String()}, nil
}

// bundle is the first line of several files that are sent as one. Their bytes follow.
type bundle struct {
	Files []struct {
		Name string `json:"name"`
		Size int64  `json:"size"` // in bytes
	} `json:"files"`
}

// nodesIn reads a file of consecutive traces, or a bundle of files. head is its first line.
func nodesIn(head []byte, rest io.Reader) ([]trace.Trace, error) {
	if !bytes.HasPrefix(head, []byte(bundled)) {
		return trace.ReadAll("", io.MultiReader(bytes.NewReader(head), rest))
	}
	var b bundle
	if err := read(head, &b); err != nil {
		return nil, err
	}
	return b.read(rest)
}

// read reads the files of a bundle.
func (b *bundle) read(from io.Reader) (all []trace.Trace, err error) {
	for _, f := range b.Files {
		part := &io.LimitedReader{R: from, N: f.Size}
		some, err := trace.ReadAll(f.Name, part)
		if in, ok := errors.AsType[*trace.ReadError](err); ok {
			return nil, fmt.Errorf("%s, line %d: %w", f.Name, in.Line, in.Err)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}
