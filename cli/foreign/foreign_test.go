package foreign_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/cli/foreign"
	"parley/faulty"
	"parley/internal/envelope"
	"parley/run"
	"parley/sim"
)

// spec is a run of four programs, which broadcast in FIFO order.
func spec() run.Spec {
	return run.Spec{
		Protocol: envelope.Of(fifo.Tower(diffusion.Config{N: 4})), Seed: 7,
		Plan: run.Plan{Workload: run.Workload{Broadcasts: 8}},
		Name: func(id parley.ID) string { return "P" + string(rune('1'+id)) },
	}
}

// crewOf returns a crew of the programs that go a way.
func crewOf(t *testing.T, s run.Spec, way string, patience time.Duration) *foreign.Crew {
	t.Helper()
	t.Setenv(variable, "1")
	c, err := foreign.New(t.Context(), foreign.Options{
		Command: []string{os.Args[0], way}, Protocol: s.Protocol, Name: s.Name, Patience: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// made makes the run of programs, and returns how a program failed.
func made(s run.Spec, c *foreign.Crew) (r *run.Result, failed *foreign.Failure) {
	defer func() {
		if v := recover(); v != nil {
			failed = v.(*foreign.Failure)
		}
	}()
	s.Processes = c.Hire
	r, err := s.Simulate()
	if err != nil {
		panic(err)
	}
	return r, nil
}

// Programs that end their answers make the same run from the same seed, event by event.
func TestSameSeedSameRun(t *testing.T) {
	hashes := make(map[string]bool)
	for range 3 {
		s := spec()
		c := crewOf(t, s, "right", time.Minute)
		r, failed := made(s, c)
		if failed != nil {
			t.Fatal(failed)
		}
		hashes[r.Log.Hash()] = true
		if c.Unrepeatable() {
			t.Error("all answers end with parley_done, and the run is said not to be repeatable")
		}
		if len(r.History.Deliveries) != 32 || !r.History.Over {
			t.Errorf("got %d deliveries, over: %t, want 32 at the end", len(r.History.Deliveries), r.History.Over)
		}
		for _, v := range r.Judge() {
			if v.Broken != nil || v.Vacuous != "" {
				t.Errorf("%s: %v %s", v.Property.Name, v.Broken, v.Vacuous)
			}
		}
	}
	if len(hashes) != 1 {
		t.Errorf("three runs of one seed have %d traces", len(hashes))
	}
	s := spec()
	s.Seed = 8
	r, _ := made(s, crewOf(t, s, "right", time.Minute))
	if hashes[r.Log.Hash()] {
		t.Error("another seed makes the same run")
	}
}

// A program that does not end its answers takes part, and the run is marked.
func TestWithoutDone(t *testing.T) {
	s := spec()
	s.Plan.Workload.Broadcasts = 1
	c := crewOf(t, s, "no-done", time.Minute)
	if _, failed := made(s, c); failed != nil || !c.Unrepeatable() {
		t.Errorf("failed: %v, marked: %t", failed, c.Unrepeatable())
	}
}

// A program that delivers at once breaks FIFO order, in runs that the sweep finds and shrinks.
func TestWrongProgram(t *testing.T) {
	s := spec()
	s.Processes = crewOf(t, s, "at-once", time.Minute).Hire
	seeds := func(yield func(uint64) bool) {
		for seed := uint64(1); yield(seed) && seed < 4; seed++ {
		}
	}
	r, err := run.Sweep(t.Context(), s, seeds, run.SweepOptions{Workers: 2, All: true})
	if err != nil || r.Runs != 4 || r.Properties["FIFO order"].Broken == 0 || r.Properties["integrity"].Held != 4 {
		t.Errorf("%v: %+v", err, r)
	}
}

// A program that fails ends the run, and the failure names the process, the line and its text.
func TestFailures(t *testing.T) {
	for way, want := range map[string]string{
		"exit":       `(n1) ended before the run did, with exit status 3; its standard error ends with "the last words"`,
		"no-init":    `(n1) did not answer init with init_ok within`,
		"init-error": `(n1) said parley_done before init_ok`,
		"silent":     ` within 3s`, // on a busy computer, even init_ok comes later
		"trickle":    ` within 3s`, // lines without effect, without end
		"garbage":    `wrote "hello" in its line 3: it is not a JSON object with the keys "src", "dest" and "body"`,
		"blank":      `wrote "" in its line 3: it is not a JSON object`,
		"array":      `wrote "[1]" in its line 3: it is not a JSON object`,
		"no-body":    `body is missing, or is not a JSON object`,
		"forged":     `src is "n9", but the node is n`,
		"nowhere":    `there is no "lin-kv": allowed are the nodes n1 to n4, parley, and the client that asked`,
		"unknown":    `parley takes no "decides": allowed are decide, deliver,`,
		"origin":     `the keys "origin", from n1 to n4, and "message" are needed`,
		"timer":      `the key "timer" is needed, from 0 to 9999`,
		"type":       `the key "type" is a number: another type is needed`,
		"long":       `wrote a line of more than 1048576 bytes, which begins with "xxx`,
		"cut":        `wrote an incomplete last line, "{\"dest\":"`,
		"many":       `lines or 16 MiB in one answer`,
		"self":       `a node sends to itself: handle the message without sending it`,
		"late":       `wrote "{\"dest\":\"parley\",\"body\":{\"type\":\"decide\",\"value\":1}}" in its line 3: it follows parley_done`,
	} {
		t.Run(way, func(t *testing.T) {
			patience := time.Minute
			switch way {
			case "no-init": // no patience is long enough
				patience = time.Millisecond
			case "silent", "trickle":
				patience = 3 * time.Second
			}
			s := spec()
			s.Plan.Workload.Broadcasts = 1
			_, failed := made(s, crewOf(t, s, way, patience))
			if failed == nil || !strings.Contains(failed.Error(), want) || !strings.HasPrefix(failed.Error(), "the program of P") {
				t.Errorf("got  %v\nwant %s", failed, want)
			}
		})
	}
	if _, err := foreign.New(t.Context(), foreign.Options{Command: []string{"no-such-program"}}); err == nil ||
		!strings.Contains(err.Error(), `there is no program "no-such-program"`) {
		t.Error(err)
	}
}

// A failure is a broken promise of a sweep, with the same words.
func TestFailureInSweep(t *testing.T) {
	s := spec()
	s.Processes = crewOf(t, s, "garbage", time.Minute).Hire
	trial := s.Try(new(sim.Sim))
	if !strings.Contains(trial.Panicked, `wrote "hello" in its line 3`) {
		t.Errorf("got %q", trial.Panicked)
	}
}

// Crashed programs restart with their records, and faulty ones lie with their values.
func TestFaultyPrograms(t *testing.T) {
	s := spec()
	s.Plan.Random = run.Random{Restarts: 1}
	r, failed := made(s, crewOf(t, s, "right", time.Minute))
	if failed != nil || r.Facts.Processes.Restarted == false {
		t.Fatal(failed, r)
	}
	for _, v := range r.Judge() {
		if v.Violated() {
			t.Errorf("%s: %v", v.Property.Name, v.Broken)
		}
	}
	s = spec()
	s.Faulty = map[parley.ID]faulty.Behavior{1: faulty.Flip}
	r, failed = made(s, crewOf(t, s, "right", time.Minute))
	if failed != nil {
		t.Fatal(failed)
	}
	for _, d := range r.History.Deliveries {
		if string(d.Msg.Body) == "0" { // the lie in place of every payload that the liar sends on
			return
		}
	}
	t.Error("the lies of a faulty process reach no other")
}

// When a run ends, its programs end, and those that they have started. So does a run whose context ends.
func TestNoOrphans(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := spec()
	if _, failed := made(s, crewOf(t, s, "parent="+listener.Addr().String(), time.Minute)); failed != nil {
		t.Fatal(failed)
	}
	for range s.Protocol.N {
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
			t.Errorf("a program lives on: %v", err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	c, err := foreign.New(ctx, foreign.Options{Command: []string{os.Args[0], "silent"}, Protocol: s.Protocol, Name: s.Name,
		Patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.AfterFunc(0, stop)
	if _, failed := made(s, c); failed == nil || !errors.Is(failed, context.Canceled) {
		t.Error(failed)
	}
}
