package atomic_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// Alone it has no detector of crashes.
func TestSuite(t *testing.T) {
	p := atomic.New(atomic.Config{N: 4})
	p.Cost = nil // it counts one broadcast
	parleytest.Suite(t, p, parleytest.Options{Inputs: named(4), Sim: sim.Options{Twice: 0.1}})
}

// On a detector whose timeout fits the delays, it tolerates n-1 crashes.
func TestSuiteOnDetector(t *testing.T) {
	for _, n := range []int{2, 4} {
		p := stack.New(detector.New(detector.Config{N: n, Beats: 40}), atomic.New(atomic.Config{N: n, Detector: true}))
		parleytest.Suite(t, p, parleytest.Options{Seeds: 60, Inputs: named(n), NeverBack: true})
	}
}

// One broadcast to all costs three messages on each of n-1 links.
func TestCost(t *testing.T) {
	for _, n := range []int{2, 5} {
		p := atomic.New(atomic.Config{N: n})
		one := func(*rand.Rand) []sim.Request { return []sim.Request{{Msg: problem.Request([]byte("m"))}} }
		if err := parleytest.Check(p, parleytest.Options{Seeds: 20, Inputs: one}); err != nil {
			t.Error(err)
		}
		if have := p.Cost(n, 0).Total().Messages; have != uint64(3*(n-1)) {
			t.Errorf("n=%d: %d messages", n, have)
		}
	}
}

// named draws requests to named receivers and to all.
func named(n int) func(*rand.Rand) []sim.Request {
	return func(r *rand.Rand) []sim.Request {
		var out []sim.Request
		for k := range 1 + r.IntN(6) {
			text := fmt.Appendf(nil, "m%d", k)
			m := problem.Request(text)
			if r.IntN(2) == 0 {
				m = problem.RequestTo(parley.SetOf(receivers(r, n, false)...), text)
			}
			out = append(out, sim.Request{At: parley.ID(r.IntN(n)), When: parley.Tick(r.IntN(2000)), Msg: m})
		}
		return out
	}
}

func FuzzReceive(f *testing.F) { parleytest.Fuzz(f, atomic.New(atomic.Config{N: 4})) }

// The row of each kind of message.
func TestExplain(t *testing.T) {
	w := half(t)
	var rows []string
	look := func(from, to parley.ID) {
		e := parley.Env{From: from, To: to}
		for row := range w.p.Explain(e, w.links[from][to][0], func(id parley.ID) string { return "P" + id.String() }) {
			rows = append(rows, row)
		}
		w.receive(from, to)
	}
	w.suspect(1, 0)
	look(1, 2) // the final priority of n
	look(1, 2)
	look(0, 2) // late
	look(2, 1)
	look(1, 2)
	look(2, 1)
	want := `
FINAL P1#1 at 2.P2
STATUS P0#9 (ballot 4)
FINAL P0#9 at 9.P0
KNOWN P0#9 undeliverable at 1.P2 (ballot 4)
REQ P0#9 to P0 P1 P2: m (ballot 4)
PROP P0#9 at 1.P2 (ballot 4)`
	if got := "\n" + strings.Join(rows, "\n"); got != want {
		t.Errorf("%s", got)
	}
}

// Which promises of the lecture's form hold, and under which conditions some do not.
func TestPromisesWithoutViews(t *testing.T) {
	order := []string{problem.Integrity, problem.TotalOrder}
	everything := append([]string{problem.Agreement, problem.Validity, problem.Delivery}, order...)
	for name, c := range map[string]struct {
		detector bool
		a        parley.RunConditions
		want     []string
	}{
		"no fault":          {false, parley.RunConditions{N: 4}, everything},
		"crashes":           {true, parley.RunConditions{N: 4, Faulty: 3}, everything},
		"nobody tells":      {false, parley.RunConditions{N: 4, Faulty: 1}, order},
		"lost messages":     {true, parley.RunConditions{N: 4, Network: parley.NetworkFaults{Lost: true}}, order},
		"reordered, twice":  {true, parley.RunConditions{N: 4, Network: parley.NetworkFaults{Reordered: true, Doubled: true}}, everything},
		"a false suspicion": {true, parley.RunConditions{N: 4, Processes: parley.ProcessFaults{Suspected: true}}, order[:1]},
		"a restart":         {true, parley.RunConditions{N: 4, Processes: parley.ProcessFaults{Restarted: true}}, order[:1]},
	} {
		for _, promise := range atomic.New(atomic.Config{N: 4, Detector: c.detector}).Promises(c.a) {
			if promise.Holds != slices.Contains(c.want, promise.Property) || promise.Because == "" {
				t.Errorf("%s: %+v", name, promise)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	for name, p := range map[string]parley.Protocol{
		"lecture": atomic.New(atomic.Config{N: 4}), "views": atomic.InViews(group.Config{N: 4}),
	} {
		for _, c := range []struct {
			n  string
			ok bool
		}{{"1", true}, {"7", true}, {"0", false}, {"257", false}} {
			fs := flag.NewFlagSet(name, flag.ContinueOnError)
			remake := p.Flags(fs)
			if err := fs.Parse([]string{"-n", c.n}); err != nil {
				t.Fatal(err)
			}
			q, err := remake(nil)
			if c.ok && (err != nil || fmt.Sprint(q.N) != c.n) || !c.ok && err == nil {
				t.Errorf("%s: -n %s: n=%d, %v", name, c.n, q.N, err)
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a system of nobody is made")
		}
	}()
	atomic.New(atomic.Config{})
}
