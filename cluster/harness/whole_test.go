package harness

import (
	"errors"
	"os"
	"testing"
	"time"

	"parley"
	"parley/trace"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A process killed before it has written anything has crashed, and its empty trace is valid. The empty
// trace of a process that is up is damaged.
func TestKilledBeforeItWrote(t *testing.T) {
	r := &runRecord{
		Run:  &Run{Header: trace.Header{Protocol: "diffusion", N: 2}, Dir: t.TempDir()},
		died: map[parley.ID][]parley.Tick{0: {5}},
	}
	for id := range parley.ID(2) {
		must(t, os.WriteFile(r.traceOf(id, 1), nil, 0o600))
	}
	got, err := r.readTrace(0, 1)
	must(t, err)
	if all := got.Log.Events; len(all) != 1 || all[0].Op != trace.Crash || all[0].At != 0 || all[0].Time != 5 {
		t.Errorf("its events are %v, not a crash at 5", all)
	}
	if n, err := r.stepsBefore(0, 2); n != 0 || err != nil { // as the next incarnation is told
		t.Errorf("it took %d steps, %v", n, err)
	}
	if _, err := r.readTrace(1, 1); !errors.Is(err, trace.ErrEmpty) {
		t.Errorf("of one that lives: %v", err)
	}
}

// A message refused by a broken link is lost by the link if its receiver was up, and not if it had crashed:
// a sender may find the link broken before the crash is recorded. Losses by the weather count in any case.
func TestDeadReceiverLosesNothing(t *testing.T) {
	const second = parley.Tick(1000)
	for name, c := range map[string]struct {
		how        parley.Msg
		died, rose []parley.Tick
		lost       bool
	}{
		"up":                        {how: parley.Msg{Value: byLink, Seq: 1}, lost: true},
		"dead":                      {how: parley.Msg{Value: byLink, Seq: 1}, died: []parley.Tick{4000}},
		"dead, which is noted late": {how: parley.Msg{Value: byLink, Seq: 1}, died: []parley.Tick{5000 + second}},
		"died long after":           {how: parley.Msg{Value: byLink, Seq: 1}, died: []parley.Tick{5001 + second}, lost: true},
		"the life before had died":  {how: parley.Msg{Value: byLink, Seq: 2}, died: []parley.Tick{1000}, rose: []parley.Tick{2000}, lost: true},
		"is up again, unnoticed":    {how: parley.Msg{Value: byLink, Seq: 1}, died: []parley.Tick{1000}, rose: []parley.Tick{2000}},
		"never met, up":             {how: parley.Msg{Value: byLink}, lost: true},
		"never met, dead":           {how: parley.Msg{Value: byLink}, died: []parley.Tick{4000}, rose: []parley.Tick{9000}},
		"never met, up again":       {how: parley.Msg{Value: byLink}, died: []parley.Tick{1000}, rose: []parley.Tick{2000}, lost: true},
		"weather":                   {how: parley.Msg{Value: byChance}, died: []parley.Tick{4000}, lost: true},
	} {
		r := &runRecord{
			Run:  &Run{Header: trace.Header{Protocol: "diffusion", N: 2}, Dir: t.TempDir(), Tick: time.Millisecond},
			died: map[parley.ID][]parley.Tick{1: c.died}, restarted: map[parley.ID][]parley.Tick{1: c.rose},
		}
		f, err := os.Create(r.traceOf(0, 1))
		must(t, err)
		stream, err := trace.NewStream(f, r.headerOf(0, 1), trace.StreamOptions{})
		must(t, err)
		stream.Add(trace.Event{Op: trace.Lose, At: 0, Peer: 1, Time: 5000, Msg: c.how})
		must(t, errors.Join(stream.Close(), f.Close()))
		got, err := r.readTrace(0, 1)
		must(t, err)
		if lost := len(got.Log.Events) == 1; lost != c.lost || r.chance != (c.how.Value == byChance) {
			t.Errorf("%s: lost %t, by chance %t", name, lost, r.chance)
		}
	}
}
