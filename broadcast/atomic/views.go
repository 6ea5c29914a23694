package atomic

import (
	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
	"parley/broadcast/views"
	"parley/membership/group"
)

// InViews returns the form that tolerates false suspicions, on the views of membership/group. A problem.Request
// broadcasts to all members of the view, and a problem.RequestTo to the members that it names. A delivery has the
// sender of the message and, as Seq, its position among the deliveries of the process. With c.Durable a process that
// crashed resumes from its log (see group.Config). A joiner receives the state of its sponsor. Then, until it is a
// member, it receives the deliveries of the sponsor and the messages of the cut that are addressed to it.
func InViews(c group.Config) parley.Protocol {
	p := group.New(c, LayerSpec(c))
	p.Name = "atomic-views"
	p.Title = "uniform atomic broadcast to selected receivers, in two phases, a log round and views"
	p.Paper = "lecture, atomic broadcast using message queues; Birman and Joseph 1987"
	views.Complete(&p, c, problem.Of(problem.Integrity, problem.UniformTotalOrder, problem.UniformPrefix,
		problem.UniformAgreement, problem.Validity, problem.Delivery),
		func(a parley.RunConditions) []parley.Promise { return promises(c.WithDefaults(), a) })
	p.Cost = costInViews
	p.Flags = parley.Flags(c, group.Flags, InViews)
	return p
}

// LayerSpec describes the form in views as a layer of a group.
func LayerSpec(c group.Config) group.LayerSpec {
	return group.LayerSpec{
		Name: "atomic", Kinds: kinds, Requests: []parley.Kind{parley.Carried, problem.CarryTo},
		New:     func(self parley.ID, n int) group.Layer { return newLayer(self, n, c.Durable) },
		Explain: explain(c.N, "message"),
	}
}

// costInViews counts the messages on links of one broadcast to all, including the sender, in a view of n:
// those of the lecture's form, and from each to all others that the final priority is logged. It takes four
// message delays.
func costInViews(n, m int) parley.Cost {
	total := cost(n, m)
	logged := parley.Traffic{Messages: uint64(n) * uint64(n-1)}
	return parley.Cost{Rounds: 4, PerRound: append(total.PerRound, logged)}
}

// promises returns which properties of the form in views hold under the conditions of a run.
func promises(c group.Config, a parley.RunConditions) []parley.Promise {
	lacks := ""
	if a.Network.Doubled || a.Network.Reordered {
		lacks = "a link doubled messages or changed their order"
	}
	const logged = "every receiver has logged each message that any process has delivered, and reports it"
	out := []parley.Promise{
		parley.Promised(problem.Integrity, logged, lacks), parley.Promised(problem.UniformTotalOrder, logged, lacks),
	}
	// A joiner delivers only what is addressed to it, and continues from the sponsor's position.
	slow := a.Processes.Suspected || a.Processes.Paused || a.Network.Late
	mute := a.Network.Lost || a.Network.Cut || a.Network.Disconnected
	if lacks == "" && (a.Processes.Restarted || a.Processes.LostDisk || c.Return && (slow || mute) ||
		c.Initial != parley.Everyone(c.N)) {
		lacks = "a process that joins gets the state of a member, but not the earlier deliveries"
	}
	out = append(out, parley.Promised(problem.UniformPrefix, logged, lacks))
	switch {
	case lacks != "":
	case slow:
		lacks = "a process that is up may be excluded, and then receives nothing more"
	case ballot.Bound(a.N, a.Faulty) != nil || a.Processes.Minority:
		lacks = "a view needs a majority of all processes, but fewer processes are up and connected"
	case mute:
		lacks = "a process whose messages do not arrive may be excluded"
	}
	return append(out, parley.Promised(problem.UniformAgreement, logged, lacks),
		parley.Promised(problem.Validity, logged, lacks), problem.Promise(a, problem.Delivery, ""))
}

// layer is one member of the form in views. All its state belongs to one view. The group passes nothing to it
// after it has reported.
type layer struct {
	self    parley.ID
	n       int
	durable bool
	view    group.View

	sent    uint64   // own messages
	out, in []uint64 // by process: messages sent on the link, and received
	queue
	own   problem.Sorted[name, own] // own messages that not all receivers have logged
	last  Priority                  // of the last message delivered
	inbox []message                 // scratch: what it sent to itself in this step
}

// own is a message of this member, on the sender's side.
type own struct {
	name
	to       parley.Set // including non-members, which may join
	body     []byte
	proposed parley.Set // the members that have proposed
	highest  Priority   // of the proposals
	final    bool       // highest is the final priority, and was multicast
	logged   parley.Set // the receivers that have logged it
}

func newLayer(self parley.ID, n int, durable bool) *layer {
	return &layer{self: self, n: n, durable: durable, out: make([]uint64, n), in: make([]uint64, n)}
}

// present returns the receivers of a message that are members of the view.
func (l *layer) present(to parley.Set) parley.Set {
	return to.Minus(to.Minus(l.view.Members))
}

// Request: hand the message to the receivers, which are members of the view.
func (l *layer) Request(s *parley.Step, m parley.Msg) {
	to, body, err := problem.Decode(m, l.n)
	if err != nil {
		s.Refuse(s.Self, err.Error())
		return
	}
	if l.present(to) == (parley.Set{}) {
		return // no member would deliver it
	}
	l.sent++
	o := own{name: name{l.self, l.sent}, to: to, body: body}
	l.own.Put(o.name, o)
	l.multicast(s, to, message{kind: Req, name: o.name, to: to, body: body})
	l.settleDown(s)
}

// Receive handles a message of another member in this view. Links do not reorder: a message that is not the
// next one of its link shows that some are missing.
func (l *layer) Receive(s *parley.Step, from parley.ID, q parley.Msg) (gap bool) {
	m, err := decode(q, from, l.n)
	switch {
	case err != nil:
		s.Refuse(from, err.Error())
		return false
	case m.mark <= l.in[from]:
		s.Refuse(from, "message that came before")
		return false
	case m.mark > l.in[from]+1:
		return true
	}
	l.in[from]++
	l.hear(s, from, m)
	l.settleDown(s)
	return false
}

// settleDown handles what this member has sent to itself.
func (l *layer) settleDown(s *parley.Step) {
	for len(l.inbox) > 0 {
		m := l.inbox[0]
		l.inbox = l.inbox[1:]
		l.hear(s, l.self, m)
	}
	l.inbox = nil
}

// hear handles a message at its receivers and at its sender.
func (l *layer) hear(s *parley.Step, from parley.ID, m message) {
	e := l.held.At(m.name)
	switch {
	// upon Req, not held: hold it with a priority above all, and propose that.
	case m.kind == Req && e == nil && m.sender == from && m.to.Has(l.self) && !l.exhausted():
		e = l.hold(l.self, m.name, m.to, m.body)
		l.record(s, *e)
		l.send(s, from, message{kind: Prop, name: m.name, priority: e.priority})
	// upon Prop from all receivers: the highest is final; tell them.
	case m.kind == Prop && l.own.At(m.name) != nil:
		l.proposal(s, from, m)
	// upon Final, held and not final: record it, and tell receivers and sender.
	case m.kind == Final && e != nil && e.state == Undeliverable && m.sender == from:
		l.settle(e, m.priority)
		l.record(s, *e)
		to := e.to
		to.Add(m.sender) // which is a member
		l.multicast(s, to, message{kind: Logged, name: m.name})
	// upon Logged: when all receivers have logged it, it can be delivered.
	case m.kind == Logged && (e != nil || l.own.At(m.name) != nil):
		l.noted(from, m.name)
		l.deliver(s)
	default:
		s.Refuse(from, "message that does not fit")
	}
}

// proposal records a proposal. The final priority is the highest of those of all receivers.
func (l *layer) proposal(s *parley.Step, from parley.ID, m message) {
	o := l.own.At(m.name)
	if o.final || !o.to.Has(from) {
		s.Refuse(from, "proposal that nobody waits for")
		return
	}
	o.proposed.Add(from)
	o.highest = later(o.highest, m.priority)
	if o.proposed == l.present(o.to) {
		o.final = true
		l.multicast(s, o.to, message{kind: Final, name: o.name, priority: o.highest})
	}
}

// noted records, as a receiver and as the sender, that a receiver has logged a message. The sender drops a
// message that all have logged.
func (l *layer) noted(by parley.ID, n name) {
	if e := l.held.At(n); e != nil {
		e.logged.Add(by)
	}
	if o := l.own.At(n); o != nil {
		o.logged.Add(by)
		if l.present(o.to).Minus(o.logged) == (parley.Set{}) {
			l.own.Drop(n)
		}
	}
}

// deliver delivers while the message with the lowest priority has its final one, and all its receivers have
// logged that. So what any process has delivered is in the report of every receiver, or delivered there too.
func (l *layer) deliver(s *parley.Step) {
	for h := l.head(); h != nil && h.state == Deliverable; h = l.head() {
		if l.present(h.to).Minus(h.logged) != (parley.Set{}) {
			return
		}
		l.last = h.priority
		l.handUp(s, h.sender, h.to, h.body)
		l.held.Drop(h.name)
	}
}

// handUp delivers a message, and passes its receivers to the group.
func (l *layer) handUp(s *parley.Step, sender parley.ID, to parley.Set, body []byte) {
	m := problem.Request(body)
	if to != parley.Everyone(l.n) {
		m = problem.RequestTo(to, body)
	}
	m.Origin = sender
	s.Deliver(sender, m)
}

// multicast sends to each receiver in the view, with the number of the message on that link.
func (l *layer) multicast(s *parley.Step, to parley.Set, m message) {
	for id := range l.present(to).All() {
		if id == l.self {
			l.inbox = append(l.inbox, m)
			continue
		}
		l.out[id]++
		m.mark = l.out[id]
		s.Send(id, m.encode())
	}
}

func (l *layer) send(s *parley.Step, to parley.ID, m message) { l.multicast(s, parley.SetOf(to), m) }

// Timeout does nothing: the layer sets no timers.
func (l *layer) Timeout(*parley.Step, parley.Timer) {}

// Waiting reports whether a message is held: the link that would bring what is missing may have broken after
// its last message.
func (l *layer) Waiting() bool { return len(l.held) > 0 }

// Oldest returns the number of the first own message that not all receivers have logged, or 0.
func (l *layer) Oldest() uint64 {
	if len(l.own) == 0 {
		return 0
	}
	return l.own[0].k
}

// record makes what this member holds durable, before it proposes or reports that it has logged a final
// priority. A message for others only is not recorded: if its sender crashes, it may be lost.
func (l *layer) record(s *parley.Step, e entry) {
	if l.durable {
		if e.state == Deliverable {
			e.body = nil // recorded with the proposal
		}
		s.Append(appendItems(nil, []entry{e}))
	}
}

// Replay restores a record of this view. The member holds again what it had delivered since its log was
// compacted.
func (l *layer) Replay(rec []byte) bool {
	items, ok := readItems(parley.Reader{Rest: rec}, l.n, maxNumber)
	if !ok || len(items) != 1 {
		return false
	}
	it := items[0]
	e := l.held.At(it.name)
	switch {
	case it.state == Undeliverable && e == nil:
		l.held.Put(it.name, it)
		return true
	case it.state == Deliverable && e != nil:
		l.settle(e, it.priority)
		return true
	}
	return false
}

// State visits the state.
func (l *layer) State(v *parley.Vars) {
	v.DurableIf(l.durable, func() {
		parley.Num(v, "view", &l.view.Number)
		v.Set("members", &l.view.Members)
		l.queue.visit(v)
		l.last.visit(v)
	})
	parley.Num(v, "sent", &l.sent)
	parley.PerProcess(v, "out", l.out, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
	parley.PerProcess(v, "in", l.in, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
	parley.Slice(v, "own", (*[]own)(&l.own), func(_ int, o *own) {
		o.name.visit(v)
		v.Set("to", &o.to)
		v.Bytes("body", &o.body)
		v.Set("proposed", &o.proposed)
		o.highest.visit(v)
		v.Bool("final", &o.final)
		v.Set("logged", &o.logged)
	})
}
