package traces

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/cli/console"
	"parley/cli/show"
	"parley/cluster"
	"parley/cluster/audit"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/naming"
	"parley/internal/report"
	"parley/lockstep"
	"parley/run"
	"parley/trace"
)

// namingOf returns the reader of process names for the arguments of a trace.
func namingOf(h trace.Header) parley.Naming {
	k := naming.Article
	if naming.Names(h.Names) == naming.Lecture {
		k = naming.Lecture
	}
	return func(text string) (parley.ID, error) { return k.Parse(text, h.N) }
}

// nodeFlags select what is shown of traces of nodes.
type nodeFlags struct {
	machine string
	slot    uint64
}

// showNodes shows the traces of nodes, of one machine, as one trace.
func showNodes(a *console.App, traces []trace.Trace, view show.Flags, f nodeFlags) error {
	mine, err := ofMachine(traces, f.machine)
	if err != nil {
		return err
	}
	w, err := trace.Merge(mine, trace.Merging{})
	if err != nil {
		return err
	}
	s := form.Run{Names: naming.Article, Spec: run.Spec{Faulty: make(map[parley.ID]faulty.Behavior)}}
	for _, t := range mine {
		if node := t.Header.Node; node.Lies != "" {
			s.Faulty[parley.ID(node.Self)] = faulty.Behavior{Name: node.Lies, Model: parley.SignedByzantineFaults}
		}
	}
	log := w.Log
	var ok bool
	if s.Protocol, _, ok = cluster.SlotProtocol(w.Header); ok {
		if log, f.slot, err = ofSlot(log, f.slot); err != nil {
			return err
		}
	} else if f.slot != 0 {
		return parley.FlagErrorf("slot", "%s is not a stream of agreements: omit the flag", w.Header.Node.Machine)
	} else if s.Protocol, ok = cluster.GroupProtocol(w.Header); !ok {
		if s.Protocol, err = audit.Protocols(a.Protocols, namingOf)(w.Header); err != nil {
			return err
		}
	}
	s.Protocol.Tree = nil // the events of one slot do not reproduce its machines
	return show.Print(a, report.New(s, log, w.Header.Facts), log, view, nodesHeading(w, f.slot), "")
}

// nodesHeading says whose traces are shown.
func nodesHeading(w *trace.MergedTrace, slot uint64) string {
	node := w.Header.Node
	text := node.Machine
	if slot > 0 {
		text = fmt.Sprintf("slot %d of %s", slot, text)
	}
	if node.Cluster != "" {
		text += " of cluster " + node.Cluster
	}
	var who []string
	for id := range parley.ID(w.Header.N) {
		one := naming.Article.Full(id) + " is " + w.Header.Name(id)
		switch {
		case w.Liars.Has(id):
			one += ", as the others heard it"
		case w.Absent.Has(id):
			one += ", without a trace"
		}
		who = append(who, one)
	}
	text += ": " + strings.Join(who, "; ")
	if err := w.Complete(); err != nil {
		text += "\nnot complete: " + strings.ReplaceAll(err.Error(), "\n", ", ")
	}
	return text
}

// ofMachine returns the traces of one machine. If there are several machines, the name must be given.
func ofMachine(traces []trace.Trace, machine string) ([]trace.Trace, error) {
	all := make(map[string][]trace.Trace)
	for _, t := range traces {
		if t.Header.Node == nil || t.Header.Node.Self == trace.Merged {
			return nil, fmt.Errorf("%s: it is not the trace of a node: name it alone", t.Name)
		}
		all[t.Header.Node.Machine] = append(all[t.Header.Node.Machine], t)
	}
	names := strings.Join(slices.Sorted(maps.Keys(all)), ", ")
	if machine == "" && len(all) == 1 {
		return traces, nil
	}
	if len(all[machine]) == 0 {
		return nil, parley.FlagErrorf("machine", "no trace comes from the machine %q: allowed are %s", machine, names)
	}
	return all[machine], nil
}

// ofSlot returns the events of one slot of a stream of agreements. Slot 0 means the lowest slot in which a process
// decided.
func ofSlot(log *trace.Log, slot uint64) (*trace.Log, uint64, error) {
	if slot == 0 {
		for _, e := range log.Events {
			if e.Op == trace.Deliver && e.Msg.Kind == parley.Decide && (slot == 0 || e.Msg.Seq < slot) {
				slot = e.Msg.Seq
			}
		}
		if slot == 0 {
			return nil, 0, errors.New("no slot is decided in these traces: name one with --slot")
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
