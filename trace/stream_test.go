package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/trace"
)

// streamed writes a log through a Stream.
func streamed(t *testing.T, l *trace.Log, o trace.StreamOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	s, err := trace.NewStream(&b, header, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Events {
		s.Add(e)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A trace written while it happens equals one written afterwards.
func TestStream(t *testing.T) {
	for seed := range uint64(20) {
		l := randomLog(seed, 50)
		if have, want := streamed(t, l, trace.StreamOptions{}), written(t, l); !bytes.Equal(have, want) {
			t.Fatalf("seed %d:\n%s\n%s", seed, have, want)
		}
	}
}

// Events are written as package encoding/json would write them.
func TestEventLines(t *testing.T) {
	lines := strings.Split(string(written(t, randomLog(3, 200))), "\n")
	for _, line := range lines[1 : len(lines)-2] {
		var fields struct {
			ID     uint64 `json:"id"`
			Cause  uint64 `json:"cause,omitempty"`
			Time   int64  `json:"t"`
			Op     string `json:"op"`
			At     uint16 `json:"at"`
			Peer   uint16 `json:"peer,omitempty"`
			Epoch  uint32 `json:"epoch,omitempty"`
			Path   uint64 `json:"path,omitempty"`
			Kind   uint8  `json:"kind,omitempty"`
			Origin uint16 `json:"origin,omitempty"`
			Seq    uint64 `json:"seq,omitempty"`
			Value  uint64 `json:"value,omitempty"`
			Body   []byte `json:"body,omitempty"`
		}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if again, err := json.Marshal(fields); err != nil || string(again) != line {
			t.Fatalf("%v\n%s\n%s", err, line, again)
		}
	}
}

// gate is a writer that can be blocked.
type gate struct {
	bytes.Buffer
	sync.Mutex
	fails bool
}

func (g *gate) Write(b []byte) (int, error) {
	g.Lock()
	defer g.Unlock()
	if g.fails {
		return 0, errors.New("disk full")
	}
	return g.Buffer.Write(b)
}

// Dropped events are missing, and the trace says where and how many.
func TestStreamDrops(t *testing.T) {
	l := randomLog(7, 400)
	for name, o := range map[string]trace.StreamOptions{
		"buffer": {Buffer: 5000}, "limit": {Limit: 9000},
	} {
		g := &gate{}
		s, err := trace.NewStream(g, header, o)
		if err != nil {
			t.Fatal(err)
		}
		if name == "buffer" {
			g.Lock()
		}
		for _, e := range l.Events {
			e.Cause = 0 // it is a number, and dropped events have none
			s.Add(e)
		}
		if name == "buffer" {
			g.Unlock()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		all, err := trace.ReadAll(name, &g.Buffer)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		log := all[0].Log
		if log.Dropped() == 0 || log.Len()+log.Dropped() != uint64(len(l.Events)) || log.Dropped() != s.Dropped() {
			t.Errorf("%s: %d events, %d dropped of %d", name, log.Len(), log.Dropped(), len(l.Events))
		}
		if log.Broken {
			t.Errorf("%s: no footer", name)
		}
	}
}

// A trace whose writer fails ends, and a reader finds it without a footer.
func TestStreamFails(t *testing.T) {
	g := &gate{}
	s, err := trace.NewStream(g, header, trace.StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.Lock()
	g.fails = true
	g.Unlock()
	s.Add(trace.Event{Op: trace.Start})
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Error(err)
	}
	if all, err := trace.ReadAll("x", &g.Buffer); err != nil || !all[0].Log.Broken {
		t.Error(all, err)
	}
	if s.Close() != nil {
		t.Error("closed twice")
	}
}

// ReadAll reads a trace whose writer was killed up to its last complete line. Read refuses it.
func TestTorn(t *testing.T) {
	l := randomLog(5, 12)
	whole := written(t, l)
	first := bytes.IndexByte(whole, '\n') + 1
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := first; cut < len(whole)-1; cut++ {
		all, err := trace.ReadAll("x", bytes.NewReader(whole[:cut]))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		lines := bytes.Count(whole[first:min(cut, last)], []byte("\n"))
		if log := all[0].Log; !log.Broken || len(log.Events) != lines ||
			lines > 0 && !reflect.DeepEqual(log.Events, l.Events[:lines]) {
			t.Fatalf("cut at %d: %d events of %d, broken %v", cut, len(log.Events), lines, log.Broken)
		}
		if _, _, err := trace.Read(bytes.NewReader(whole[:cut])); err == nil {
			t.Fatalf("cut at %d: taken for whole", cut)
		}
	}
	if all, err := trace.ReadAll("x", bytes.NewReader(whole[:first-2])); err == nil {
		t.Error("half a header:", all)
	}
}

// A file may hold several traces.
func TestReadAll(t *testing.T) {
	a, b := randomLog(1, 5), randomLog(2, 7)
	both := slices.Concat(written(t, a), written(t, b))
	all, err := trace.ReadAll("x", bytes.NewReader(both))
	if err != nil || len(all) != 2 || all[0].Log.Hash() != a.Hash() || all[1].Log.Hash() != b.Hash() {
		t.Fatal(all, err)
	}
	if _, _, err := trace.Read(bytes.NewReader(both)); err == nil {
		t.Error("Read takes two")
	}
	bad := slices.Concat(written(t, a), []byte("nothing\n"))
	if _, err := trace.ReadAll("x", bytes.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line 8:") {
		t.Error(err)
	}
	changed := bytes.Replace(written(t, a), []byte(`{"end":`), []byte("{\"dropped\":4}\n{\"end\":"), 1)
	if _, err := trace.ReadAll("x", bytes.NewReader(changed)); err == nil {
		t.Error("a gap that nobody speaks of")
	}
}

// A gap is written and read at its place, and so is Cut.
func TestGaps(t *testing.T) {
	l := &trace.Log{Keep: true, Gaps: []trace.Gap{{Events: 3}, {After: 2, Events: 1}}}
	for i := range 2 {
		l.Add(trace.Event{Op: trace.Send, Msg: parley.Msg{Kind: 1, Body: []byte("abc")}, Cut: uint32(i * 7)})
	}
	all, err := trace.ReadAll("x", bytes.NewReader(written(t, l)))
	if err != nil || !reflect.DeepEqual(all[0].Log.Gaps, l.Gaps) || !reflect.DeepEqual(all[0].Log.Events, l.Events) {
		t.Fatal(all, err)
	}
	other := &trace.Log{Keep: true}
	other.Add(l.Events[0])
	changed := l.Events[1]
	changed.Cut = 0
	if other.Add(changed); other.Hash() == l.Hash() {
		t.Error("the hash does not cover what was cut off")
	}
}

func BenchmarkStream(b *testing.B) {
	s, err := trace.NewStream(&discard{}, header, trace.StreamOptions{Buffer: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	e := trace.Event{Op: trace.Receive, At: 1, Peer: 2, Time: 1 << 40, Msg: parley.Msg{Kind: 1, Body: make([]byte, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		s.Add(e)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

type discard struct{}

func (*discard) Write(b []byte) (int, error) { return len(b), nil }
