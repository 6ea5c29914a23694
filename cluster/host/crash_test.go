package host_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/store"
)

// teller sends each request to all, delivers it, and only then appends it.
type teller struct {
	parley.Base
	log [][]byte
}

func (m *teller) Start(s *parley.Step) {
	for _, r := range s.Log {
		m.log = append(m.log, r.Body)
	}
}

func (m *teller) Request(s *parley.Step, q parley.Msg) {
	s.SendAll(parley.Msg{Kind: 1, Body: q.Body})
	s.Deliver(s.Self, parley.Msg{Kind: parley.Carried, Body: q.Body})
	s.Append(q.Body)
}

func (m *teller) State(v *parley.Vars) {
	v.Durable(func() { parley.Slice(v, "log", &m.log, func(_ int, b *[]byte) { v.Bytes("record", b) }) })
}

// fatal crashes in a step, after some effects, or before the step after it.
type fatal struct {
	step, effects int
	before        bool

	mu    sync.Mutex
	steps int
	times int // the number of crashes
	did   func() string
	seen  string // what had been done at the crash
}

func (f *fatal) Before(parley.Tick) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.before && f.steps == f.step
}

func (f *fatal) Within(_ parley.Tick, effects []parley.Effect) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps++
	return f.effects, !f.before && f.steps == f.step
}

func (f *fatal) Crashed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times++
	f.seen = f.did()
}

// wires records the receivers of sends.
type wires struct {
	mu   sync.Mutex
	list []string
}

func (w *wires) Send(to parley.ID, _ link.Class, _ uint32, _, body []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, fmt.Sprintf("%s to %d", body, to))
	return true
}

func (w *wires) Flush(parley.ID) {}

func (w *wires) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// A machine crashes after any number of effects of a step, records first, or between two steps: the effects
// before the crash are carried out and durable, none of the others is, and the machine takes no further
// step.
func TestCrashWithinStep(t *testing.T) {
	whole := []string{"record a", "a to 1", "a to 2", "0:a"}
	for name, one := range map[string]struct {
		how  *fatal
		want []string
	}{
		"before anything":     {&fatal{step: 2, effects: 0}, nil},
		"after the record":    {&fatal{step: 2, effects: 1}, whole[:1]},
		"between two sends":   {&fatal{step: 2, effects: 2}, whole[:2]},
		"before the delivery": {&fatal{step: 2, effects: 3}, whole[:3]},
		"after all":           {&fatal{step: 2, effects: 9}, whole},
		"between two steps":   {&fatal{step: 2, before: true}, whole},
		"in its start":        {&fatal{step: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crashes(t, one.how, one.want) })
		})
	}
}

func crashes(t *testing.T, how *fatal, want []string) {
	dir := t.TempDir()
	var h *host.Host
	s, err := store.Open(dir, store.Options{Durable: func(upto uint64) { h.Durable(upto) }})
	must(t, err)
	w, u := new(wires), &heard{}
	how.did = func() string { return fmt.Sprint(w.all(), u.all()) }
	h = host.New(host.Config{N: 3, Store: s, Transport: w})
	p, err := h.Open(host.Options{Name: "teller", Machine: new(teller), Upper: u, Crash: how})
	must(t, err)
	for _, body := range []string{"a", "b"} {
		_ = p.Request(parley.Msg{Kind: parley.Carried, Body: []byte(body)}) // it fails after the crash
		synctest.Wait()
	}
	h.Close()
	must(t, s.Close())
	var got []string
	s, err = store.Open(dir, store.Options{})
	must(t, err)
	h = host.New(host.Config{N: 3, Store: s, Transport: w})
	again := new(teller)
	if _, err := h.Open(host.Options{Name: "teller", Machine: again}); err != nil {
		t.Fatal(err)
	}
	for _, record := range again.log {
		got = append(got, "record "+string(record))
	}
	if got = append(append(got, w.all()...), u.all()...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if now := how.did(); how.times != 1 || how.seen != now {
		t.Errorf("told %d times of the crash, when %s was done, want once, when %s was", how.times, how.seen, now)
	}
	h.Close()
	must(t, s.Close())
}
