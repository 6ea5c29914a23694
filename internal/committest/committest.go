// Package committest helps to test the protocols of atomic commitment. It writes the votes and outcomes of all
// processes as letters, with one letter for each process.
package committest

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/parleytest"
	"parley/sim"
)

// Votes returns the requests that give each process its vote at the beginning: y, n, or - for none.
func Votes(text string) (list []sim.Request) {
	for i, v := range text {
		if v != '-' {
			body := map[rune]string{'y': "yes", 'n': "no"}[v]
			list = append(list, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(body)}})
		}
	}
	return list
}

// Outcomes returns what each process decided last: c, a, or - for nothing; b for nothing although it is blocked.
func Outcomes(h *parley.History) string {
	out := []byte(strings.Repeat("-", h.N))
	for _, i := range h.Indications {
		out[i.At] = 'b'
	}
	for _, d := range h.Deliveries {
		out[d.At] = d.Msg.Body[0]
	}
	return string(out)
}

// EveryVote tries every combination of votes of four processes, or none, with five seeds. It demands the outcome that
// want returns, and that all properties hold. options describes a run with the given votes.
func EveryVote(t *testing.T, options func(votes string) sim.Options, want func(votes string) string) {
	t.Helper()
	runs := 0
	parleytest.Every(func(choose func(n int) int) {
		text := make([]byte, 4)
		for i := range text {
			text[i] = "yn-"[choose(3)]
		}
		for seed := range uint64(5) {
			opt := options(string(text))
			opt.Seed = seed
			s := sim.Run(opt)
			runs++
			if got, want := Outcomes(&s.History), want(string(text)); got != want {
				t.Fatalf("votes %s, seed %d: %s, want %s", text, seed, got, want)
			}
			if broken := parleytest.Judge(t, opt.Protocol, s, string(text)); broken != nil {
				t.Fatalf("votes %s: %s", text, broken)
			}
		}
	})
	if runs != 81*5 {
		t.Errorf("%d runs", runs)
	}
}

// Host is the host of a machine that a test drives by hand. It records why input was refused.
type Host struct {
	parley.Host
	Why []string
}

// Refused records the reason.
func (h *Host) Refused(_, _ parley.ID, why string) { h.Why = append(h.Why, why) }

// Panics demands that f panics.
func Panics(t *testing.T, what any, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%+v is taken", what)
		}
	}()
	f()
}

// DamagedLogs demands that a machine that restarts accepts some logs, of records separated by commas, and panics on
// the others.
func DamagedLogs(t *testing.T, p parley.Protocol, self parley.ID, logs map[string]bool) {
	t.Helper()
	for text, taken := range logs {
		step := parley.Step{Self: self, N: p.N, Host: new(Host), Restart: true}
		for record := range strings.SplitSeq(text, ",") {
			step.Log = append(step.Log, parley.Record{Body: []byte(record)})
		}
		start := func() { p.New(self).Start(&step) }
		if taken {
			start()
		} else {
			Panics(t, text, start)
		}
	}
}

// States reads states, one letter each.
func States(text string) (out []problem.State) {
	for _, c := range text {
		out = append(out, problem.State(strings.IndexRune("iupca", c)))
	}
	return out
}

// Apart returns links that separate two groups from each other for a time; until 0 means forever.
func Apart(one, two parley.Set, since, until parley.Tick) []sim.Link {
	return []sim.Link{
		{From: one, To: two, Since: since, Until: until, Loss: 1}, {From: two, To: one, Since: since, Until: until, Loss: 1},
	}
}

// Decisions returns the outcomes among some processes.
func Decisions(h *parley.History, of parley.Set) string {
	var all []byte
	for id := range of.All() {
		all = append(all, Outcomes(h)[id])
	}
	slices.Sort(all)
	return string(slices.Compact(all))
}

// LateVote demands that a vote that comes too late is a no, whichever process is late.
func LateVote(t *testing.T, options func(votes string) sim.Options) {
	t.Helper()
	for late := range 4 {
		opt := options("yyyy")
		opt.Requests[late].When = 5000
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, late)
		if got := Outcomes(&s.History); got != "aaaa" {
			t.Errorf("%d is late: %s", late, got)
		}
	}
}

// Crashes yields the runs with one additional crash, in all steps and between all effects. A 0 in backs means a
// permanent crash; any other value is the time until the restart.
func Crashes(opt sim.Options, backs ...parley.Tick) iter.Seq[sim.Options] {
	return func(yield func(sim.Options) bool) {
		for _, crash := range parleytest.CrashPoints(opt) {
			for _, crash.Back = range backs {
				one := opt
				one.Crashes = append(slices.Clip(opt.Crashes), crash)
				if !yield(one) {
					return
				}
			}
		}
	}
}

// EveryCrash makes every single crash of runs with some votes. It demands that the promises hold, and checks the
// number of runs.
func EveryCrash(t *testing.T, options func(votes string) sim.Options, backs []parley.Tick, want map[string]int) {
	t.Helper()
	for votes, want := range want {
		runs := 0
		for seed := range uint64(4) {
			opt := options(votes)
			opt.Seed = seed
			for one := range Crashes(opt, backs...) {
				runs++
				parleytest.Judge(t, opt.Protocol, sim.Run(one), fmt.Sprint(votes, " ", seed, one.Crashes))
			}
		}
		if runs != want {
			t.Errorf("%s: %d runs, want %d", votes, runs, want)
		}
	}
}

// EveryTwoCrashes makes every two crashes of a run, including two of one process. It demands that the promises hold,
// and checks the number of runs and in how many of them a process commits.
func EveryTwoCrashes(t *testing.T, opt sim.Options, backs []parley.Tick, wantRuns, wantCommitted int) {
	t.Helper()
	runs, committed := 0, 0
	for one := range Crashes(opt, backs...) {
		for two := range Crashes(one, 0, 700) {
			runs++
			s := sim.Run(two)
			parleytest.Judge(t, opt.Protocol, s, two.Crashes)
			if strings.Contains(Outcomes(&s.History), "c") {
				committed++
			}
		}
	}
	if runs != wantRuns || committed != wantCommitted {
		t.Errorf("%d runs, and somebody committed in %d, want %d and %d", runs, committed, wantRuns, wantCommitted)
	}
}
