package lab

import (
	"errors"
	"os"
	"testing"

	"parley"
	"parley/trace"
)

// A process that is killed before it has written anything has crashed, and its empty trace is no damaged one. That of
// a process that lives is.
func TestKilledBeforeItWrote(t *testing.T) {
	r := &running{
		Run:  &Run{Header: trace.Header{Protocol: "diffusion", N: 2}, Dir: t.TempDir()},
		died: map[parley.ID][]parley.Tick{0: {5}},
	}
	for id := range parley.ID(2) {
		if err := os.WriteFile(r.traceOf(id, 1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.written(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if all := got.Log.Events; len(all) != 1 || all[0].Op != trace.Crash || all[0].At != 0 || all[0].Time != 5 {
		t.Errorf("its events are %v, not a crash at 5", all)
	}
	if _, err := r.written(1, 1); !errors.Is(err, trace.ErrEmpty) {
		t.Errorf("of one that lives: %v", err)
	}
}
