package client

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cli/console"
	"parley/cluster/api/parleyv1"
)

// names are the nodes of the clusters below.
var names = []string{"a", "b", "c", "d"}

// well returns the answer of a healthy node of a cluster of four.
func well(name string) *parleyv1.StatusResponse {
	r := &parleyv1.StatusResponse{
		Cluster: "bank", Node: name, M: 1, Ready: true, Clock: &parleyv1.NowResponse{Synchronized: true},
		Groups: []*parleyv1.GroupStatus{
			{Name: "total", View: &parleyv1.ViewStatus{In: true, Members: names}}, {Name: "byzantine", View: &parleyv1.ViewStatus{In: true}},
		},
		Tables: []*parleyv1.TableStatus{{Name: "table", View: &parleyv1.ViewStatus{In: true, Members: names}}},
	}
	for _, peer := range names {
		r.Members = append(r.Members, &parleyv1.MemberStatus{Name: peer, Self: peer == name, Connected: peer != name})
	}
	return r
}

// about returns what a node knows of a peer.
func about(r *parleyv1.StatusResponse, peer string) *parleyv1.MemberStatus {
	return r.GetMembers()[slices.Index(names, peer)]
}

// Each node is healthy or not, and only these that are not make the command fail. What an operator has done on purpose
// and what nobody has used yet does not count; one node that lies hides no failed one.
func TestStatusHealth(t *testing.T) {
	gone := errors.New("b: connection refused (unavailable)")
	type cluster map[string]*parleyv1.StatusResponse
	expelledBy := func(by ...string) func(cluster) {
		return func(c cluster) {
			for _, name := range by {
				about(c[name], "b").Expelled = true
			}
		}
	}
	for what, row := range map[string]struct {
		change func(cluster)
		status int
		want   []string // parts of the output
	}{
		"fresh": {func(cluster) {}, console.Fine, []string{
			"healthy: 4 of 4 nodes\ncluster bank, m = 1; not durable: ", "\na  ready\nb  ready\nc  ready\nd  ready\n",
		}},
		"durable, m = 0": {func(c cluster) {
			for _, r := range c {
				r.M, r.Durable = 0, true
			}
		}, console.Fine, []string{"cluster bank, m = 0; durable\n"}},
		"one is down": {func(c cluster) { c["b"] = nil }, console.Violated, []string{
			"UNHEALTHY: only 3 of 4 nodes healthy\n", "\nb  no answer: connection refused (unavailable)\n   - start it, or see its log",
			"parley cluster expel b\n",
		}},
		"one is expelled and down": {func(c cluster) { c["b"] = nil; expelledBy("a", "c", "d")(c) }, console.Fine, []string{
			"healthy: 3 of 3 nodes, 1 expelled\n", "\nb  expelled by an operator: start it again to let it rejoin\n",
		}},
		"one is expelled and runs": {func(c cluster) {
			expelledBy("a", "c", "d")(c)
			c["b"].Ready, c["b"].Problems = false, []string{"the node is expelled"}
		}, console.Fine, []string{"healthy: 3 of 3 nodes, 1 expelled\n"}},
		"one claims that the failed one is expelled": {func(c cluster) { c["b"] = nil; expelledBy("d")(c) }, console.Violated,
			[]string{"b  no answer: "}},
		"one is not ready": {func(c cluster) {
			c["b"].Ready, c["b"].Problems = false, []string{"not a member of group total: why"}
		}, console.Violated, []string{"UNHEALTHY: only 3 of 4 nodes healthy\n", "\nb  not ready\n   - not a member of group total: why\n"}},
		"one is cut off": {func(c cluster) {
			for _, peer := range []string{"a", "c", "d"} {
				about(c["b"], peer).Connected = false
			}
		}, console.Violated, []string{
			"\nb  ready, but cut off\n   - group total stalls: of its 4 members only 1 can be reached, which is no majority: start", "- table table stalls: ",
			"note: it refuses agreements: 1 of 4 nodes are connected, and with m = 1 3 are needed",
		}},
		"half of the view is no majority": {func(c cluster) {
			about(c["b"], "a").Connected, about(c["b"], "c").Connected = false, false
		}, console.Violated, []string{"of its 4 members only 2 can be reached"}},
		"notes": {func(c cluster) {
			c["b"].Clock, c["b"].Tables[0].Diverged = nil, []string{"d"}
			c["b"].Commit = &parleyv1.CommitStatus{Blocked: []*parleyv1.OutcomeResponse{{}}}
			c["b"].Store = &parleyv1.StoreStatus{Low: "200 MiB are free", Slowest: durationpb.New(3 * time.Second)}
			c["c"].Store = &parleyv1.StoreStatus{Slowest: durationpb.New(time.Millisecond)}
		}, console.Fine, []string{
			"b  ready\n   note: its clock is not in step with the others: after a start this takes a few seconds\n" +
				"   note: table table: the replica at d differs from the majority: see the log there\n" +
				"   note: 1 transaction is blocked until other nodes recover: start the nodes that are down\n" +
				"   note: its disk is nearly full: 200 MiB are free\n   note: its disk is slow: a write took 3s\nc  ready\nd  ready\n",
		}},
	} {
		c := make(cluster)
		for _, name := range names {
			c[name] = well(name)
		}
		row.change(c)
		var nodes []Node
		var answers []*parleyv1.StatusResponse
		var errs []error
		for _, name := range names {
			nodes, answers, errs = append(nodes, Node{Name: name}), append(answers, c[name]), append(errs, nil)
			if c[name] == nil {
				errs[len(errs)-1] = gone
			}
		}
		var out strings.Builder
		all := judge(nodes, answers, errs)
		if err := all.print(&console.App{Out: &out}, true); err != nil {
			t.Fatal(err)
		}
		if status := all.status(); status != row.status {
			t.Errorf("%s: got status %d, want %d", what, status, row.status)
		}
		for _, want := range row.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %s, want %q", what, out.String(), want)
			}
		}
	}
}
