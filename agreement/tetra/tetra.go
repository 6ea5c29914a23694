// Package tetra implements Byzantine agreement on the value of one process, whose safety never rests on time. The
// article and the lecture (docs/explanation/sources.md) assume rounds for this. Here a late message can only delay the
// decision.
//
// The problem: one process, the source, has a value. All correct processes decide on the same value. If the source is
// correct, they decide on its value or on nothing. They decide on nothing only if some process timed out.
//
// The model: asynchronous messages, and processes that restart with their durable state. At most m of the n processes
// are faulty, and faulty processes may do anything. Messages are oral (unsigned): links only say which process sent a
// message. The bound: n > 3m. Every process decides if messages and clocks are timely from some moment on. Nobody
// needs to know this moment, nor the bound on delays.
//
// A quorum has more than (n+m)/2 processes, so two quorums share a correct process. View 0 is the broadcast of Bracha:
// the source proposes a value, each process echoes it, and a process is ready for a value that a quorum echoes. A
// quorum that is ready decides. If view 0 takes too long, processes wish for view 1, and a quorum of wishes begins it.
// Views from 1 on have leaders in turn. A leader proposes a value that is safe, and processes vote for it in four
// phases. A process votes in a phase if a quorum voted in the phase before. A quorum of votes in phase 4 decides.
//
// Why it is safe: on entering a view, each process reports its votes and for which value it was ready in view 0. A
// value is safe in a view if these reports show that no other value was decided in an earlier view, or ever will be.
// For view 0, a quorum must claim that it was ready for this value or for none. A quorum of n > 3m shares with each
// deciding quorum a correct process, whose claim is true. For later views, a quorum must have voted in phase 4 only up
// to some view, and in that view only for this value. This view is one in which m+1 processes voted for the value in
// phase 1, so one correct process did, and the value was safe there.
//
// Why it decides: a leader counts stricter than the others do. It proposes a value only if a quorum of witnesses
// confirms each claim, 2m+1 processes vouch that the source proposed the value, and reports of phases 3 and 2 show
// that it is safe. Then the correct processes soon know enough to vote for it, whatever the faulty processes say. If
// no value qualifies, the leader proposes nothing.
//
// # Decisions
//
// A process keeps one proposal of each leader. The model of this algorithm kept only the proposal of the greatest
// view. Motive: a faulty leader of a distant view would suppress all proposals before that view. Cost: n values of
// memory.
//
// Source: views from 1 on follow Yu, Losa and Wang, TetraBFT (PODC 2024). View 0 is Bracha, Asynchronous Byzantine
// agreement protocols (1987). Witnesses join the two, as acks of view changes do in Castro and Liskov, Practical
// Byzantine Fault Tolerance and Proactive Recovery (2002), section 5. Two things differ from TetraBFT: for each value,
// a process keeps the last view in which it voted for the value, not its last two votes; and view 1 is not safe for
// every value, because of view 0.
package tetra

import (
	"slices"

	"parley"
)

// The messages. Body is a value unless the comment says something else. An empty value means nothing.
const (
	// Proposal is the value that the leader of view Seq proposes. The source is the leader of view 0.
	Proposal parley.Kind = iota + 1
	// Echo says that the source proposed the value to its sender.
	Echo
	// Ready says that its sender is ready to decide on the value in view 0.
	Ready
	// Wish asks to begin view Seq. If Value is 1, the receiver answers with all that it has said so far.
	Wish
	// Enter says that its sender has entered view Seq. Body is its report, see appendReport.
	Enter
	// Witness says that process Origin claims, in its first Enter, that it is ready for the value, or for none.
	Witness
	// Vouch says that m+1 processes sent Echo or Vouch for the value.
	Vouch
	// Vote is a vote for the value in phase Value of view Seq. Phases are 1 to 4.
	Vote
	// Decided says that its sender has decided on the value.
	Decided
)

// phases is the number of phases of a view.
const phases = 4

// maxView is the greatest view of any message. Views double in length, so no run comes near it.
const maxView = 1 << 40

// Owner is the machine around an instance.
type Owner interface {
	// Holds reports whether this process holds the data that a value stands for. A process does not speak for a value
	// whose data it does not hold. When the answer for a value becomes true, the owner calls Try.
	Holds(value []byte) bool
	// Entered says that the process has entered a view. The owner then calls Timeout if the view takes too long, and
	// again and again until the process enters another view or decides.
	Entered(s *parley.Step, view uint64)
	// Decided receives the decision, once per incarnation of the process. nil means nothing.
	Decided(s *parley.Step, value []byte)
}

// Instance is one process's part in one agreement. Its clauses are the clauses of a machine. An instance that has
// decided still takes part in views, because the others may need it for a quorum.
type Instance struct {
	self  parley.ID
	owner Owner

	memory
	// Volatile.
	wished   uint64 // the greatest view that it wished for
	proposed uint64 // the last view in which it proposed as the leader
	heard    hearsay
}

// NewInstance returns the part of process self, in an agreement of n processes on the value of the source, which
// tolerates m faults. No value has more than limit bytes.
func NewInstance(self, source parley.ID, n, m, limit int, owner Owner) *Instance {
	return &Instance{self: self, owner: owner, heard: newHearsay(source, n, m, limit)}
}

// Propose: upon request v at the source in view 0, the first one: given := v; Append; send PROPOSE(0, v) to all.
func (i *Instance) Propose(s *parley.Step, value []byte) {
	if i.self != i.heard.source || i.given.said || i.view > 0 || len(value) == 0 {
		return
	}
	i.say(s, Proposal, &i.given, value)
	i.Try(s)
}

// Timeout: upon timeout, not decided: wished := max(wished, view+1); send WISH(wished).
func (i *Instance) Timeout(s *parley.Step) {
	if i.decision.said {
		return
	}
	again := i.wished > i.view
	i.wished = max(i.wished, i.view+1)
	i.wish(s, again)
	i.Try(s)
}

// Restart follows the Replay of all records. The process repeats what it said, because others may have missed it, and
// asks the others to do the same.
func (i *Instance) Restart(s *parley.Step) {
	i.wished, i.proposed = i.view, i.view // in this view it may have proposed before, so it does not propose again
	for _, x := range i.votes[0] {
		if len(x.value) > 0 { // it vouched for the value before it voted for it
			i.heard.vouch(i.self, x.value)
		}
	}
	for _, m := range i.said() {
		i.sendAll(s, m)
	}
	i.Ask(s)
	if i.decision.said {
		i.owner.Decided(s, i.decision.value)
	}
	i.Try(s)
}

// Receive handles a message of the instance.
func (i *Instance) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if why := i.heard.misfit(from, m); why != "" {
		s.Refuse(from, why)
		return
	}
	i.take(s, from, m)
	i.Try(s)
}

// take records a message, and answers it if the answer depends on nothing else.
func (i *Instance) take(s *parley.Step, from parley.ID, m parley.Msg) {
	fresh := i.heard.add(from, m)
	switch {
	case from == i.self:
	// upon the first ENTER from p: send WITNESS(p, claim) to all
	case m.Kind == Enter && fresh:
		claim := i.heard.peers[from].claims[from].value
		i.sendAll(s, parley.Msg{Kind: Witness, Origin: from, Body: claim})
	// upon WISH from q that asks for it: repeat to q all that was said
	case m.Kind == Wish && m.Value == 1:
		for _, m := range i.said() {
			s.Send(from, m)
		}
	// upon WISH(r > 0) from q, decided: send DECIDED to q
	case m.Kind == Wish && m.Seq > 0 && i.decision.said:
		s.Send(from, parley.Msg{Kind: Decided, Body: i.decision.value})
	}
}

// say makes a first word durable, and sends it to all.
func (i *Instance) say(s *parley.Step, kind parley.Kind, w *word, value []byte) {
	*w = word{true, value}
	s.Append(valueRecord(kind, value))
	i.sendAll(s, parley.Msg{Kind: kind, Body: value})
}

// sendAll sends to all processes, to the process itself in the same step.
func (i *Instance) sendAll(s *parley.Step, m parley.Msg) {
	s.SendAll(m)
	i.take(s, i.self, m)
}

// Ask asks all others to repeat what they have said.
func (i *Instance) Ask(s *parley.Step) { s.SendAll(parley.Msg{Kind: Wish, Seq: i.view, Value: 1}) }

// Backed reports whether m+1 processes speak for a value, so that a correct process holds its data, or it is the
// decision.
func (i *Instance) Backed(value []byte) bool {
	return i.heard.who(value).Len() >= i.heard.some || i.decision.is(value)
}

// Wanted returns the values that are backed but whose data this process does not hold.
func (i *Instance) Wanted() (out [][]byte) {
	for _, x := range i.heard.vouched {
		if x.who.Len() >= i.heard.some && !i.holds(x.value) {
			out = append(out, x.value)
		}
	}
	if v := i.decision.value; !i.holds(v) && i.heard.who(v).Len() < i.heard.some {
		out = append(out, v)
	}
	return out
}

// Knows reports whether process q said that it has decided.
func (i *Instance) Knows(q parley.ID) bool { return i.heard.peers[q].decided.said }

// Try takes all steps that are possible now. Each step requests an effect.
func (i *Instance) Try(s *parley.Step) {
	for before := -1; before < s.Mark(); {
		before = s.Mark()
		if i.view == 0 {
			i.vouchFirst(s)
			i.becomeReady(s)
		}
		i.decide(s)
		i.followWish(s)
		i.enter(s)
		if i.view > 0 {
			i.vouch(s)
			i.lead(s)
			i.vote(s)
		}
	}
}

// vouchFirst: PROPOSE(0, v) heard, holds(v), no echo: echo := v; Append; send ECHO(v) to all.
func (i *Instance) vouchFirst(s *parley.Step) {
	if v := i.heard.first; v.said && !i.echo.said && i.holds(v.value) {
		i.say(s, Echo, &i.echo, v.value)
	}
}

// becomeReady: ECHO(v) of Q, or READY(v) of m+1, no ready: ready := v; Append; send READY(v) to all.
func (i *Instance) becomeReady(s *parley.Step) {
	if i.ready.said {
		return
	}
	v := i.heard.common(echoes, i.heard.quorum)
	if !v.said {
		v = i.heard.common(readies, i.heard.some)
	}
	if v.said {
		i.say(s, Ready, &i.ready, v.value)
	}
}

// decide, in any view: READY(v) of Q, or VOTE(r, 4, v) of Q for one r, or DECIDED(v) of m+1, not decided: decided :=
// v; Append; indicate; if view > 0 send DECIDED(v) to all.
func (i *Instance) decide(s *parley.Step) {
	if i.decision.said {
		return
	}
	v := i.heard.common(readies, i.heard.quorum)
	if x := i.heard.elected(phases); !v.said && x.view > 0 {
		v = word{true, x.value}
	}
	if !v.said {
		v = i.heard.common(decisions, i.heard.some)
	}
	if !v.said {
		return
	}
	i.decision = v
	s.Append(valueRecord(Decided, v.value))
	if i.view > 0 {
		i.sendAll(s, parley.Msg{Kind: Decided, Body: v.value})
	}
	i.owner.Decided(s, v.value)
}

// followWish: m+1 wish for >= x, x > max(wished, view), x the greatest such: wished := x; send WISH(x) to all.
func (i *Instance) followWish(s *parley.Step) {
	if x := i.heard.wished(i.heard.some); x > max(i.wished, i.view) {
		i.wished = x
		i.wish(s, false)
	}
}

// wish sends WISH(wished) to all. If this process wishes again, or a view after view 0 failed, it may have missed a
// message. Then it asks the others to repeat what they said.
func (i *Instance) wish(s *parley.Step, again bool) {
	m := parley.Msg{Kind: Wish, Seq: i.wished}
	if again || i.view > 0 {
		m.Value = 1
	}
	i.sendAll(s, m)
}

// enter: Q wish for >= x > view, x the greatest such: view := x; Append; send ENTER(x, ready, votes) to all.
func (i *Instance) enter(s *parley.Step) {
	x := i.heard.wished(i.heard.quorum)
	if x <= i.view {
		return
	}
	i.begin(x)
	s.Append(viewRecord(x))
	i.sendAll(s, i.entry())
	if !i.decision.said {
		i.owner.Entered(s, x)
	}
}

// vouch: v of which m+1 say ECHO(v) or VOUCH(v), holds(v), not said by this process: send VOUCH(v) to all.
func (i *Instance) vouch(s *parley.Step) {
	for _, x := range i.heard.vouched {
		if x.who.Len() >= i.heard.some && !x.who.Has(i.self) && i.holds(x.value) {
			i.sendAll(s, parley.Msg{Kind: Vouch, Body: x.value})
		}
	}
}

// lead: leader(r), not proposed: if some v has ECHO/VOUCH of 2m+1, its own too, and safe(v, 3, 2, Q): send PROPOSE(r,
// v) to all, else if safe(nothing, 3, 2, Q): send PROPOSE(r, nothing) to all.
func (i *Instance) lead(s *parley.Step) {
	h := &i.heard
	if h.leader(i.view) != i.self || i.proposed >= i.view {
		return
	}
	at := slices.IndexFunc(h.vouched, func(x vouched) bool {
		return x.who.Len() >= 2*h.m+1 && x.who.Has(i.self) && h.safe(i.view, x.value, 3, 2, h.quorum)
	})
	var v []byte
	if at >= 0 {
		v = h.vouched[at].value
	} else if !h.safe(i.view, nil, 3, 2, h.quorum) {
		return
	}
	i.proposed = i.view
	i.sendAll(s, parley.Msg{Kind: Proposal, Seq: i.view, Body: v})
}

// vote: PROPOSE(r, v) of leader(r), v nothing or vouched for by this process and held, no vote 1 in r, safe(v, 4, 1,
// m+1): vote (r, 1, v). VOTE(r, k-1, v) of Q, no vote k in r: vote (r, k, v).
func (i *Instance) vote(s *parley.Step) {
	h := &i.heard
	offer := h.peers[h.leader(i.view)].offer
	if offer.view == i.view && !i.voted(1) &&
		(len(offer.value) == 0 || h.who(offer.value).Has(i.self) && i.holds(offer.value)) &&
		h.safe(i.view, offer.value, 4, 1, h.some) {
		i.cast(s, 1, offer.value)
	}
	for k := 2; k <= phases; k++ {
		if x := h.elected(k - 1); x.view == i.view && !i.voted(k) {
			i.cast(s, k, x.value)
		}
	}
}

// cast: votes[k][v] := r; Append; send VOTE(r, k, v) to all.
func (i *Instance) cast(s *parley.Step, phase int, value []byte) {
	x := vote{i.view, value}
	i.votes[phase-1] = record(i.votes[phase-1], x)
	s.Append(voteRecord(phase, x))
	i.sendAll(s, parley.Msg{Kind: Vote, Seq: i.view, Value: uint64(phase), Body: value})
}

// holds reports whether the process may speak for a value. Nothing stands for no data.
func (i *Instance) holds(value []byte) bool { return len(value) == 0 || i.owner.Holds(value) }

// said returns all that this process has said and must be able to repeat.
func (i *Instance) said() (out []parley.Msg) {
	h := &i.heard
	add := func(said bool, m parley.Msg) {
		if said {
			out = append(out, m)
		}
	}
	add(i.given.said, parley.Msg{Kind: Proposal, Body: i.given.value})
	add(i.echo.said, parley.Msg{Kind: Echo, Body: i.echo.value})
	add(i.ready.said, parley.Msg{Kind: Ready, Body: i.ready.value})
	add(i.wished > 0, parley.Msg{Kind: Wish, Seq: i.wished})
	for q := range parley.ID(h.n) {
		w := h.peers[q].claims[i.self]
		add(w.said && q != i.self, parley.Msg{Kind: Witness, Origin: q, Body: w.value})
	}
	for _, x := range h.vouched {
		add(x.who.Has(i.self) && !i.echo.is(x.value), parley.Msg{Kind: Vouch, Body: x.value})
	}
	add(i.view > 0, i.entry())
	offer := h.peers[i.self].offer
	add(i.view > 0 && i.view == offer.view, parley.Msg{Kind: Proposal, Seq: i.view, Body: offer.value})
	for k := range i.votes {
		x := latest(i.votes[k])
		add(x.view > 0, parley.Msg{Kind: Vote, Seq: x.view, Value: uint64(k + 1), Body: x.value})
	}
	add(i.decision.said, parley.Msg{Kind: Decided, Body: i.decision.value})
	return out
}
