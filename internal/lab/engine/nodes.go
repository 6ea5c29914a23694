package engine

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"parley"
	"parley/internal/merged"
	"parley/trace"
)

// chooser makes runs from traces of nodes, as flags choose, and cluster describes one of these runs. Only an engine of
// NewWithNodes has them. If other code called their methods by name, the engine of the browser would contain the merger
// and the audit, and would be 2 % larger.
type (
	chooser interface {
		make(flags map[string]string) (*made, error)
	}
	cluster interface {
		answer() *merged.Answer
		command() string
		export() (any, error)
	}
)

// NewWithNodes is New for an engine that also opens the traces of the nodes of a cluster, and merges them into one run.
func NewWithNodes(protocols []parley.Protocol, scenarios fs.FS, version string) *Engine {
	e := New(protocols, scenarios, version)
	e.merge = func(traces []trace.Trace) (recording, error) {
		n, err := merged.New(protocols, traces)
		if err != nil {
			return recording{}, err
		}
		return recording{hash: n.Hash(), nodes: nodes{n}}, nil
	}
	e.readNodes = merged.ReadFile
	return e
}

// errNodes is the error of an engine of New for the traces of nodes.
var errNodes = errors.New("these are traces of nodes of a cluster, which this form of the lab does not merge: open " +
	"them with the command parley lab and their names")

// nodes are the traces of the nodes of a cluster.
type nodes struct{ *merged.Nodes }

// tick is the unit of the times that the page shows, in ns: a microsecond.
const tick = 1000

func (n nodes) make(flags map[string]string) (*made, error) {
	s, err := n.Choose(flags)
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
	nodes nodes
	*merged.Shown
}

func (s shown) answer() *merged.Answer { return s.nodes.Describe(s.Shown) }

func (s shown) command() string { return s.Command() }

func (s shown) export() (any, error) {
	var b bytes.Buffer
	err := s.Write(&b)
	return ExportAnswer{strings.ReplaceAll(s.Machine, "/", "-") + ".jsonl", "application/jsonl", b.String()}, err
}
