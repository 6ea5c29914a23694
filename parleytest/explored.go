package parleytest

import (
	"context"
	"maps"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/explore"
	"parley/faulty"
)

// System is a small system, with everything that may go wrong in it, and what a search of all
// its runs comes to.
type System struct {
	Name string
	explore.Options
	// States is how many different states there are, and Ends is in how many of them nothing
	// more is due.
	States, Ends uint64
	// Runs is how many adversaries there are, in searches by rounds.
	Runs uint64
	// Broken is how many findings there are of each property that breaks. A goal that is
	// reached is the property "". Without it nothing breaks.
	Broken map[string]int
}

// most is how many states a system has at most that is searched in short tests.
const most = 50_000

// Explored searches all runs of the systems and demands that each comes to what it says. With
// -short it leaves out systems of more than 50,000 states.
func Explored(t *testing.T, systems []System) {
	t.Helper()
	for _, x := range systems {
		if testing.Short() && x.States > most {
			continue
		}
		t.Run(strings.ReplaceAll(x.Name, " ", "-"), func(t *testing.T) {
			x.All = true
			r, err := explore.Search(context.Background(), x.Options)
			if err != nil {
				t.Fatal(err)
			}
			broken := make(map[string]int)
			for i := range r.Findings {
				broken[r.Findings[i].Property]++
			}
			if !maps.Equal(broken, x.Broken) {
				t.Errorf("%v breaks, and not %v", broken, x.Broken)
				for i := range min(1, len(r.Findings)) {
					t.Logf("%s after %d moves", r.Findings[i].Why, len(r.Findings[i].Run.Steps))
				}
			}
			if x.Step == explore.Rounds && r.Runs != x.Runs {
				t.Errorf("%d adversaries; %d are expected", r.Runs, x.Runs)
			}
			if r.Limit != "" || r.States != x.States || r.Ends != x.Ends {
				t.Errorf("%d states, %d ends %s; %d and %d are expected", r.States, r.Ends, r.Limit, x.States, x.Ends)
			}
		})
	}
}

// Casts begin runs in which "0a" is a request to process 0 to broadcast a to all. Nobody lies.
func Casts(asked ...string) []explore.Root {
	var r explore.Root
	for _, a := range asked {
		r.Requests = append(r.Requests, explore.Request{At: parley.ID(a[0] - '0'), Msg: problem.Request([]byte(a[1:]))})
	}
	return []explore.Root{r}
}

// Proposals begin runs in which "abb" is what processes 0, 1 and 2 propose, a letter each.
func Proposals(each ...string) []explore.Root {
	var out []explore.Root
	for _, values := range each {
		var r explore.Root
		for id := range len(values) {
			m := parley.Msg{Kind: parley.Propose, Body: []byte(values[id : id+1])}
			r.Requests = append(r.Requests, explore.Request{At: parley.ID(id), Msg: m})
		}
		out = append(out, r)
	}
	return out
}

// Liars lets any m of n processes lie in any way, in each of the runs. What liars are asked makes
// no difference: of runs that differ by that alone there is one.
func Liars(n, m int, runs []explore.Root) []explore.Root {
	var out []explore.Root
	for set := range 1 << n {
		how := make(map[parley.ID]faulty.Behavior)
		for id := range n {
			if set>>id&1 == 1 {
				how[parley.ID(id)] = faulty.Any
			}
		}
		if len(how) != m {
			continue
		}
		known := make(map[string]bool)
		for _, r := range runs {
			var honest strings.Builder
			for _, q := range r.Requests {
				if _, lies := how[q.At]; !lies {
					honest.Write(append([]byte{byte(q.At)}, q.Msg.Body...))
				}
			}
			if !known[honest.String()] {
				known[honest.String()] = true
				out = append(out, explore.Root{Faulty: how, Requests: r.Requests})
			}
		}
	}
	return out
}
