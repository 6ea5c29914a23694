package tetra

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"parley"
)

// reported is a report of view 3: a claim about view 0, and votes by phase.
type reported struct {
	claim []byte
	votes map[int][]vote
}

// list returns the votes in the order of phases.
func (r reported) list() (votes [phases][]vote) {
	for k := range votes {
		votes[k] = r.votes[k+1]
	}
	return votes
}

// hearing returns what a process hears if these processes enter a view with these reports.
func hearing(view uint64, all ...reported) *hearsay {
	h := newHearsay(0, 4, 1, 8)
	for q, r := range all {
		h.add(parley.ID(q), parley.Msg{Kind: Enter, Seq: view, Body: appendReport(nil, r.claim, r.list())})
	}
	return &h
}

// TestLimitsOfSafe checks each condition of the rule that makes a value safe: for voters in view 3, by votes of phases
// 4 and 1. Three processes are a quorum, and two include a correct one.
func TestLimitsOfSafe(t *testing.T) {
	none := reported{}
	ready := func(v []byte) reported { return reported{claim: v} }
	votes := func(four, one []vote) reported { return reported{votes: map[int][]vote{4: four, 1: one}} }
	for _, c := range []struct {
		name    string
		reports []reported
		a, b    bool // whether the value a, the value b is safe
	}{
		{"nobody was ready", []reported{none, none, none}, true, true},
		{"two reports", []reported{none, none}, false, false},
		{"one was ready", []reported{ready(b), none, none}, false, true},
		{"one of four was ready", []reported{ready(b), none, none, none}, true, true},
		{"two values", []reported{ready(b), ready(a), none}, false, false},
		{"a vote 4, two votes 1", []reported{
			votes([]vote{{2, b}}, []vote{{2, b}}), votes(nil, []vote{{2, b}}), none}, false, true},
		{"a vote 4, one vote 1", []reported{
			votes([]vote{{2, b}}, []vote{{2, b}}), none, none}, false, false},
		{"a vote 4 for the other value", []reported{
			votes([]vote{{2, b}}, []vote{{2, a}}), votes(nil, []vote{{2, a}}), none}, false, false},
		{"votes 1 before the vote 4", []reported{
			votes([]vote{{2, b}}, []vote{{1, b}}), votes(nil, []vote{{1, b}}), none}, false, false},
		{"a vote 4 before the votes 1", []reported{
			votes([]vote{{1, b}}, []vote{{2, a}}), votes(nil, []vote{{2, a}}), none}, true, false},
		{"votes 1 in two views", []reported{
			votes([]vote{{1, b}}, []vote{{1, b}}), votes(nil, []vote{{2, b}}), none}, false, true},
		{"two votes 4 of one process", []reported{
			votes([]vote{{1, a}, {2, b}}, []vote{{1, a}, {2, b}}), votes(nil, []vote{{2, b}}), none}, false, true},
	} {
		h := hearing(3, c.reports...)
		for _, v := range []struct {
			value []byte
			want  bool
		}{{a, c.a}, {b, c.b}} {
			if got := h.safe(3, v.value, 4, 1, h.some); got != v.want {
				t.Errorf("%s: safe(%s) is %v", c.name, v.value, got)
			}
			if h.safe(2, v.value, 4, 1, h.some) || h.safe(4, v.value, 4, 1, h.some) {
				t.Errorf("%s: reports of view 3 make %s safe in another view", c.name, v.value)
			}
		}
	}
	// Two reports of view 3 and one of view 2 make nothing safe, nor does a vote that a report of view 2 has.
	for _, r := range []reported{none, votes(nil, []vote{{1, a}})} {
		h := hearing(3, votes([]vote{{1, b}}, []vote{{1, a}}), none, none)
		early := hearing(2, none, none, none, r)
		h.peers[3], h.peers[2] = early.peers[3], early.peers[2]
		if h.safe(3, a, 4, 1, h.some) {
			t.Errorf("a report of view 2 makes a value safe in view 3")
		}
	}
}

// A leader needs a quorum of witnesses of each claim. For the others, two witnesses or the claim itself are enough.
func TestLimitsOfWitnesses(t *testing.T) {
	for _, c := range []struct {
		own            bool
		witnesses      int
		voters, leader bool
	}{
		{false, 1, false, false}, {false, 2, true, false}, {false, 3, true, true},
		{true, 1, true, false}, {true, 2, true, false}, {true, 3, true, true},
	} {
		h := newHearsay(0, 4, 1, 8)
		for q := range 3 {
			for w := range c.witnesses {
				h.peers[q].claims[(q+1+w)%4] = word{said: true}
			}
			h.peers[q].claims[q].said = c.own || h.peers[q].claims[q].said
		}
		if got := h.safeFirst(a, h.some); got != c.voters {
			t.Errorf("%+v: for voters it is %v", c, got)
		}
		counted := c
		if c.own { // the own word is one of the witnesses
			counted.leader = c.witnesses >= 2
		}
		if got := h.safeFirst(a, h.quorum); got != counted.leader {
			t.Errorf("%+v: for the leader it is %v", c, got)
		}
	}
}

// What no correct process sends is refused, and what one may send is not.
func TestLimitsOfMessages(t *testing.T) {
	long := []byte("ninebytes")
	msg := func(kind parley.Kind, seq, value uint64, body []byte) parley.Msg {
		return parley.Msg{Kind: kind, Seq: seq, Value: value, Body: body}
	}
	enter := func(claim []byte, list ...vote) parley.Msg {
		return msg(Enter, 3, 0, appendReport(nil, claim, [phases][]vote{list}))
	}
	many := []vote{{1, nil}}
	for k := range 5 {
		many = append(many, vote{1, fmt.Append(nil, k)})
	}
	for _, c := range []struct {
		from parley.ID
		m    parley.Msg
		why  string
	}{
		{2, msg(Decided+1, 0, 0, a), "message of no kind"},
		{2, parley.Msg{Kind: Echo, Origin: 1, Body: a}, "fields"},
		{2, msg(Echo, 1, 0, a), "fields"},
		{2, msg(Echo, 0, 1, a), "fields"},
		{2, msg(Wish, 1, 0, a), "fields"},
		{2, msg(Wish, 0, 0, nil), "no such view"},
		{2, msg(Wish, maxView+1, 0, nil), "no such view"},
		{2, msg(Enter, 0, 0, appendReport(nil, nil, [phases][]vote{})), "no such view"},
		{2, msg(Vote, 0, 1, a), "no such view"},
		{2, msg(Vote, 1, 0, a), "no such phase"},
		{2, msg(Vote, 1, 5, a), "no such phase"},
		{2, msg(Wish, 1, 2, nil), "no such phase"},
		{2, parley.Msg{Kind: Witness, Origin: 4}, "claim of no other process"},
		{2, parley.Msg{Kind: Witness, Origin: 2}, "claim of no other process"},
		{2, msg(Proposal, 0, 0, a), "does not lead"},
		{2, msg(Proposal, 1, 0, a), "does not lead"},
		{2, msg(Echo, 0, 0, long), "wrong size"},
		{2, msg(Vote, 1, 1, long), "wrong size"},
		{2, msg(Echo, 0, 0, nil), "wrong size"},
		{2, msg(Ready, 0, 0, nil), "wrong size"},
		{2, msg(Vouch, 0, 0, nil), "wrong size"},
		{0, msg(Proposal, 0, 0, nil), "wrong size"},
		{2, enter(long), "cannot be read"},
		{2, enter(nil, vote{1, long}), "cannot be read"},
		{2, enter(nil, vote{1, b}, vote{1, a}), "cannot be read"},
		{2, enter(nil, vote{1, a}, vote{2, a}), "cannot be read"},
		{2, enter(nil, vote{3, a}), "cannot be read"},
		{2, enter(nil, vote{0, a}), "cannot be read"},
		{2, enter(nil, many...), "cannot be read"},
		{2, msg(Enter, 3, 0, append(enter(nil).Body, 0)), "cannot be read"},
		{2, msg(Enter, 3, 0, binary.AppendUvarint(nil, 9)), "cannot be read"},
		{0, msg(Proposal, 0, 0, a), ""},
		{1, msg(Proposal, 1, 0, nil), ""},
		{2, parley.Msg{Kind: Witness, Origin: 1}, ""},
		{2, msg(Vote, 1, 4, nil), ""},
		{2, msg(Decided, 0, 0, nil), ""},
		{2, msg(Wish, 0, 1, nil), ""},
		{2, enter(nil, many[:5]...), ""},
		{2, enter(a, vote{2, nil}, vote{1, a}), ""},
	} {
		h := newHearsay(0, 4, 1, 8)
		if why := h.misfit(c.from, c.m); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s of process %d, %.40v: refused as %q, %q is expected", kinds[min(c.m.Kind, Decided)], c.from, c.m,
				why, c.why)
		}
	}
}

// Each process has room for n values for which it vouches, and no more. It does not use the room of others.
func TestLimitsOfVouching(t *testing.T) {
	h := newHearsay(0, 4, 1, 8)
	for k := range 9 {
		h.add(3, parley.Msg{Kind: Vouch, Body: fmt.Append(nil, "false", k)})
	}
	for k := range 4 {
		h.add(1, parley.Msg{Kind: Vouch, Body: fmt.Append(nil, "true", k)})
	}
	if len(h.vouched) != 8 {
		t.Errorf("two processes vouch for %d values, 8 are expected", len(h.vouched))
	}
}

// A process keeps its greatest wish, its last votes, its last report, and the first word of other kinds, whatever
// arrives late.
func TestLimitsOfLateMessages(t *testing.T) {
	h := newHearsay(0, 4, 1, 8)
	for _, view := range []uint64{7, 5} {
		v := a
		if view == 5 {
			v = b
		}
		h.add(3, parley.Msg{Kind: Wish, Seq: view})
		h.add(3, parley.Msg{Kind: Vote, Seq: view, Value: 2, Body: v})
		h.add(3, parley.Msg{Kind: Proposal, Seq: view, Body: v})
		h.add(3, parley.Msg{Kind: Enter, Seq: view, Body: appendReport(nil, v, [phases][]vote{})})
		h.add(3, parley.Msg{Kind: Ready, Body: v})
		h.add(3, parley.Msg{Kind: Decided, Body: v})
	}
	p := h.peers[3]
	if p.wish != 7 || p.votes[1].view != 7 || p.offer.view != 7 || p.report.view != 7 || !p.ready.is(a) ||
		!p.decided.is(a) || !p.claims[3].is(a) {
		t.Errorf("a late message replaces a later one: %+v", p)
	}
}

// Votes count together only if they are for one value in one view.
func TestLimitsOfVotes(t *testing.T) {
	h := newHearsay(0, 4, 1, 8)
	for q, x := range []vote{{2, a}, {2, a}, {1, a}, {2, b}} {
		h.add(parley.ID(q), parley.Msg{Kind: Vote, Seq: x.view, Value: 1, Body: x.value})
	}
	if x := h.elected(1); x.view > 0 {
		t.Errorf("elected: %q", x.value)
	}
	h.add(2, parley.Msg{Kind: Vote, Seq: 2, Value: 1, Body: a})
	if !h.elected(1).is(vote{2, a}) || h.elected(2).view > 0 {
		t.Error("three votes for a in view 2 elect something else")
	}
}

// A report has the last view of a vote for each value, and no vote of the view that it enters.
func TestLimitsOfReports(t *testing.T) {
	i := newProcess(Config{N: 4, M: 1, Wait: 1000}, 0).slot
	for _, x := range []vote{{1, b}, {2, a}, {3, b}, {4, nil}} { // the report has the last view for each value
		i.votes[0] = record(i.votes[0], x)
	}
	i.ready = word{true, b}
	i.begin(5)
	first := i.entry()
	i.votes[0] = record(i.votes[0], vote{5, a})
	claim, votes, ok := readReport(first.Body, 5, 4, 8)
	want := []vote{{4, nil}, {2, a}, {3, b}}
	if !ok || string(claim) != "b" || fmt.Sprint(votes[0]) != fmt.Sprint(want) || votes[1] != nil {
		t.Errorf("claim %q, votes %v, %v; %v is expected", claim, votes, ok, want)
	}
	// A report that was sent once is never taken back: not after a vote in this view for a value of an earlier vote, and
	// not after a restart.
	if again := i.entry(); !again.Equal(first) {
		t.Errorf("it repeats %q, and first said %q", again.Body, first.Body)
	}
	back := newProcess(Config{N: 4, M: 1, Wait: 1000}, 0).slot
	for _, rec := range [][]byte{
		valueRecord(Ready, b), voteRecord(1, vote{2, a}), voteRecord(1, vote{3, b}), voteRecord(1, vote{4, nil}),
		viewRecord(5), voteRecord(1, vote{5, a}),
	} {
		back.Replay(rec)
	}
	if again := back.entry(); !again.Equal(first) {
		t.Errorf("after a restart it says %q, and first said %q", again.Body, first.Body)
	}
}

// holder is a process that holds the data of no value until held is true.
type holder struct {
	*process
	held bool
}

func (h *holder) Holds([]byte) bool { return h.held }

// A process neither echoes a value nor vouches for it before it holds its data.
func TestHolds(t *testing.T) {
	for _, view := range []uint64{0, 1} {
		h := &holder{process: newProcess(Config{N: 4, M: 1, Wait: 1000}, 3)}
		h.slot = NewInstance(3, 0, 4, 1, 8, h)
		s := &parley.Step{Self: 3, N: 4}
		sent := func() (n int) {
			for _, e := range s.Effects {
				if e.Op == parley.OpSend && (e.Msg.Kind == Echo || e.Msg.Kind == Vouch) {
					n++
				}
			}
			return n
		}
		if view == 0 {
			h.slot.Receive(s, 0, parley.Msg{Kind: Proposal, Body: a})
		} else {
			for q := range parley.ID(3) {
				h.slot.Receive(s, q, parley.Msg{Kind: Wish, Seq: 1})
				h.slot.Receive(s, q, parley.Msg{Kind: Echo, Body: a})
			}
		}
		if h.slot.View() != view || sent() != 0 {
			t.Errorf("view %d: speaks for a value whose data it does not hold", h.slot.View())
		}
		h.held = true
		h.slot.Try(s)
		if sent() != 1 {
			t.Errorf("view %d: %d messages for a value whose data it holds, 1 is expected", view, sent())
		}
	}
}
