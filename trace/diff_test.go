package trace_test

import (
	"reflect"
	"slices"
	"testing"

	"parley/trace"
)

// logOf returns a log of the given events.
func logOf(events []trace.Event) *trace.Log {
	l := &trace.Log{Keep: true}
	for _, e := range events {
		l.Add(e)
	}
	return l
}

// changes holds a change of every field of an event, by its name in a file.
var changes = map[string]func(e *trace.Event){
	"op": func(e *trace.Event) { e.Op = e.Op%trace.Resume + 1 }, "t": func(e *trace.Event) { e.Time++ },
	"at": func(e *trace.Event) { e.At++ }, "peer": func(e *trace.Event) { e.Peer++ },
	"cause": func(e *trace.Event) { e.Cause++ }, "epoch": func(e *trace.Event) { e.Epoch++ },
	"path": func(e *trace.Event) { e.Path++ }, "kind": func(e *trace.Event) { e.Msg.Kind++ },
	"origin": func(e *trace.Event) { e.Msg.Origin++ }, "seq": func(e *trace.Event) { e.Msg.Seq++ },
	"value": func(e *trace.Event) { e.Msg.Value++ },
	"body":  func(e *trace.Event) { e.Msg.Body = append(slices.Clone(e.Msg.Body), 0) },
}

// Two traces diverge at the first event that differs in anything, or that is missing from one of them. Equal
// traces do not diverge.
func TestDiff(t *testing.T) {
	l := randomLog(1, 20)
	if p := trace.Diff(l, logOf(l.Events), 3); p != nil {
		t.Fatalf("the same trace parts: %+v", p)
	}
	if p := trace.Diff(&trace.Log{}, &trace.Log{}, 3); p != nil {
		t.Fatalf("nothing parts: %+v", p)
	}
	for name, change := range changes {
		for i := range l.Events {
			events := slices.Clone(l.Events)
			change(&events[i])
			b := logOf(events)
			for _, context := range []int{0, 3, 100} {
				p := trace.Diff(l, b, context)
				want := &trace.Divergence{
					At: uint64(i), Common: l.Events[max(0, i-context):i], Fields: []string{name},
					A: l.Events[i:min(20, i+context+1)], B: b.Events[i:min(20, i+context+1)],
				}
				if !reflect.DeepEqual(p, want) {
					t.Fatalf("%s of event %d, context %d:\nhave %+v\nwant %+v", name, i, context, p, want)
				}
			}
		}
	}
	for i := range l.Events {
		short := logOf(l.Events[:i])
		if p := trace.Diff(l, short, 2); p.At != uint64(i) || len(p.B) > 0 || len(p.A) == 0 || p.Fields != nil {
			t.Fatalf("cut at %d: %+v", i, p)
		}
		if p := trace.Diff(short, l, 2); p.At != uint64(i) || len(p.A) > 0 || p.A == nil && i > 0 || len(p.B) == 0 {
			t.Fatalf("cut at %d: %+v", i, p)
		}
	}
}

// One line says where they diverge.
func TestPartingString(t *testing.T) {
	l := randomLog(1, 5)
	events := slices.Clone(l.Events)
	events[3].Time++
	events[3].Msg.Seq++
	for _, c := range []struct {
		b    []trace.Event
		want string
	}{
		{events, "event 4 differs in t, seq"},
		{l.Events[:2], "the second trace ends after event 2, and the first continues"},
	} {
		if have := trace.Diff(l, logOf(c.b), 1).String(); have != c.want {
			t.Errorf("%s; %s was to be said", have, c.want)
		}
	}
	if have := trace.Diff(logOf(nil), l, 1).String(); have != "the first trace ends after event 0, and the second continues" {
		t.Error(have)
	}
}
