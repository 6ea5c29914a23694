package live

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/cli/client"
	"parley/trace"
)

// slowly is by how much the traces of the test are slowed down, so that they last for 20 seconds.
const slowly = 3

// groupFacts are the facts about four nodes whose group delivers 32 batches. node1 lies.
func groupFacts(t *testing.T) *facts {
	t.Helper()
	f := &facts{machine: "group/order"}
	for i := range 4 {
		name := client.NodeName(i)
		b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "traces", "group-order."+name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := trace.ReadAll(name, bytes.NewReader(b))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		one := all[0]
		node := *one.Header.Node
		one.Header.Node, node.Recorded = &node, true
		node.Round *= slowly
		for k := range one.Log.Events {
			one.Log.Events[k].Time *= slowly
		}
		one.Log.Until *= slowly
		f.nodes = append(f.nodes, nodeFacts{Node: client.Node{Name: name}, managed: true, alive: true, joined: true, starts: 1})
		f.found = append(f.found, found{asked: true, status: connected(name, "node1", "node2", "node3", "node4"), tail: []trace.Trace{one}})
		f.began = time.Unix(0, node.Began)
	}
	f.now = f.began.Add(20 * time.Second)
	return f
}

// outcomesOf returns the verdicts as "property outcome".
func outcomesOf(r Ruling) (all []string) {
	for _, v := range r.Verdicts {
		all = append(all, v.Property+" "+v.Outcome)
	}
	return all
}

// deliveries returns the deliveries of a node, to be changed.
func (f *facts) deliveries(node int) (all []*trace.Event) {
	events := f.found[node].tail[0].Log.Events
	for i := range events {
		if events[i].Op == trace.Deliver {
			all = append(all, &events[i])
		}
	}
	return all
}

// The audit judges the last seconds: deliveries that agree hold, and deliveries in another order do not.
func TestRuling(t *testing.T) {
	f := groupFacts(t)
	r := f.judge()
	if want := []string{"validity held", "agreement held", "total order held", "integrity of correct senders held"}; !slices.Equal(outcomesOf(r), want) ||
		!strings.HasSuffix(r.Judged, "in the last seconds, at node1, node2, node3 and node4") || r.Why != "" {
		t.Fatalf("got %q, %q, %q, want %q", outcomesOf(r), r.Judged, r.Why, want)
	}
	all := f.deliveries(2)
	last := all[len(all)-1]
	for _, one := range slices.Backward(all[:len(all)-1]) {
		if !bytes.Equal(one.Msg.Body, last.Msg.Body) && one.Msg.Origin != 0 && last.Msg.Origin != 0 {
			one.Msg, last.Msg = last.Msg, one.Msg
			break
		}
	}
	if r = f.judge(); !slices.Contains(outcomesOf(r), "total order VIOLATED") {
		t.Errorf("another order: %q", outcomesOf(r))
	}
}

// A node that something happened to is not judged, and its missing deliveries are no violation.
func TestRulingOfDisturbed(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(f *facts)
		at      string // of the nodes that are judged; empty: none
	}{
		"killed": {func(f *facts) {
			f.nodes[3].alive, f.nodes[3].killed, f.found[3].asked = false, true, false
			log := f.found[3].tail[0].Log
			log.Events = log.Events[:len(log.Events)/2]
		}, "node1, node2 and node3"},
		"just before": {func(f *facts) {
			for i := range f.found { // only their last seconds are known
				log := f.found[i].tail[0].Log
				log.Events = slices.DeleteFunc(log.Events, func(e trace.Event) bool { return e.Time < 8e9 })
				log.Events = slices.Insert(log.Events, 0, trace.Event{Op: trace.Timeout, At: parley.ID(i), Time: 8e9})
				log.Until = 17.5e9
			}
			f.nodes[3].marks = []mark{{f.now.Add(-time.Second), trace.Pause}}
		}, "node1, node2 and node3"},
		"paused":       {func(f *facts) { f.nodes[3].marks = []mark{{f.now.Add(-3 * time.Second), trace.Pause}} }, "node1, node2 and node3"},
		"long ago":     {func(f *facts) { f.nodes[3].marks = []mark{{f.began.Add(-time.Hour), trace.Restart}} }, "node1, node2, node3 and node4"},
		"cut off":      {func(f *facts) { f.cuts = []cut{{a: 2, b: 3, from: f.began}} }, "node1 and node2"},
		"in trouble":   {func(f *facts) { f.found[3].status.Ready = false }, "node1, node2 and node3"},
		"cut off, all": {func(f *facts) { f.cuts = []cut{{a: 2, b: 3, from: f.began}, {a: 0, b: 1, from: f.began}} }, ""},
		"another view": {func(f *facts) {
			events := f.found[3].tail[0].Log.Events
			events[len(events)-1] = trace.Event{ID: events[len(events)-1].ID, Time: events[len(events)-1].Time, At: 3, Op: trace.Indicate,
				Msg: parley.Msg{Kind: parley.View}}
		}, "node1, node2 and node3"},
	} {
		f := groupFacts(t)
		c.disturb(f)
		r := f.judge()
		for _, v := range r.Verdicts {
			if v.Outcome == parley.Violated {
				t.Errorf("%s: %+v", name, v)
			}
		}
		if judged := strings.HasSuffix(r.Judged, ", at "+c.at); c.at != "" && !judged || c.at == "" && r.Why == "" {
			t.Errorf("%s: judged %q, %q, want %s", name, r.Judged, r.Why, c.at)
		}
	}
}

// Nothing that was asked, nothing that is judged.
func TestRulingOfNothing(t *testing.T) {
	f := groupFacts(t)
	for i := range f.found {
		log := f.found[i].tail[0].Log
		log.Events = slices.DeleteFunc(log.Events, func(e trace.Event) bool { return e.Op == trace.Request || e.Op == trace.Deliver })
	}
	if r := f.judge(); r.Judged != "" || len(r.Verdicts) > 0 || !strings.HasPrefix(r.Why, "Nothing to judge yet") {
		t.Errorf("%+v", r)
	}
	for i := range f.found {
		f.found[i].tail[0].Header.Node.Machine = "table/x"
		f.found[i].tail[0].Header.Protocol = "none"
	}
	if r := f.judge(); r.Judged != "" || !strings.Contains(r.Why, "groups and agreements only") {
		t.Errorf("%+v", r)
	}
}

// The first agreement of a stream is judged, because the nodes have all events of the stream.
func TestRulingOfFirstAgreement(t *testing.T) {
	f := groupFacts(t)
	for i := range f.found {
		name := client.NodeName(i)
		b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "traces", "agree-eig-1-1."+name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := trace.ReadAll(name, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all[0].Log.Until = 30e9
		f.found[i].tail = all
	}
	r := f.judge()
	want := []string{"agreement held", "validity held", "termination held", "integrity held"}
	if !slices.Equal(outcomesOf(r), want) || !strings.HasPrefix(r.Judged, "2 agreements ") {
		t.Errorf("got %q, %q, %q, want %q", outcomesOf(r), r.Judged, r.Why, want)
	}
}
