package byzantine

import (
	"parley"
	"parley/agreement/tetra"
)

// slot is one agreement on a cut. The agreement is on the digest of the cut.
type slot struct {
	p      *process
	number uint64
	owner  parley.ID
	in     *tetra.Instance

	first  digest     // of the first cut that the owner proposed
	cuts   []known    // cuts whose batches this process holds
	heard  []known    // by process: the last cut that it sent
	mine   uint64     // up to this number own batches are in a cut of the owner
	timing bool       // the timer of the view runs, or ran
	closed bool       // a quorum has decided
	asked  parley.Set // the processes that were asked to repeat what they said
	looks  int        // how often this process looked around in the slot
	began  parley.Tick
}

// known is a cut with its digest. An empty body means none.
type known struct {
	digest digest
	body   []byte
}

func newKnown(body []byte) known { return known{digestOf(body), body} }

// value is the value of an agreement on the cut, or nil, which stands for nothing.
func (c *known) value() []byte {
	if len(c.body) == 0 {
		return nil
	}
	return c.digest[:]
}

func newSlot(p *process, number uint64, owner parley.ID) *slot {
	k := &slot{p: p, number: number, owner: owner, heard: make([]known, p.c.N)}
	k.in = tetra.NewInstance(p.self, owner, p.c.N, p.c.M, len(digest{}), k)
	return k
}

// Holds reports whether this process holds a cut and the batches of the cut.
func (k *slot) Holds(value []byte) bool { return len(find(k.cuts, value).body) > 0 }

// find returns the cut with a digest, if it is in a list.
func find(list []known, value []byte) known {
	for _, c := range list {
		if len(c.body) > 0 && string(c.digest[:]) == string(value) {
			return c
		}
	}
	return known{}
}

// Entered sets the timer of the view.
func (k *slot) Entered(s *parley.Step, view uint64) {
	k.timing = true
	s.SetTimer(viewTimer, k.p.wait()<<min(view, doublings))
}

// Decided stops the timer. The process delivers the cut when it holds all batches of it.
func (k *slot) Decided(s *parley.Step, _ []byte) { s.StopTimer(viewTimer) }

// run runs a clause of the agreement, and gives what it sends and appends the form that has a slot: Seq is the slot,
// and Value the view and the former Value. PROPOSE carries the cut, not only its digest.
func (k *slot) run(s *parley.Step, clause func(in *tetra.Instance)) {
	mark := s.Mark()
	clause(k.in)
	s.Take(mark, func(e *parley.Effect) bool {
		m := &e.Msg
		switch e.Op {
		case parley.OpSend:
			if !k.p.member {
				return true // it only listens
			}
			m.Seq, m.Value = k.number, m.Seq<<viewShift|m.Value
			if m.Kind == tetra.Proposal && len(m.Body) > 0 {
				m.Body = find(k.cuts, m.Body).body
			}
		case parley.OpAppend:
			if !k.p.c.Durable {
				return true
			}
			m.Body = record(slotRecord, k.number, m.Body)
			k.p.logged += len(m.Body)
		}
		return false
	})
}

// viewShift is the number of bits of Value below the view: they hold a phase.
const viewShift = 3

// doublings is the number of views after which views no longer get longer.
const doublings = 20

// receive handles a message of this slot.
func (k *slot) receive(s *parley.Step, from parley.ID, m parley.Msg) {
	m.Seq, m.Value = m.Value>>viewShift, m.Value&(1<<viewShift-1)
	if m.Kind == tetra.Proposal && len(m.Body) > 0 {
		view := m.Seq
		if m.Body = k.hear(from, m.Body); from == k.owner && view == 0 && k.first == (digest{}) {
			copy(k.first[:], m.Body)
		}
	}
	k.run(s, func(in *tetra.Instance) { in.Receive(s, from, m) })
}

// ask asks a process to repeat what it said. If that process is faulty, only the two of them have work.
func (k *slot) ask(s *parley.Step, q parley.ID) {
	if q != k.p.self {
		k.run(s, func(in *tetra.Instance) { s.Send(q, parley.Msg{Kind: tetra.Wish, Seq: in.View(), Value: 1}) })
	}
}

// hear notes the cut that a process sent, and returns its digest.
func (k *slot) hear(from parley.ID, body []byte) []byte {
	c := newKnown(body)
	k.heard[from] = c
	if list, ok := readCut(body, k.p.c.N); ok && from == k.owner {
		k.mine = max(k.mine, list[k.p.self].number)
	}
	return c.digest[:]
}

// hold notes the cuts whose batches this process holds, if m+1 processes speak for them or the owner proposed them
// first. The agreement may then speak for them. If m+1 processes speak for a cut, a correct one received the batches
// from their sources. Only then does this process request missing batches from others.
func (k *slot) hold(s *parley.Step) {
	for from, c := range k.heard {
		if len(c.body) == 0 || k.Holds(c.digest[:]) {
			continue
		}
		list, _ := readCut(c.body, k.p.c.N)
		if c.digest == k.first && k.p.useful(list) ||
			k.in.Backed(c.digest[:]) && k.complete(s, parley.ID(from), list) {
			k.keep(s, c)
		}
	}
}

// keep notes a cut, durably: if all processes crash, m+1 correct processes must know every cut that may be decided.
func (k *slot) keep(s *parley.Step, c known) {
	k.cuts = append(k.cuts, c)
	k.p.append(s, cutRecord, k.number, c.body)
}

// complete reports whether this process holds all batches of a cut. It requests from another process the first batch
// that is missing in each lane.
func (k *slot) complete(s *parley.Step, from parley.ID, c cut) bool {
	whole := true
	for i, t := range c {
		if lack, _ := k.p.lanes[i].follow(t); lack != (tip{}) {
			whole = false
			k.p.fetch(s, from, want{lane: parley.ID(i), tip: lack})
		}
	}
	return whole
}

// request requests the cuts that others speak for and that this process has not heard. In view 0 the cut is probably
// on its way until the process looks around.
func (k *slot) request(s *parley.Step, now bool) {
	if _, decided := k.in.Decision(); !now && !decided && k.in.View() == 0 {
		return
	}
	for _, v := range k.in.Wanted() {
		if len(find(k.heard, v).body) == 0 {
			w := want{}
			copy(w.tip.digest[:], v)
			k.p.fetch(s, k.p.self, w)
		}
	}
}

// expire: the view takes too long. If no correct process spoke, and none claims to hold what waits, the owner is not to
// blame.
func (k *slot) expire(s *parley.Step) {
	view := k.in.View()
	if k.spoken() || k.p.backed() {
		k.run(s, func(in *tetra.Instance) { in.Timeout(s) })
	}
	if _, decided := k.in.Decision(); !decided && k.in.View() == view {
		k.Entered(s, view)
	}
}

// decisions returns how many processes say that they have decided.
func (k *slot) decisions() (count int) {
	for q := range parley.ID(k.p.c.N) {
		if k.in.Knows(q) {
			count++
		}
	}
	return count
}

// spoken reports whether this process or a correct one has spoken in the slot.
func (k *slot) spoken() bool { return k.in.Spoke() || k.p.peers.speakers(k.number) > k.p.c.M }

// close ends the part of this process in the slot, which it has delivered, when a quorum has decided the slot: m+1
// correct processes know the decision, and tell it to every process that asks.
func (k *slot) close() {
	beyond := 0
	for q := range parley.ID(k.p.c.N) {
		if k.p.peers[q].at > k.number || q == k.p.self || k.in.Knows(q) {
			beyond++
		}
	}
	k.closed = k.closed || 2*beyond > k.p.c.N+k.p.c.M
}

func (k *slot) state(v *parley.Vars) {
	v.DurableIf(k.p.c.Durable, func() {
		parley.Slice(v, "byzantine", &k.cuts, func(_ int, c *known) { c.state(v) })
		v.Bool("closed", &k.closed)
	})
	v.Machine("agreement", k.in)
	parley.PerProcess(v, "heard", k.heard, func(_ parley.ID, c *known) { c.state(v) })
	first := k.first[:]
	v.Bytes("first cut of the owner", &first)
	copy(k.first[:], first)
	parley.Num(v, "mine", &k.mine)
	v.Bool("timing", &k.timing)
	v.Set("asked", &k.asked)
	parley.Num(v, "looks", &k.looks)
	v.Time("began", &k.began)
}

// stateSlot visits a slot of a process. Only its durable part survives a crash.
func (p *process) stateSlot(v *parley.Vars, name string, k **slot) {
	if v.Skips() && !p.c.Durable {
		return
	}
	has, number, owner := *k != nil, uint64(0), parley.ID(0)
	if has {
		number, owner = (*k).number, (*k).owner
	}
	v.DurableIf(p.c.Durable, func() {
		if v.Bool(name, &has); has {
			parley.Num(v, "number", &number)
			v.ID("owner", &owner)
		}
	})
	switch {
	case !has:
		*k = nil
		return
	case v.Loading():
		*k = newSlot(p, number, owner)
	}
	(*k).state(v)
}

func (c *known) state(v *parley.Vars) {
	v.Bytes("cut", &c.body)
	if v.Loading() && len(c.body) > 0 {
		c.digest = digestOf(c.body)
	}
}
