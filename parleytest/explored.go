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

// System is a small system, the faults that a search of all its runs includes, and the expected result.
type System struct {
	Name string
	explore.Options
	// States is the number of different states, and Ends the number of terminal states.
	States, Ends uint64
	// Runs is the number of adversaries, in searches by rounds.
	Runs uint64
	// Broken is the number of findings for each property that breaks. A goal that is reached counts as the
	// property "". If Broken is nil, nothing may break.
	Broken map[string]int
}

// most is the number of states above which short tests omit a system.
const most = 50_000

// Explored searches all runs of the systems and fails t if a result differs from the expected one. With
// -short it omits systems of more than 50,000 states.
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

// Casts returns one root with a request for each argument: "0a" requests process 0 to broadcast a to all. No
// process lies.
func Casts(asked ...string) []explore.Root {
	var r explore.Root
	for _, a := range asked {
		r.Requests = append(r.Requests, explore.Request{At: parley.ID(a[0] - '0'), Msg: problem.Request([]byte(a[1:]))})
	}
	return []explore.Root{r}
}

// Proposals returns one root for each string. The letters of a string are the proposals of processes 0, 1 and
// so on: with "abb", process 0 proposes a, and processes 1 and 2 propose b.
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

// Liars returns the given runs with liars. Each run occurs once for each set of m of the n processes. The processes
// of the set lie in any way. Requests to liars make no difference. So if runs differ only in requests to liars, Liars
// returns only one of them.
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
