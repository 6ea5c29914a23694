package merged

import (
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
	"parley/trace"
)

// Bundled begins a bundle of files that are sent as one, and no trace. The first line of a bundle is a JSON object with
// the names and the sizes of the files in bytes. Their bytes follow.
const Bundled = `{"files":`

// ReadFile reads a file of consecutive traces, or a bundle of such files. head is its first line.
func ReadFile(head []byte, rest io.Reader) (all []trace.Trace, err error) {
	if !bytes.HasPrefix(head, []byte(Bundled)) {
		return trace.ReadAll("", io.MultiReader(bytes.NewReader(head), rest))
	}
	var bundle struct {
		Files []struct {
			Name string `json:"name"`
			Size int64  `json:"size"`
		} `json:"files"`
	}
	if err := json.Unmarshal(head, &bundle); err != nil {
		return nil, fmt.Errorf("the files are not understood: %w", err)
	}
	for _, f := range bundle.Files {
		some, err := trace.ReadAll(f.Name, &io.LimitedReader{R: rest, N: f.Size})
		if in, ok := errors.AsType[*trace.ReadError](err); ok {
			return nil, fmt.Errorf("%s, line %d: %w", f.Name, in.Line, in.Err)
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// Hash returns a hash of all traces. The order and the names of the files have no effect on it.
func (n *Nodes) Hash() string {
	var sums []string
	for _, t := range n.traces {
		h, err := json.Marshal(t.Header)
		if err != nil {
			panic(err) // texts and numbers
		}
		sums = append(sums, fmt.Sprintf("%s %s %t", h, t.Log.Hash(), t.Log.Broken))
	}
	sum := sha256.Sum256([]byte(strings.Join(sums, "\n")))
	return hex.EncodeToString(sum[:16])
}

// inOrder orders traces by machine, node, and incarnation.
func inOrder(a, b trace.Trace) int {
	x, y := a.Header.Node, b.Header.Node
	return cmp.Or(cmp.Compare(x.Machine, y.Machine), cmp.Compare(x.Self, y.Self), cmp.Compare(x.Life, y.Life))
}

// The flags of "parley trace show" that choose what is shown.
const machineFlag, slotFlag = "machine", "slot"

// Choose shows what the flags machine and slot choose. Without a machine it shows the first one that decided something.
func (n *Nodes) Choose(flags map[string]string) (s *Shown, err error) {
	slot := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(flags)) {
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
	if name := flags[machineFlag]; name != "" {
		return n.Show(name, slot)
	}
	for _, name := range n.Machines() {
		if s, err = n.Show(name, slot); !errors.Is(err, ErrUndecided) {
			break
		}
	}
	return s, err
}

// Command returns a command line that shows the same.
func (s *Shown) Command() string {
	words := []string{input.Program, "trace", "show"}
	files := lists.Of(s.traces, func(t trace.Trace) string { return cmp.Or(t.Name, "nodes.jsonl") })
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

// Write writes the traces of the machine, one after another, as trace.ReadAll reads them.
func (s *Shown) Write(to io.Writer) error {
	for _, t := range s.traces {
		if err := trace.Write(to, t.Header, t.Log); err != nil {
			return err
		}
	}
	return nil
}

// Answer says what is shown of the traces of the nodes of a cluster: one machine or, if that machine is a stream of
// agreements, one agreement of the stream.
type Answer struct {
	Hash     string   `json:"hash"` // of all traces, by which questions name them
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

// Describe says what is shown.
func (n *Nodes) Describe(s *Shown) *Answer {
	a := &Answer{
		Hash: n.Hash(), Cluster: s.Header.Node.Cluster, Machine: s.Machine, Machines: n.Machines(), Slot: s.Slot,
		First: s.First, Last: s.Last, Missing: append([]string{}, s.Missing...), Unjudged: s.Unjudged,
	}
	for id, note := range s.Notes {
		a.Nodes = append(a.Nodes, NodeOf{s.Run.Names.Full(parley.ID(id)), s.Header.Name(parley.ID(id)), note})
	}
	return a
}
