package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/catalog"
	"parley/cluster/audit"
	"parley/trace"
)

// traces reads the traces of four nodes, of which the first is two-faced: those of a Byzantine order, or of a
// stream of agreements.
func traces(t *testing.T, machine string) []trace.Trace {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "traces", machine+".*"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	var all []trace.Trace
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		some, err := trace.ReadAll(filepath.Base(file), bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// judged audits the traces of one machine.
func judged(t *testing.T, all []trace.Trace, o audit.Options) audit.Channel {
	t.Helper()
	o.Protocol = audit.Protocols(catalog.All(), func(trace.Header) parley.Naming { return nil })
	list, err := audit.Audit(all, o)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

// changed returns the traces with the events of one node changed by edit.
func changed(all []trace.Trace, node int, edit func(events []trace.Event) []trace.Event) []trace.Trace {
	out := slices.Clone(all)
	for i := range out {
		if out[i].Header.Node.Self == node {
			log := &trace.Log{Keep: true, Until: out[i].Log.Until}
			for _, e := range edit(slices.Clone(out[i].Log.Events)) {
				log.Add(e)
			}
			out[i].Log = log
		}
	}
	return out
}

// deliveries returns the indices of the deliveries of a kind.
func deliveries(events []trace.Event, kind parley.Kind) (at []int) {
	for i, e := range events {
		if e.Op == trace.Deliver && e.Msg.Kind == kind {
			at = append(at, i)
		}
	}
	return at
}

// violated returns the names of the promised and violated properties.
func violated(c audit.Channel) string {
	var out []string
	for _, v := range c.Verdicts {
		if v.Violated > 0 {
			out = append(out, v.Property.Name)
		}
	}
	return strings.Join(out, ", ")
}

// The audit confirms the properties that held, and detects each way in which a correct node can violate a
// property. The trace of a faulty node may contain anything.
func TestAudit(t *testing.T) {
	honest := func(events []trace.Event) int { // the first delivery of a correct node
		return slices.IndexFunc(events, func(e trace.Event) bool { return e.Op == trace.Deliver && e.Peer != 0 })
	}
	without := func(events []trace.Event) []trace.Event {
		at := honest(events)
		return slices.Delete(events, at, at+1)
	}
	swapped := func(events []trace.Event) []trace.Event {
		at := deliveries(events, parley.Carried)
		i, k := at[2], at[3]
		events[i].Msg, events[k].Msg = events[k].Msg, events[i].Msg
		events[i].Peer, events[k].Peer = events[k].Peer, events[i].Peer
		return events
	}
	twice := func(events []trace.Event) []trace.Event {
		at := honest(events)
		return slices.Insert(events, at, events[at])
	}
	invented := func(events []trace.Event) []trace.Event {
		at := deliveries(events, parley.Carried)
		e := events[at[0]]
		e.Msg.Body, e.Peer, e.Msg.Origin = []byte("nobody said so"), 2, 2
		return slices.Insert(events, at[len(at)-1], e)
	}
	unsent := func(events []trace.Event) []trace.Event {
		i := slices.IndexFunc(events, func(e trace.Event) bool { return e.Op == trace.Receive && e.Peer == 2 })
		return slices.Insert(events, i, events[i])
	}
	decision := func(events []trace.Event) []trace.Event {
		at := deliveries(events, parley.Decide)[0]
		events[at].Msg.Body = []byte("other")
		return events
	}
	nothing := func(events []trace.Event) []trace.Event { // like a node that decided on no value
		at := deliveries(events, parley.Decide)[0]
		return slices.Delete(events, at, at+1)
	}
	again := func(events []trace.Event) []trace.Event {
		at := deliveries(events, parley.Decide)[0]
		return slices.Insert(events, at, events[at])
	}
	same := func(events []trace.Event) []trace.Event { return events }
	order, agree := "group-order", "agree-eig-1-1"
	for name, c := range map[string]struct {
		machine string
		node    int
		edit    func([]trace.Event) []trace.Event
		want    string
	}{
		"as it was":                         {order, 3, same, ""},
		"agreements as they were":           {agree, 3, same, ""},
		"a delivery that lacks":             {order, 3, without, "validity, agreement"},
		"another order":                     {order, 3, swapped, "total order"},
		"delivered twice":                   {order, 3, twice, "integrity of correct senders"},
		"delivered and not broadcast":       {order, 3, invented, "agreement, integrity of correct senders"},
		"received and not sent":             {order, 3, unsent, "links"},
		"a liar's deliveries":               {order, 0, without, ""},
		"a liar's order":                    {order, 0, swapped, ""},
		"another decision":                  {agree, 3, decision, "agreement, validity"},
		"no value decided on":               {agree, 3, nothing, "agreement, validity"},
		"a decision told twice":             {agree, 3, again, "integrity"},
		"the source's own decision":         {agree, 1, decision, "agreement, validity"},
		"received and not sent, in a round": {agree, 3, unsent, "links"},
	} {
		got := judged(t, changed(traces(t, c.machine), c.node, c.edit), audit.Options{})
		if have := violated(got); have != c.want || got.Incomplete != nil {
			t.Errorf("%s: violated is %q, not %q; %v\n%+v", name, have, c.want, got.Incomplete, got.Verdicts)
		}
	}
}

// Missing knowledge is not a violation: a trace that is missing, has gaps, or ends early. It is not reported as
// complete, and the evidence of the other traces still counts.
func TestIncomplete(t *testing.T) {
	cut := func(all []trace.Trace, node, left int) []trace.Trace {
		all = changed(all, node, func(events []trace.Event) []trace.Event { return events[:left] })
		for i := range all {
			if all[i].Header.Node.Self == node {
				all[i].Log.Broken, all[i].Log.Until = true, 0
			}
		}
		return all
	}
	for _, machine := range []string{"group-order", "agree-eig-1-1"} {
		all := traces(t, machine)
		for _, left := range []int{1, 5, 10, 20} {
			if c := judged(t, cut(all, 3, left), audit.Options{}); c.Incomplete == nil || violated(c) != "" {
				t.Errorf("%s cut at %d: %v, violated %s", machine, left, c.Incomplete, violated(c))
			}
		}
		for node := range 4 {
			rest := slices.DeleteFunc(slices.Clone(all), func(one trace.Trace) bool { return one.Header.Node.Self == node })
			if c := judged(t, rest, audit.Options{}); c.Incomplete == nil || violated(c) != "" {
				t.Errorf("%s without %d: %v, violated %s", machine, node, c.Incomplete, violated(c))
			}
		}
		gap := changed(all, 2, func(events []trace.Event) []trace.Event { return slices.Delete(events, 10, 20) })
		for i := range gap {
			if gap[i].Header.Node.Self == 2 {
				gap[i].Log.Gaps = []trace.Gap{{After: 10, Events: 10}}
			}
		}
		if c := judged(t, gap, audit.Options{}); c.Incomplete == nil || violated(c) != "" {
			t.Errorf("%s with a gap: %v, violated %s", machine, c.Incomplete, violated(c))
		}
	}
	both := changed(traces(t, "agree-eig-1-1"), 3, func(events []trace.Event) []trace.Event {
		at := deliveries(events, parley.Decide)[0]
		events[at].Msg.Body = []byte("other")
		return events
	})
	rest := slices.DeleteFunc(both, func(one trace.Trace) bool { return one.Header.Node.Self == 0 })
	if c := judged(t, rest, audit.Options{}); c.Incomplete == nil || violated(c) == "" {
		t.Errorf("a wrong decision and no trace of another node: %v, violated %q", c.Incomplete, violated(c))
	}
}

// A stream of agreements that a faulty node has started at some nodes, and in which no correct node has sent
// anything, need not be known to all.
func TestHeardOf(t *testing.T) {
	all := traces(t, "agree-eig-1-1")
	for node := range 4 {
		all = changed(all, node, func(events []trace.Event) []trace.Event { return events[:1] })
	}
	rest := slices.DeleteFunc(all, func(one trace.Trace) bool { return one.Header.Node.Self == 3 })
	if c := judged(t, rest, audit.Options{}); c.Incomplete != nil {
		t.Error(c.Incomplete)
	}
}

// A node that abstained from an agreement counts as faulty; with more than m faulty nodes, nothing is promised. An order
// does not excuse a node that is late.
func TestHeldUp(t *testing.T) {
	late := func(events []trace.Event) []trace.Event {
		i := slices.IndexFunc(events, func(e trace.Event) bool { return e.Op == trace.Deliver })
		e := events[i]
		e.Op, e.Msg = trace.Refuse, parley.Msg{Body: []byte("woke too late: abstains")}
		rest := slices.DeleteFunc(events[i:], func(e trace.Event) bool { return e.Op == trace.Deliver })
		return slices.Concat(events[:i], []trace.Event{e}, rest)
	}
	c := judged(t, changed(traces(t, "agree-eig-1-1"), 3, late), audit.Options{})
	if violated(c) != "" || !c.Held.Has(3) {
		t.Errorf("an agreement: violated %s, held up %v", violated(c), c.Held)
	}
	spared := slices.ContainsFunc(c.Verdicts, func(v audit.Verdict) bool { return strings.Contains(v.Spared, "are faulty") })
	if !spared {
		t.Errorf("an agreement: %+v", c.Verdicts)
	}
	c = judged(t, changed(traces(t, "group-order"), 3, late), audit.Options{})
	if violated(c) != "validity, agreement" || c.Held != (parley.Set{}) {
		t.Errorf("an order: violated %s, held up %v", violated(c), c.Held)
	}
}

// A node named as faulty must be in the traces, and traces that are not of a node are refused.
func TestAuditRefuses(t *testing.T) {
	o := audit.Options{Faulty: []string{"node9"}, Settle: time.Second}
	o.Protocol = audit.Protocols(nil, nil)
	all := traces(t, "agree-eig-1-1")
	if _, err := audit.Audit(all, o); err == nil || !strings.Contains(err.Error(), `no trace comes from the node "node9"`) {
		t.Error(err)
	}
	o.Faulty = nil
	all[0].Header.Node = nil
	if _, err := audit.Audit(all, o); err == nil || !strings.Contains(err.Error(), "not the trace of a node") {
		t.Error(err)
	}
	one := traces(t, "agree-eig-1-1")[1:2]
	one[0].Header.Node.Machine, one[0].Header.Protocol = "other", "none"
	if _, err := audit.Audit(one, o); err == nil || !strings.Contains(err.Error(), `no protocol "none"`) {
		t.Error(err)
	}
}
