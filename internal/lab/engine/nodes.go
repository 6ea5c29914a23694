package engine

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// nodes are the traces of the nodes of a cluster, from which the engine makes runs.
type nodes struct {
	*merged.Nodes
	traces []trace.Trace
	hash   string
}

// newNodes returns the traces of nodes. Its hash does not depend on their order, nor on the names of files.
func newNodes(protocols []parley.Protocol, traces []trace.Trace) (*nodes, error) {
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
	m.recorded, m.of, m.shown = true, n, s
	return m, nil
}

// answerOf describes what is shown of the traces.
func (n *nodes) answerOf(s *merged.Shown) *NodesAnswer {
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
func (n *nodes) command(s *merged.Shown) string {
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
func (n *nodes) export(s *merged.Shown) (any, error) {
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

// bundled begins every bundle, and no trace.
const bundled = `{"files":`

// tracesIn reads the traces in a file, or in a bundle of files.
func tracesIn(from io.Reader) ([]trace.Trace, error) {
	in := bufio.NewReader(from)
	head, err := in.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte(bundled)) {
		var b bundle
		if err := read(head, &b); err != nil {
			return nil, err
		}
		return b.read(in)
	}
	whole := io.MultiReader(bytes.NewReader(head), in)
	var h trace.Header
	if json.Unmarshal(head, &h) == nil && merged.Of(h) {
		return trace.ReadAll("", whole)
	}
	h, log, err := trace.Read(whole)
	return []trace.Trace{{Header: h, Log: log}}, err
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
