// Package merged shows the traces of the nodes of a cluster as one run: a run of one machine or, if the machine is a
// stream of agreements, one agreement of the stream.
//
// # Decisions
//
// The verdicts come from the audit, and not from the merged events alone. Motive: events do not show that a node has no
// trace, or that its trace ends early. A node without a trace delivers nothing in the merged events, which looks like a
// broken promise. Cost: an agreement that was in flight when a trace ended has no verdict.
package merged

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/cluster/audit"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/naming"
	"parley/internal/report"
	"parley/lockstep"
	"parley/run"
	"parley/trace"
)

// Nodes are the traces of nodes.
type Nodes struct {
	protocols []parley.Protocol
	traces    []trace.Trace
}

// Of reports whether a header belongs to the trace of a node.
func Of(h trace.Header) bool { return h.Node != nil && h.Node.Self != trace.Merged }

// New returns the traces of nodes, whose machines run protocols of the list, of groups, or of streams.
func New(protocols []parley.Protocol, traces []trace.Trace) (*Nodes, error) {
	for _, t := range traces {
		if !Of(t.Header) {
			return nil, fmt.Errorf("%s: it is not the trace of a node: name it alone", t.Place())
		}
	}
	return &Nodes{protocols, slices.SortedStableFunc(slices.Values(traces), inOrder)}, nil
}

// Traces returns the traces of a machine.
func (n *Nodes) Traces(machine string) []trace.Trace {
	return slices.DeleteFunc(slices.Clone(n.traces), func(t trace.Trace) bool { return t.Header.Node.Machine != machine })
}

// Machines returns the names of the machines, sorted.
func (n *Nodes) Machines() []string {
	all := make(map[string]bool)
	for _, t := range n.traces {
		all[t.Header.Node.Machine] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Shown is a machine, or one slot of it, as a run.
type Shown struct {
	Run     form.Run
	Header  trace.Header
	Log     *trace.Log
	Report  *report.Report
	Machine string
	Slot    uint64 // 0: the machine is no stream of agreements
	// First and Last are the numbers of the first and the last slot that a node decided.
	First, Last uint64
	// Notes say of a process whether its own trace counts; empty means yes.
	Notes   []string
	Missing []string // what the traces lack
	// Unjudged is why there are no verdicts, or "".
	Unjudged string

	traces []trace.Trace // of the machine
}

// ErrUndecided is the error if the slot is not given and no slot is decided.
var ErrUndecided = errors.New("no slot is decided in these traces: name one with --slot")

// Show shows a machine. It may be empty if there is only one. Slot 0 means the lowest slot in which a process decided.
func (n *Nodes) Show(machine string, slot uint64) (*Shown, error) {
	if all := n.Machines(); machine == "" && len(all) == 1 {
		machine = all[0]
	} else if machine == "" {
		return nil, parley.FlagErrorf("machine", "the traces come from %d machines: name one of %s", len(all),
			strings.Join(all, ", "))
	} else if !slices.Contains(all, machine) {
		return nil, parley.FlagErrorf("machine", "no trace comes from the machine %q: allowed are %s", machine,
			strings.Join(all, ", "))
	}
	o := audit.Options{Protocol: audit.Protocols(n.protocols, Naming)}
	c, err := one(n.Traces(machine), o)
	if err != nil {
		return nil, err
	}
	s := &Shown{Header: c.Header, Log: c.Log, Machine: machine, traces: n.Traces(machine)}
	s.Run = form.Run{Names: naming.Article, Spec: run.Spec{
		Protocol: c.Protocol, Faulty: make(map[parley.ID]faulty.Behavior),
	}}
	for _, t := range n.Traces(machine) {
		if node := t.Header.Node; node.Lies != "" {
			s.Run.Faulty[parley.ID(node.Self)] = faulty.Behavior{Name: node.Lies, Model: parley.SignedByzantineFaults}
		}
	}
	s.Run.Protocol.Tree = nil // the events of one slot do not reproduce its machines
	if c.Kind == "" && slot != 0 {
		return nil, parley.FlagErrorf("slot", "%s is not a stream of agreements: omit the flag", machine)
	} else if c.Kind != "" {
		if s.Log, s.Slot, err = s.ofSlot(c.Log, slot); err != nil {
			return nil, err
		}
		if o.Slot = s.Slot; c.Kind == "slots" {
			if c, err = one(n.Traces(machine), o); err != nil {
				return nil, err
			}
		}
	}
	s.describe(c)
	return s, nil
}

// one audits the traces of one machine. Traces of several clusters do not belong together.
func one(traces []trace.Trace, o audit.Options) (*audit.Channel, error) {
	all, err := audit.Audit(traces, o)
	if err == nil && len(all) > 1 {
		_, err = trace.Merge(traces, trace.Merging{}) // which says why
		err = cmp.Or(err, errors.New("the traces do not belong together"))
	}
	if err != nil {
		return nil, err
	}
	return &all[0], nil
}

// describe fills in the report, and what the traces lack.
func (s *Shown) describe(c *audit.Channel) {
	for id := range parley.ID(c.Header.N) {
		note := ""
		switch {
		case c.Liars.Has(id):
			note = "as the others heard it"
		case c.Absent.Has(id):
			note = "without a trace"
		}
		s.Notes = append(s.Notes, note)
	}
	if c.Incomplete != nil {
		s.Missing = strings.Split(c.Incomplete.Error(), "\n")
	}
	s.Report = report.New(s.Run, s.Log, c.Header.Facts)
	var verdicts []parley.Verdict
	for _, v := range c.Verdicts {
		// Every link is watched in every run, so that it failed is worth a line, and that it did not is not.
		if v.Property.Name != "links" || v.Violated > 0 {
			verdicts = append(verdicts, v.Whole())
		}
	}
	if c.Kind != "" && c.Instances == 0 {
		s.Unjudged = "not judged: a trace ends before the agreement had time to end"
	}
	s.Report.Rule(verdicts)
}

// Heading says whose traces are shown.
func (s *Shown) Heading() string {
	text := s.Machine
	if s.Slot > 0 {
		text = fmt.Sprintf("slot %d of %s", s.Slot, text)
	}
	if cluster := s.Header.Node.Cluster; cluster != "" {
		text += " of cluster " + cluster
	}
	var who []string
	for id, note := range s.Notes {
		id := parley.ID(id)
		one := naming.Article.Full(id) + " is " + s.Header.Name(id)
		if note != "" {
			one += ", " + note
		}
		who = append(who, one)
	}
	text += ": " + strings.Join(who, "; ")
	if len(s.Missing) > 0 {
		text += "\nnot complete: " + strings.Join(s.Missing, ", ")
	}
	if s.Unjudged != "" {
		text += "\n" + s.Unjudged
	}
	return text
}

// ofSlot returns the events of one slot of a stream of agreements. Slot 0 means the lowest slot in which a process
// decided.
func (s *Shown) ofSlot(log *trace.Log, slot uint64) (*trace.Log, uint64, error) {
	for _, e := range log.Events {
		if e.Op == trace.Deliver && e.Msg.Kind == parley.Decide {
			s.Last = max(s.Last, e.Msg.Seq)
			if s.First == 0 || e.Msg.Seq < s.First {
				s.First = e.Msg.Seq
			}
		}
	}
	if slot == 0 {
		if slot = s.First; slot == 0 {
			return nil, 0, ErrUndecided
		}
	}
	asked := make(map[uint64]bool) // the requests that the slot decides
	for _, e := range log.Events {
		if e.Op == trace.Deliver && e.Msg.Kind == parley.Decide && e.Msg.Seq == slot && e.Msg.Value != 0 {
			asked[e.Msg.Value] = true
		}
	}
	out := Part(log, func(e *trace.Event) bool {
		return e.Op == trace.Request && asked[e.Msg.Value] || e.Op == trace.Deliver && e.Msg.Seq == slot ||
			e.Msg.Kind == lockstep.Frame && e.Msg.Value == slot
	})
	if out.Len() == 0 {
		return nil, 0, parley.FlagErrorf("slot", "these traces have no slot %d: omit the flag for the first "+
			"that was decided", slot)
	}
	return out, slot, nil
}

// Part returns the events of a log for which keep returns true. keep may change them.
func Part(log *trace.Log, keep func(e *trace.Event) bool) *trace.Log {
	part := &trace.Log{Keep: true}
	numbers := make(map[uint64]uint64) // from old to new event numbers
	for _, e := range log.Events {
		if keep(&e) {
			e.Cause = numbers[e.Cause]
			numbers[e.ID] = part.Add(e)
		}
	}
	return part
}

// Naming returns the reader of process names for the arguments of a trace.
func Naming(h trace.Header) parley.Naming {
	k := naming.Article
	if naming.Names(h.Names) == naming.Lecture {
		k = naming.Lecture
	}
	return func(text string) (parley.ID, error) { return k.Parse(text, h.N) }
}
