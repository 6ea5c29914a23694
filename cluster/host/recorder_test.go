package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/trace"
)

// recorded makes two machines take steps under a recorder and returns the recorded traces.
func recorded(t *testing.T, size, steps int) []trace.Trace {
	t.Helper()
	return excerpt(t, recording(t, size, steps), host.Excerpt{})
}

// excerpt returns traces of recorded events.
func excerpt(t *testing.T, r *host.Recorder, x host.Excerpt) []trace.Trace {
	t.Helper()
	var b bytes.Buffer
	must(t, r.Dump(&b, x))
	traces, err := trace.ReadAll("flight", &b)
	if errors.Is(err, trace.ErrEmpty) {
		return nil
	}
	must(t, err)
	return traces
}

// recording makes two machines take steps under a recorder.
func recording(t *testing.T, size, steps int) *host.Recorder {
	t.Helper()
	r := host.NewRecorder(size)
	h := host.New(host.Config{N: 1, Recorder: r, Header: func(o host.Options, _ parley.Tick) trace.Header {
		return trace.Header{Protocol: "echo", N: 1, Node: &trace.Node{Machine: o.Name, Channel: o.Channel}}
	}})
	defer h.Close()
	var all []*host.Process
	for i := range uint32(2) {
		p, err := h.Open(host.Options{Channel: i, Name: fmt.Sprintf("echo%d", i), Machine: said{}})
		must(t, err)
		all = append(all, p)
	}
	for k := range steps {
		m := parley.Msg{Kind: parley.Carried, Value: uint64(k), Body: bytes.Repeat([]byte{'a' + byte(k%26)}, k%700)}
		must(t, all[k%2].Request(m))
	}
	return r
}

// An excerpt has the latest events of the chosen machine, and counts the others as dropped.
func TestRecorderExcerpt(t *testing.T) {
	const age = 200 * 365 * 24 * time.Hour // the clocks of these machines began with Unix time
	r := recording(t, host.RecorderSize, 40)
	all := excerpt(t, r, host.Excerpt{})
	for _, c := range []struct {
		x    host.Excerpt
		want string // the machines with the numbers of their events
	}{
		{host.Excerpt{Machine: "echo1"}, fmt.Sprintf("echo1 %d", len(all[1].Log.Events))},
		{host.Excerpt{Most: 3}, "echo0 3, echo1 3"},
		{host.Excerpt{Machine: "echo0", Most: 3, Last: age}, "echo0 3"},
		{host.Excerpt{Machine: "echo2"}, ""},
		{host.Excerpt{Last: time.Hour}, ""},
	} {
		var got []string
		for _, one := range excerpt(t, r, c.x) {
			events := one.Log.Events
			got = append(got, fmt.Sprintf("%s %d", one.Header.Node.Machine, len(events)))
			for i, whole := range all {
				last := whole.Log.Events[len(whole.Log.Events)-1]
				if whole.Header.Node.Machine == one.Header.Node.Machine && (events[len(events)-1].Msg.Value != last.Msg.Value ||
					len(events)+int(one.Log.Dropped()) != len(whole.Log.Events)) {
					t.Errorf("%+v: the events of machine %d are not the last ones", c.x, i)
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%+v: got %q, want %q", c.x, got, c.want)
		}
	}
}

// The recorder keeps the last events of every machine, all of them if there is space, and counts the
// dropped ones.
func TestRecorder(t *testing.T) {
	for _, steps := range []int{1, 2, 3, 40, 41, 500, 5000} {
		for _, size := range []int{0, 10_000, 12_345, 4 << 20} {
			traces := recorded(t, size, steps)
			kept := 0
			for _, one := range traces {
				events, node := one.Log.Events, one.Header.Node
				kept += len(events)
				whole := 1 + (steps+1-int(node.Channel))/2 // including the start
				if !node.Recorded || len(events)+int(one.Log.Dropped()) != whole {
					t.Fatalf("%d bytes, %d steps: of %d events of machine %d %d are there and %d forgotten",
						size, steps, whole, node.Channel, len(events), one.Log.Dropped())
				}
				slices.Reverse(events)
				k := steps - 1
				if k%2 != int(node.Channel) {
					k--
				}
				for _, e := range events {
					want := k % 700
					if e.Op == trace.Start {
						continue
					}
					if e.Op != trace.Request || e.Msg.Value != uint64(k) || len(e.Msg.Body)+int(e.Cut) != want || len(e.Msg.Body) > 256 {
						t.Fatalf("%d bytes, %d steps: event %d of machine %d is %+v", size, steps, k, node.Channel, e)
					}
					k -= 2
				}
			}
			if size == 4<<20 && kept != steps+2 {
				t.Errorf("%d events are kept of %d, though there is room", kept, steps+2)
			}
			if kept < min(steps, 10) {
				t.Errorf("%d bytes, %d steps: %d events", size, steps, kept)
			}
		}
	}
}

func BenchmarkRecorder(b *testing.B) {
	h := host.New(host.Config{N: 1, Recorder: host.NewRecorder(host.RecorderSize),
		Header: func(host.Options, parley.Tick) trace.Header { return trace.Header{N: 1, Node: &trace.Node{}} }})
	defer h.Close()
	p, err := h.Open(host.Options{Machine: said{}})
	must(b, err)
	m := parley.Msg{Kind: parley.Carried, Body: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		must(b, p.Request(m))
	}
}
