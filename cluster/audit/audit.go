// Package audit judges a cluster by the traces of its nodes. It reports which properties of the protocols held, and
// which properties were promised under the conditions of the run.
//
// Only the traces of correct nodes count as evidence. These traces also show what faulty nodes sent, because correct
// nodes record the messages that they receive. If a trace is incomplete, the audit judges the recorded part, and
// reports that the trace is incomplete.
package audit

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cluster/protocols"
	"parley/lockstep"
	"parley/trace"
)

// Options configure an audit.
type Options struct {
	// Faulty are the names of possibly faulty nodes, in addition to those whose traces say so.
	Faulty []string
	// Crashed are the names of nodes that count as crashed, whatever their traces say.
	Crashed []string
	// Protocol recreates the protocol of a trace from its header.
	Protocol func(h trace.Header) (parley.Protocol, error)
	// Settle is a duration before the end of the correct node that ends first. A request that begins within this
	// duration need not have reached all nodes. The default is 500 ms.
	Settle time.Duration
	// Slot is the only slot that is judged of a stream of agreements on the values of one source; 0 means all.
	Slot uint64
}

// Channel is the verdict on one machine at all nodes.
type Channel struct {
	Cluster  string
	Machine  string
	Protocol parley.Protocol // of one instance, if there are several
	Header   trace.Header    // of the merged trace
	Log      *trace.Log      // merged, of all nodes
	// Liars are the faulty nodes. Absent are the correct nodes without a trace. Crashed are the nodes that ended before
	// the others. Held are the nodes that missed a deadline and abstained.
	Liars, Absent, Crashed, Held parley.Set
	// Incomplete says what is missing; nil: nothing.
	Incomplete error
	// Lost is how many messages between correct nodes were lost.
	Lost uint64
	// Instances is the number of judged instances. Kind names the kind of instances, such as slots. Unjudged is how
	// many instances were in flight when the traces ended. Kind is empty if the machine is a single instance.
	Kind      string
	Instances int
	Unjudged  int
	// Deliveries is how many deliveries of a machine that is a single instance were judged.
	Deliveries int
	Verdicts   []Verdict
}

// Verdict is the verdict on one property in all instances.
type Verdict struct {
	parley.Verdict // combined: Broken is of the first instance in which the property was violated or broken
	// Promised counts the instances in which the property was promised. Violated counts the instances in which it was
	// promised and did not hold. Broken counts the instances in which it was not promised and did not hold.
	Promised, Violated, Broken int
	// Idle counts the instances in which the property required nothing. No other count includes them.
	Idle int
	// Spared is the first reason for which it was not promised in an instance.
	Spared string
}

// Whole returns the verdict on all instances together. Broken is nil if the property broke only where it was not
// promised, and was promised elsewhere.
func (v Verdict) Whole() parley.Verdict {
	one := v.Verdict
	one.Promise.Holds = v.Promised > 0
	if !one.Promise.Holds {
		one.Promise.Because = v.Spared
	}
	if v.Violated == 0 && v.Promised > 0 {
		one.Broken = nil
	}
	return one
}

// Violated reports whether any promised property was violated.
func (c *Channel) Violated() bool {
	return slices.ContainsFunc(c.Verdicts, func(v Verdict) bool { return v.Violated > 0 })
}

// Name returns the name of a node.
func (c *Channel) Name(id parley.ID) string { return c.Header.Name(id) }

// Audit judges each machine of the traces, at all nodes together. It returns an error if the traces are invalid.
// Violations are no errors, but verdicts.
func Audit(traces []trace.Trace, o Options) ([]Channel, error) {
	o.Settle = cmp.Or(o.Settle, time.Second/2)
	type key struct {
		cluster string
		channel uint32
		machine string
	}
	groups := make(map[key][]trace.Trace)
	var order []key
	for _, t := range traces {
		node := t.Header.Node
		if node == nil || node.Self == trace.Merged {
			return nil, fmt.Errorf("%s: it is not the trace of a node", t.Name)
		}
		k := key{node.Cluster, node.Channel, node.Machine}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], t)
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.channel, b.channel), cmp.Compare(a.machine, b.machine))
	})
	known := make(map[string]bool)
	var out []Channel
	for _, k := range order {
		c, err := one(groups[k], o, known)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for _, name := range o.Faulty {
		if !known[name] {
			return nil, parley.FlagErrorf("faulty", "no trace comes from the node %q: allowed are %s", name,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return out, nil
}

// one judges one machine.
func one(traces []trace.Trace, o Options, known map[string]bool) (Channel, error) {
	h := traces[0].Header
	how := trace.Merging{Grace: o.Settle}
	for id := range parley.ID(h.N) {
		known[h.Name(id)] = true
		if slices.Contains(o.Faulty, h.Name(id)) {
			how.Liars.Add(id)
		}
	}
	w, err := trace.Merge(traces, how)
	if err != nil {
		return Channel{}, err
	}
	if strings.HasPrefix(h.Node.Machine, "agree/") && !agrees(w) {
		w.Absent = parley.Set{} // such machines start on demand, and a liar may demand it of some nodes only
	}
	e := newEvidence(w, o)
	c := Channel{
		Cluster: h.Node.Cluster, Machine: h.Node.Machine, Header: w.Header, Log: w.Log, Liars: w.Liars, Absent: w.Absent,
		Incomplete: w.Complete(), Lost: w.Lost,
	}
	last, slots, err := c.find(h, o)
	if err != nil {
		return c, fmt.Errorf("%s: %w", traces[0].Name, err)
	}
	e.p, e.last = c.Protocol, last
	e.absences = findAbsences(w, last, e.round)
	switch {
	case slots && strings.HasSuffix(h.Node.Machine, "/all"):
		nameJudge{evidence: e}.judge(&c)
	case slots:
		slotJudge{evidence: e}.judge(&c)
	default:
		wholeJudge{e}.judge(&c)
	}
	c.Crashed, c.Held = e.crashed, e.held
	c.Verdicts = append(c.Verdicts, e.links())
	return c, nil
}

// agrees reports whether a correct node sent a frame in a slot: then all nodes receive it.
func agrees(w *trace.MergedTrace) bool {
	return slices.ContainsFunc(w.Log.Events, func(e trace.Event) bool {
		return e.Op == trace.Send && e.Msg.Kind == lockstep.Frame && !w.Liars.Has(e.At)
	})
}

// find recreates the protocol. For a stream of agreements it is the protocol of one slot.
func (c *Channel) find(h trace.Header, o Options) (last int, slots bool, err error) {
	var known bool
	if c.Protocol, last, slots = protocols.OfSlot(h); slots {
		return last, true, nil
	}
	if c.Protocol, known = protocols.OfGroup(h); !known {
		if c.Protocol, err = o.Protocol(h); err != nil {
			return 0, false, err
		}
	}
	if c.Protocol.N != h.N {
		return 0, false, fmt.Errorf("a protocol of %d processes in a trace of %d", c.Protocol.N, h.N)
	}
	return 0, false, nil
}

// Protocols returns a function for [Options] that recreates protocols by their names and arguments in headers. A
// machine whose header names no protocol gets one without properties.
func Protocols(all []parley.Protocol, naming func(h trace.Header) parley.Naming,
) func(trace.Header) (parley.Protocol, error) {
	return func(h trace.Header) (parley.Protocol, error) {
		if h.Protocol == "" {
			return parley.Protocol{Name: h.Node.Machine, Title: "of which nothing is known", N: h.N, M: h.M}, nil
		}
		i := slices.IndexFunc(all, func(p parley.Protocol) bool { return p.Name == h.Protocol })
		if i < 0 || all[i].Flags == nil {
			return parley.Protocol{}, fmt.Errorf("there is no protocol %q", h.Protocol)
		}
		fs := flag.NewFlagSet(h.Protocol, flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		build := all[i].Flags(fs)
		for _, arg := range h.Args {
			name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if strings.HasPrefix(arg, "--") && fs.Lookup(name) != nil {
				if err := fs.Set(name, value); err != nil {
					return parley.Protocol{}, &parley.FlagError{Flag: name, Err: err}
				}
			}
		}
		return build(naming(h))
	}
}

// links returns the verdict on the links: every message that a correct node recorded as received from another
// correct node, that node recorded as sent.
func (e *evidence) links() Verdict {
	v := Verdict{Promised: 1, Verdict: parley.Verdict{
		Property: parley.Property{Name: "links", Says: "what a correct process receives of another one was sent by it"},
		Promise: parley.Promise{
			Property: "links", Holds: true, Because: "each link knows who is at its other end, and keeps what is sent whole",
		},
	}}
	if unsent := len(e.w.Unsent); unsent > 0 {
		event := e.w.Log.Events[e.w.Unsent[0]-1]
		v.Violated = 1
		v.Verdict.Broken = fmt.Errorf("%s received what %s did not send (event %d; %d such)",
			e.h.Name(event.At), e.h.Name(event.Peer), event.ID, unsent)
	}
	return v
}

// tally adds the verdicts on one instance.
func tally(all []Verdict, judged []parley.Verdict, where string) []Verdict {
	for i, v := range judged {
		if i == len(all) {
			all = append(all, Verdict{Verdict: v})
			all[i].Verdict.Broken, all[i].Promise.Holds = nil, false
		}
		sum := &all[i]
		if v.Outcome() == parley.NotApplicable {
			sum.Idle++
			continue
		}
		sum.Vacuous = ""
		if v.Broken != nil && where != "" {
			v.Broken = fmt.Errorf("%s: %w", where, v.Broken)
		}
		switch first := sum.Violated+sum.Broken == 0; {
		case v.Promise.Holds:
			if sum.Promised++; sum.Promised == 1 {
				sum.Promise = v.Promise
			}
			if v.Broken != nil {
				if sum.Violated++; sum.Violated == 1 {
					sum.Verdict.Broken = v.Broken
				}
			}
		default:
			if sum.Spared == "" {
				sum.Spared = v.Promise.Because
			}
			if v.Broken != nil {
				if sum.Broken++; first {
					sum.Verdict.Broken = v.Broken
				}
			}
		}
	}
	return all
}
