package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/broadcast/atomic"
	bproblem "parley/broadcast/problem"
	"parley/commit/twophase"
	"parley/faulty"
	"parley/lockstep"
	"parley/membership/group"
	"parley/sim"
	"parley/trace"
)

// replayed returns runs with each kind of fault of a process.
func replayed(seed uint64) map[string]sim.Options {
	propose := func(n int, value string) (out []sim.Request) {
		for id := range parley.ID(n) {
			out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}})
		}
		return out
	}
	in := problem.Instance{N: 4, M: 2, Default: []byte("0")}
	return map[string]sim.Options{
		"liars": {
			Protocol: sm.New(sm.Config{Instance: in}, lockstep.Simulated), Requests: propose(1, "1"),
			Faulty: map[parley.ID]faulty.Behavior{0: faulty.Random, 2: faulty.TwoFaced},
		},
		"restarts": {
			Protocol: twophase.New(twophase.Config{N: 4}), Requests: propose(4, "yes"), Until: 40_000,
			Crashes: []sim.Crash{
				{At: 0, Step: 4, Effects: 2, Back: 3000}, {At: 2, Step: 3, Effects: 1, Back: 500}, {At: 3, When: 900, Back: 90, LostDisk: true},
			},
		},
		"clocks": {
			Protocol: ballot.New(ballot.Config{N: 5}), Requests: propose(5, "a"), Loss: 0.1, Twice: 0.1, Until: 60_000,
			Clocks:  []sim.Clock{{At: 1, Offset: 400, Drift: 90_000}, {At: 2, Offset: -70, Drift: -50_000}},
			Pauses:  []sim.Pause{{At: 3, From: 100, For: 3000}},
			Crashes: []sim.Crash{{At: 4, When: 300, Effects: 1, Back: 2000}},
		},
		"views": {
			Protocol: atomic.InViews(group.Config{N: 4}), FIFO: true, Until: 20_000,
			Requests:   []sim.Request{{At: 1, When: 100, Msg: bproblem.Request([]byte("a"))}, {At: 2, When: 90, Msg: bproblem.Request([]byte("b"))}},
			Suspicions: []sim.Suspicion{{At: 1, Of: 2, When: 700}}, Crashes: []sim.Crash{{At: 0, When: 600, Effects: 2}},
		},
	}
}

func replay(o sim.Options) (sim.Replay, []trace.Event) {
	o.Log = &trace.Log{Keep: true}
	sim.Run(o)
	r := sim.Replay{Protocol: o.Protocol, Signer: sim.Ideal(o.Seed), Clocks: o.Clocks}
	// order: a set has none
	for id := range o.Faulty {
		r.Faulty.Add(id)
	}
	return r, o.Log.Events
}

// The correct processes of a trace repeat their steps.
func TestReplay(t *testing.T) {
	for seed := range uint64(12) {
		for name, o := range replayed(seed) {
			o.Seed = seed
			r, events := replay(o)
			want := 0
			for _, e := range events {
				switch e.Op {
				case trace.Start, trace.Restart, trace.Request, trace.Receive, trace.Timeout, trace.Suspect:
					if !r.Faulty.Has(e.At) {
						want++
					}
				}
			}
			if steps, err := r.Run(events); err != nil || steps != want || want < 10 {
				t.Errorf("%s, seed %d: %d steps of %d, %v", name, seed, steps, want, err)
			}
		}
	}
}

// fragile is a machine that notes the epochs of messages, and panics when it receives or shows what it must not.
type fragile struct {
	epochs []uint64
	hears  bool // it panics when it receives something of kind 9
}

func (f *fragile) Start(*parley.Step)                 {}
func (f *fragile) Request(*parley.Step, parley.Msg)   {}
func (f *fragile) Timeout(*parley.Step, parley.Timer) {}
func (f *fragile) Receive(s *parley.Step, _ parley.ID, m parley.Msg) {
	f.epochs = append(f.epochs, uint64(s.Epoch))
	if f.hears && m.Kind == 9 {
		panic("kind 9")
	}
}

func (f *fragile) State(*parley.Vars) {
	if len(f.epochs) > 0 {
		panic("no state")
	}
}

// Feed passes epochs on, and a panic of a machine becomes an error, in a clause and in the method that shows its variables.
func TestReplayOfFragileMachines(t *testing.T) {
	events := []trace.Event{
		{ID: 1, Op: trace.Start}, {ID: 2, Op: trace.Receive, Peer: 1, Epoch: 7, Msg: parley.Msg{Kind: 8}},
		{ID: 3, Op: trace.Receive, Peer: 1, Epoch: 8, Msg: parley.Msg{Kind: 9}},
	}
	made := func(hears bool) sim.Replay {
		return sim.Replay{Protocol: parley.Protocol{
			N: 2, New: func(parley.ID) parley.Machine { return &fragile{hears: hears} },
		}}
	}
	m, err := made(false).Feed(events, 0, nil)
	if err != nil || fmt.Sprint(m.(*fragile).epochs) != "[7 8]" {
		t.Errorf("got %v, %v", m, err)
	}
	if _, err = made(true).Feed(events, 0, nil); err == nil || !strings.Contains(err.Error(), "event 3: process 0: it panics: kind 9") {
		t.Errorf("got %v", err)
	}
	for name, err := range map[string]error{
		"Variables":    second(made(false).Variables(events, 2)),
		"Watch":        made(false).Watch(events, func(trace.Event, []parley.Variable) {}),
		"WatchDerived": made(false).WatchDerived(events, func(trace.Event, bool, []parley.Variable) {}),
	} {
		if err == nil || !strings.Contains(err.Error(), "process 0: it panics: no state") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// Watch is also called for crashes and pauses.
func TestWatchSeesPauses(t *testing.T) {
	r, events := replay(replayed(1)["clocks"])
	seen := make(map[trace.Op]bool)
	if err := r.Watch(events, func(e trace.Event, _ []parley.Variable) { seen[e.Op] = true }); err != nil {
		t.Fatal(err)
	}
	for _, op := range []trace.Op{trace.Start, trace.Pause, trace.Resume, trace.Crash, trace.Restart} {
		if !seen[op] {
			t.Errorf("not called for %v", op)
		}
	}
}

// WatchDerived shows what each process derives after each of its steps, and nothing of a process that is down. The last is what
// Variables shows at the end.
func TestWatchDerivedShowsEachStep(t *testing.T) {
	names := func(list []parley.Variable) (out []string) {
		for _, v := range list {
			if v.Kind > parley.ProcessSet {
				out = append(out, fmt.Sprint(v))
			}
		}
		return out
	}
	seen := 0
	for name, o := range replayed(1) {
		o.Seed = 1
		r, events := replay(o)
		last, downs := make([][]string, o.Protocol.N), 0
		err := r.WatchDerived(events, func(step trace.Event, up bool, derived []parley.Variable) {
			if last[step.At] = names(derived); up == (step.Op == trace.Crash) || len(last[step.At]) != len(derived) {
				t.Errorf("%s, event %d, %v: %v", name, step.ID, step.Op, derived)
			}
			if seen += len(derived); !up {
				downs++
			}
		})
		end, endErr := r.Variables(events, len(events))
		if err != nil || endErr != nil {
			t.Fatalf("%s: %v, %v", name, err, endErr)
		}
		for id := range last {
			if want := names(end[id]); !slices.Equal(last[id], want) {
				t.Errorf("%s, process %d: got %v, want %v", name, id, last[id], want)
			}
		}
		if downs != len(o.Crashes) {
			t.Errorf("%s: %d crashes, want %d", name, downs, len(o.Crashes))
		}
	}
	if seen == 0 {
		t.Error("no machine derives anything")
	}
}

// Any change of an input or effect of a correct process, and any missing event, is found: there, or in a later
// step that no longer follows.
func TestReplayCatches(t *testing.T) {
	for name, o := range replayed(3) {
		o.Seed = 3
		r, events := replay(o)
		tried, missed := 0, 0
		for i, e := range events {
			if r.Faulty.Has(e.At) || e.Op == trace.Refuse || e.Op == trace.Lose || e.Op == trace.Pause || e.Op == trace.Resume {
				continue
			}
			changed := slices.Clone(events)
			switch e.Op {
			case trace.Send, trace.Deliver, trace.Keep, trace.Append:
				changed[i].Msg.Body = append(slices.Clone(e.Msg.Body), 'x')
				if _, err := r.Run(changed); err == nil {
					t.Errorf("%s: event %d, %s, is another one and nobody minds", name, e.ID, e.Op)
				}
				// Of effects that a crash cuts off, the last one may be missing.
				if _, err := r.Run(slices.Delete(slices.Clone(events), i, i+1)); err == nil && events[i+1].Op != trace.Crash {
					t.Errorf("%s: event %d, %s, is not there and nobody minds", name, e.ID, e.Op)
				}
			case trace.Timeout:
				changed[i].Msg.Value += 77
				if _, err := r.Run(changed); err == nil || !strings.Contains(err.Error(), "is not set") {
					t.Errorf("%s: event %d is the timeout of no timer: %v", name, e.ID, err)
				}
			case trace.Start, trace.Crash, trace.Restart:
				if _, err := r.Run(slices.Insert(changed, i, e)); err == nil {
					t.Errorf("%s: event %d, %s, is there twice and nobody minds", name, e.ID, e.Op)
				}
			case trace.Receive:
				tried++
				if _, err := r.Run(slices.Delete(changed, i, i+1)); err == nil {
					missed++ // it made no difference
				}
			}
		}
		if missed == tried {
			t.Errorf("%s: none of %d messages is missed", name, tried)
		}
	}
}

// A machine that makes a request to a missing layer beneath does not follow its trace.
func TestReplayOfUnservedEffect(t *testing.T) {
	p := parley.Protocol{Name: "asking", N: 1, New: func(parley.ID) parley.Machine { return asking{} }}
	events := []trace.Event{{ID: 1, Op: trace.Start}, {ID: 2, Op: trace.Request}}
	if _, err := (sim.Replay{Protocol: p}).Run(events); err == nil || !strings.Contains(err.Error(), "no layer beneath") {
		t.Error(err)
	}
}

// asking broadcasts through a layer beneath.
type asking struct{}

func (asking) Start(*parley.Step)                          {}
func (asking) Receive(*parley.Step, parley.ID, parley.Msg) {}
func (asking) Timeout(*parley.Step, parley.Timer)          {}
func (asking) State(*parley.Vars)                          {}
func (asking) Request(s *parley.Step, _ parley.Msg)        { s.Broadcast(parley.Msg{}) }
