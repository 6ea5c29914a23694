package tetra

import (
	"fmt"
	"slices"
	"testing"

	"parley"
)

// sent returns what a process has sent to another since the last call, in words, and drops all messages.
func (x *script) sent(from, to parley.ID) (out []string) {
	for _, l := range x.flight {
		if l.from == from && l.to == to {
			out = append(out, kinds[l.m.Kind]+" "+explain(x.c.N, l.m, parley.ID.String))
		}
	}
	x.flight = nil
	return out
}

// expect demands that a process sent exactly this.
func (x *script) expect(from, to parley.ID, what string, want ...string) {
	x.t.Helper()
	if got := x.sent(from, to); !slices.Equal(got, want) {
		x.t.Errorf("%s: sent %q, %q is expected", what, got, want)
	}
}

// wish delivers wishes of processes for a view to a process.
func (x *script) wish(to parley.ID, view uint64, from ...parley.ID) {
	for _, q := range from {
		x.say(q, to, parley.Msg{Kind: Wish, Seq: view})
	}
}

// report delivers an ENTER of process q to another, and witnesses of its claim by all others.
func (x *script) report(q, to parley.ID, view uint64, r reported) {
	x.say(q, to, parley.Msg{Kind: Enter, Seq: view, Body: appendReport(nil, r.claim, r.list())})
	for w := range parley.ID(x.c.N) {
		if w != q && w != to {
			x.say(w, to, parley.Msg{Kind: Witness, Origin: q, Body: r.claim})
		}
	}
}

// A quorum of wishes begins a view, m+1 wishes make a process wish, and one wish does nothing.
func TestForcedWishes(t *testing.T) {
	x := newScript(t, 0)
	x.wish(3, 5, 0)
	x.expect(3, 1, "after one wish")
	x.wish(3, 2, 1)
	x.expect(3, 1, "after two wishes", "WISH begin view 2?", "ENTER in view 2: ready for no value")
	x = newScript(t, 0)
	x.timeout(3)
	x.expect(3, 1, "after a timeout", "WISH begin view 1?")
	x.timeout(3)
	x.expect(3, 1, "after another timeout", "WISH begin view 1? repeat what you sent")
	x.wish(3, 1, 0)
	x.expect(3, 1, "after another wish")
	x.wish(3, 1, 1)
	x.expect(3, 1, "after a quorum of wishes", "ENTER in view 1: ready for no value")
}

// A process whose clock is slow only follows the wishes of the others. After view 0 it asks them to repeat what it may
// have missed, as if its own time were up.
func TestForcedFollowerAsks(t *testing.T) {
	x := newScript(t, 0)
	x.wish(3, 1, 0, 1)
	x.expect(3, 1, "follows in view 0", "WISH begin view 1?", "ENTER in view 1: ready for no value")
	x.wish(3, 2, 0, 1)
	x.expect(3, 1, "follows in view 1", "WISH begin view 2? repeat what you sent", "ENTER in view 2: ready for no value")
}

// A process that decided in view 0 answers a process that did not.
func TestForcedAnswerAfterDecision(t *testing.T) {
	x := newScript(t, 0)
	x.do(0, func(p *process, s *parley.Step) { p.Request(s, parley.Msg{Kind: parley.Propose, Body: a}) })
	x.deliver(0, 1, 2)
	x.flight = nil // process 3 has missed everything
	x.timeout(3)
	x.deliverIf(func(l letter) bool { return l.to == 1 })
	x.deliverIf(func(l letter) bool { return l.to == 0 })
	x.deliverIf(func(l letter) bool { return l.to == 3 })
	if !x.decided[3].is(a) {
		t.Errorf("process 3 has not decided")
	}
}

// A process repeats all that it has sent: to a process that asks for it, and after a restart to all, as far as it
// follows from the log.
func TestForcedRepetition(t *testing.T) {
	x := newScript(t, 1)
	x.say(1, 2, parley.Msg{Kind: Proposal, Body: a})
	for _, q := range []parley.ID{0, 1} {
		x.say(q, 2, parley.Msg{Kind: Echo, Body: a})
	}
	x.wish(2, 1, 0, 1)
	for _, q := range []parley.ID{0, 3} {
		x.say(q, 2, parley.Msg{Kind: Vouch, Body: b})
	}
	for _, q := range []parley.ID{0, 1, 3} {
		x.report(q, 2, 1, reported{})
	}
	x.flight = nil
	for k := range uint64(phases) {
		for _, q := range []parley.ID{0, 1, 3} {
			x.say(q, 2, parley.Msg{Kind: Vote, Seq: 1, Value: k + 1, Body: a})
		}
	}
	x.flight = nil
	x.say(3, 2, parley.Msg{Kind: Wish, Value: 1})
	log := []string{"ECHO echo a", "READY ready for a"}
	rest := []string{"ENTER in view 1: ready for a"}
	votes := []string{"VOTE view 1, vote 1: a", "VOTE view 1, vote 2: a", "VOTE view 1, vote 3: a",
		"VOTE view 1, vote 4: a", "DECIDED decided a"}
	wish := []string{"WISH begin view 1?"}
	var witness []string
	for _, q := range []parley.ID{0, 1, 3} {
		witness = append(witness, fmt.Sprintf("WITNESS claim of %v: ready for no value", q))
	}
	x.expect(2, 3, "asked to repeat", slices.Concat(log, wish, witness, []string{"VOUCH vouch for b"}, rest,
		[]string{"PROPOSE view 1: propose a"}, votes)...)
	x.restart(2)
	x.expect(2, 3, "restarted", slices.Concat(log, wish, rest, votes, []string{"WISH begin view 1? repeat what you sent"})...)
	if !x.decided[2].is(a) {
		t.Error("the restarted process has not decided")
	}
	// All that the others said arrives again. It has proposed in this view before, so it does not do so again.
	for _, q := range []parley.ID{0, 1, 3} {
		x.say(q, 2, parley.Msg{Kind: Echo, Body: a})
		x.report(q, 2, 1, reported{})
	}
	x.expect(2, 3, "restarted, and heard all", witness...)
}

// A process votes for a proposal of the leader only when it vouches for the value, although the value is safe.
func TestForcedVoteNeedsVouch(t *testing.T) {
	x := newScript(t, 0)
	x.wish(3, 1, 0, 1, 2)
	for _, q := range []parley.ID{0, 1, 2} {
		x.report(q, 3, 1, reported{})
	}
	x.say(1, 3, parley.Msg{Kind: Vouch, Body: a})
	x.flight = nil
	x.say(1, 3, parley.Msg{Kind: Proposal, Seq: 1, Body: a})
	x.expect(3, 0, "one process vouches")
	x.say(2, 3, parley.Msg{Kind: Vouch, Body: a})
	x.expect(3, 0, "two processes vouch", "VOUCH vouch for a", "VOTE view 1, vote 1: a")
}

// A restarted process repeats that it vouched for what it voted.
func TestForcedVouchOutlivesRestart(t *testing.T) {
	x := newScript(t, 0)
	x.wish(3, 1, 0, 1, 2)
	for _, q := range []parley.ID{0, 1, 2} {
		x.say(q, 3, parley.Msg{Kind: Vouch, Body: a})
		x.report(q, 3, 1, reported{})
	}
	x.say(1, 3, parley.Msg{Kind: Proposal, Seq: 1, Body: a})
	if got := x.sent(3, 0); !slices.Contains(got, "VOTE view 1, vote 1: a") {
		t.Fatalf("no vote: %q", got)
	}
	x.restart(3)
	if got := x.sent(3, 0); !slices.Contains(got, "VOUCH vouch for a") {
		t.Errorf("the restarted process does not vouch for what it voted: %q", got)
	}
}

// The leader of view 3 demands more than a voter: 2m+1 processes that vouch, and reports of phases 3 and 2.
func TestForcedThresholds(t *testing.T) {
	third := reported{votes: map[int][]vote{3: {{1, b}}, 2: {{1, b}}, 1: {{1, b}}}}
	for _, c := range []struct {
		what     string
		vouchers int // besides the process itself
		first    reported
		leads    string
		votes    bool
	}{
		{"one more voucher", 1, reported{}, "PROPOSE view 3: propose nothing", true},
		{"two more vouchers", 2, reported{}, "PROPOSE view 3: propose a", true},
		{"a vote 3 for b", 2, third, "", true},
	} {
		for _, id := range []parley.ID{3, 0} { // the leader, and a voter
			x := newScript(t, 0)
			said := x.procs[id].slot
			x.wish(id, 3, 1, 2)
			x.say(0, id, parley.Msg{Kind: Proposal, Body: a})
			for q := range parley.ID(c.vouchers) {
				x.say(1+q, id, parley.Msg{Kind: Vouch, Body: a})
			}
			if c.vouchers == 1 { // it vouches itself only if m+1 others do
				said.heard.vouch(id, a)
			}
			said.heard.peers[id].report.votes = c.first.list()
			for _, q := range []parley.ID{1, 2} {
				x.say(q, id, parley.Msg{Kind: Witness, Origin: id})
			}
			x.report(1, id, 3, reported{})
			x.flight = nil
			x.report(2, id, 3, reported{})
			if id == 3 {
				lead := slices.DeleteFunc(x.sent(3, 1), func(s string) bool { return s[:4] != "PROP" })
				if fmt.Sprint(lead) != "["+c.leads+"]" {
					t.Errorf("%s: the leader sent %q, %q is expected", c.what, lead, c.leads)
				}
				continue
			}
			x.say(3, id, parley.Msg{Kind: Proposal, Seq: 3, Body: a})
			if got := slices.Contains(x.sent(id, 1), "VOTE view 3, vote 1: a"); got != c.votes {
				t.Errorf("%s: voting is %v", c.what, got)
			}
		}
	}
}

// With more than m faulty processes, or a lost disk, nothing is promised. Lost messages and pauses only cost
// termination.
func TestPromises(t *testing.T) {
	for _, c := range []struct {
		what       string
		when       parley.RunConditions
		safe, live bool
	}{
		{"no fault", parley.RunConditions{N: 4, M: 1}, true, true},
		{"one liar", parley.RunConditions{N: 4, M: 1, Faulty: 1}, true, true},
		{"two liars", parley.RunConditions{N: 4, M: 1, Faulty: 2}, false, false},
		{"three processes", parley.RunConditions{N: 3, M: 1}, false, false},
		{"a lost disk", parley.RunConditions{N: 4, M: 1, Processes: parley.ProcessFaults{LostDisk: true}}, false, false},
		{"lost messages", parley.RunConditions{N: 4, M: 1, Network: parley.NetworkFaults{Lost: true}}, true, false},
		{"a pause", parley.RunConditions{N: 4, M: 1, Processes: parley.ProcessFaults{Paused: true}}, true, false},
	} {
		for k, p := range promises(c.when) {
			if want := c.safe && (k != 2 || c.live); p.Holds != want {
				t.Errorf("%s: %s is promised: %v", c.what, p.Property, p.Holds)
			}
		}
	}
}
