package cluster

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
	commit "parley/commit/problem"
	"parley/commit/service"
)

// In spite of liars transactions are decided by a Byzantine order of all nodes: who begins
// one broadcasts what everybody is to do, and participants broadcast their votes. All correct
// nodes deliver the same in the same order, and each finds the outcome in it: to commit, as
// soon as all votes are yes; to abort, with the first no, or when more nodes than may lie say
// that they have waited for long. That is package commit/agreed, with the vector of votes agreed on
// vote by vote, and many transactions to a slot.
//
// A participant makes its yes durable before it broadcasts it. One that comes back, or has
// missed a slot, hears nothing more of the order: it asks all others, and believes what more
// of them say than may lie.

// What is broadcast begins with one of these.
const (
	orderBegin  = 1 // a sheet
	orderVote   = 2 // 1 if it is yes, else 0; the digest; the name; and why it is no
	orderExpire = 3 // 0; the digest; the name
)

// orderChannel is the channel of the order.
const orderChannel = commitChannel + 1

// orderName names the order among groups.
const orderName = "commit:order"

// ordered is what all correct nodes make of the order, each for itself. What depends on what
// is delivered is in decisions, what is this node's own in the rest.
type ordered struct {
	s      *commits
	group  *Group
	recall *host.Process
	stop   chan struct{}
	wg     sync.WaitGroup

	mu     sync.Mutex
	open   map[string]*orderedTx
	count  []int // of open ones, by coordinator
	bytes  []int // of their parts
	number uint64
	past   service.History
	heard  service.History               // what others have told, and the order did not
	logs   map[parley.Path]chan struct{} // closed when a yes is durable
	told   []recalled                    // outcomes to be told to who asked
}

// recalled is an outcome to be told.
type recalled struct {
	spec    service.Spec
	outcome commit.Outcome
	to      parley.ID
}

// orderedTx is a transaction that is open.
type orderedTx struct {
	path    parley.Path // its number in the order
	spec    service.Spec
	yes     parley.Set
	expired parley.Set
	begun   time.Time
	called  bool // this node has said that it has waited for long
	learned bool // this node has been told the outcome by others
}

// newOrdered opens the order, and the memory of what this node has said yes to.
func (n *Node) newOrdered(s *commits) (err error) {
	o := &ordered{
		s: s, stop: make(chan struct{}), open: make(map[string]*orderedTx), count: make([]int, len(n.c.Members)),
		bytes: make([]int, len(n.c.Members)), past: service.NewHistory(s.c.Remember), heard: service.NewHistory(s.c.Remember),
		logs: make(map[parley.Path]chan struct{}),
	}
	s.order = o
	ready := make(chan struct{})
	s.works.voted = func(path parley.Path, yes bool, why string) {
		<-ready
		o.vote(path, yes, why)
	}
	s.works.applied = func(path parley.Path) {
		<-ready
		_ = o.recall.Request(parley.Msg{Kind: service.RecallDone, Value: uint64(path)}) // it fails if the node has closed
	}
	p := service.NewRecall(service.RecallConfig{
		N: len(n.c.Members), M: n.c.M, Delta: parley.Tick(s.c.Delay), Votes: parley.Tick(s.c.Votes), Compact: compactEvery,
	})
	o.recall, err = n.host.Open(host.Options{
		Channel: commitChannel, Name: "commit", Machine: p.New(n.self), Upper: o, After: o.after, Class: link.Bulk,
	})
	if err == nil {
		g := GroupConfig{Name: orderName, Level: Byzantine, Keep: 1, Deliver: o.deliver, final: true}
		o.group, err = n.newGroup(g, orderChannel)
	}
	close(ready)
	if err != nil {
		return fmt.Errorf("cluster: transactions: %w", err)
	}
	o.wg.Go(o.expire)
	return nil
}

// close ends what waits.
func (o *ordered) close() {
	close(o.stop)
	if o.group != nil {
		o.group.close(ErrClosed)
	}
	o.wg.Wait()
}

// aside tells whether this node hears nothing of the order.
func (o *ordered) aside() (aside bool) {
	o.group.process.Do(func(m parley.Machine, _ parley.Tick) {
		if of, ok := m.(slotted); ok {
			aside = of.Slots().Muted() || of.Slots().Missed() > 0
		}
	})
	return aside
}

// begin broadcasts what a transaction is.
func (o *ordered) begin(t service.Spec) error {
	b := append([]byte{orderBegin}, t.Encode()...)
	if most := o.s.n.c.views().Payload - 2*binary.MaxVarintLen64; len(b) > most {
		return fmt.Errorf("%w: the transaction has %d bytes: at most %d are allowed", ErrRefused, len(b), most)
	}
	if o.aside() {
		return fmt.Errorf("%w: %w", ErrRefused, ErrAbstained)
	}
	want := parley.Msg{Kind: service.RecallWant, Body: t.Only(parley.All).Encode()}
	if err := o.recall.Request(want); err != nil {
		return err
	}
	go func() { // it may have to wait, for longer than who asks
		if err := o.group.packer.post(b, Byzantine); err != nil {
			o.s.end(t.Name, false, err)
		}
	}()
	return nil
}

// orderMessage is a vote, or the word that the time is over.
func orderMessage(kind, yes byte, t service.Spec, why string) []byte {
	b := binary.BigEndian.AppendUint64([]byte{kind, yes}, t.Digest)
	b = append(binary.AppendUvarint(b, uint64(len(t.Name))), t.Name...)
	return append(b, why...)
}

// vote broadcasts the vote of this node; a yes when it is durable.
func (o *ordered) vote(path parley.Path, yes bool, why string) {
	o.mu.Lock()
	var t *orderedTx
	for _, x := range o.open {
		if x.path == path {
			t = x
		}
	}
	var durable chan struct{}
	if t != nil && yes {
		durable = make(chan struct{})
		o.logs[path] = durable
	}
	o.mu.Unlock()
	if t == nil {
		return // it is over
	}
	said := byte(0)
	if yes {
		said = 1
		own := t.spec.Only(o.s.n.self).Encode()
		err := o.recall.Request(parley.Msg{Kind: service.RecallYes, Value: uint64(path), Body: own})
		if err != nil {
			return
		}
		select {
		case <-durable:
		case <-o.stop:
			return
		}
	}
	_ = o.group.packer.post(orderMessage(orderVote, said, t.spec, why), Byzantine) // it fails if the node has closed
}

// expire says of what has been open for long that it is to end, and tells the memory of what
// has ended.
func (o *ordered) expire() {
	tick := time.NewTicker(o.s.c.Delay)
	defer tick.Stop()
	for silent := 0; ; {
		select {
		case <-o.stop:
			return
		case <-tick.C:
		}
		o.after()
		// Who hears nothing more of the order asks the others. They may not know either.
		if o.aside() {
			silent++
		}
		if time.Duration(silent)*o.s.c.Delay > o.s.c.Votes+16*o.s.c.Delay {
			o.s.giveUp(fmt.Errorf("%w: %w", ErrUnknown, ErrAbstained))
		}
		var late []service.Spec
		o.mu.Lock()
		for _, t := range o.open {
			if !t.called && time.Since(t.begun) > o.s.c.Votes+2*o.s.c.Delay {
				t.called = true
				late = append(late, t.spec)
			}
		}
		o.mu.Unlock()
		for _, t := range late {
			if o.group.packer.post(orderMessage(orderExpire, 0, t, ""), Byzantine) != nil {
				return
			}
		}
	}
}

// deliver takes what is delivered, which liars may have sent: all correct nodes do the same
// with it. It is part of a step of the order.
func (o *ordered) deliver(d Delivery) {
	if len(d.Payload) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch b := d.Payload[1:]; d.Payload[0] {
	case orderBegin:
		if t, ok := service.ReadSpec(b, len(o.count)); ok && t.Members[0] == d.From && len(t.Parts) > 0 {
			o.begun(d.From, t)
		}
	case orderVote, orderExpire:
		if len(b) < 9 || b[0] > 1 {
			return
		}
		yes, digest := b[0] == 1, binary.BigEndian.Uint64(b[1:])
		size, rest, err := parley.ReadUvarint(b[9:], MaxTx)
		if err != nil || size > uint64(len(rest)) {
			return
		}
		t, why := o.open[string(rest[:size])], rest[size:]
		switch {
		case t == nil || t.spec.Digest != digest || len(why) > service.MaxReason:
		case d.Payload[0] == orderExpire:
			if t.expired.Add(d.From); t.expired.Len() > o.s.n.c.M {
				o.end(t, commit.Abort, service.AbortReason{By: d.From, Text: "not all votes came in time"})
			}
		default:
			o.voted(d.From, t, yes, string(why))
		}
	}
}

// begun opens a transaction, unless its name is taken or its coordinator has too many.
func (o *ordered) begun(from parley.ID, t service.Spec) {
	refuse := func(err error) {
		if from == o.s.n.self {
			o.s.end(t.Name, false, err)
		}
	}
	taken := fmt.Errorf("%w: %q", ErrTaken, t.Name)
	if x := o.open[t.Name]; x != nil {
		if x.spec.Digest != t.Digest {
			refuse(taken)
		}
		return
	}
	if e := o.past.Named(t.Name); e != nil {
		switch {
		case e.Digest != t.Digest:
			refuse(taken)
		case from == o.s.n.self:
			o.s.end(t.Name, e.Outcome == commit.Commit, nil)
		}
		return
	}
	if o.count[from] >= o.s.c.Open || o.bytes[from]+t.Size() > service.MaxParts {
		refuse(fmt.Errorf("%w: too many transactions of this node are under way", ErrRefused))
		return
	}
	o.number++
	x := &orderedTx{path: parley.Path(o.number), spec: t, begun: time.Now()}
	o.open[t.Name] = x
	o.count[from]++
	o.bytes[from] += t.Size()
	if body, has := t.Part(o.s.n.self); has {
		o.s.works.prepare(x.path, t.Name, body, false)
	}
}

// voted counts a vote.
func (o *ordered) voted(from parley.ID, t *orderedTx, yes bool, why string) {
	if _, has := t.spec.Part(from); !has {
		return
	}
	if !yes {
		o.end(t, commit.Abort, service.AbortReason{By: from, Text: why})
		return
	}
	t.yes.Add(from)
	if !slices.ContainsFunc(t.spec.Parts, func(p service.Part) bool { return !t.yes.Has(p.ID) }) {
		o.end(t, commit.Commit, service.AbortReason{})
	}
}

// end closes a transaction.
func (o *ordered) end(t *orderedTx, outcome commit.Outcome, why service.AbortReason) {
	delete(o.open, t.spec.Name)
	from := t.spec.Members[0]
	o.count[from]--
	o.bytes[from] -= t.spec.Size()
	o.past.Add(&service.Finished{
		Path: t.path, Name: t.spec.Name, Digest: t.spec.Digest, Outcome: outcome, Why: why,
	})
	if !t.learned {
		o.tell(t.path, t.spec, outcome)
	}
	// The memory hears of it when the step of the order is over.
	o.told = append(o.told, recalled{spec: t.spec.Only(parley.All), outcome: outcome, to: o.s.n.self})
}

// tell tells the participant and who waits.
func (o *ordered) tell(path parley.Path, t service.Spec, outcome commit.Outcome) {
	if _, has := t.Part(o.s.n.self); has {
		o.s.works.end(path, t.Name, outcome == commit.Commit)
	}
	o.s.count(outcome == commit.Commit)
	o.s.end(t.Name, outcome == commit.Commit, nil)
}

// Deliver takes what the memory says. It is part of a step of it.
func (o *ordered) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	t, ok := service.ReadSpec(m.Body, len(o.count))
	if !ok {
		panic("cluster: a transaction cannot be read that this node wrote")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch m.Kind {
	case service.RecallYes: // it is durable
		if done := o.logs[parley.Path(m.Value)]; done != nil {
			delete(o.logs, parley.Path(m.Value))
			close(done)
		}
	case service.Prepare:
		body, _ := t.Part(o.s.n.self)
		o.number = max(o.number, m.Value)
		o.s.works.prepare(parley.Path(m.Value), t.Name, body, true)
	case service.RecallAsked:
		if e := o.ended(t.Name); e != nil && e.Digest == t.Digest {
			o.told = append(o.told, recalled{spec: t, outcome: e.Outcome, to: from})
		}
	case service.Ended: // more nodes say so than may lie
		x := o.open[t.Name]
		switch {
		case x == nil:
			o.heard.Add(&service.Finished{
				Path: parley.Path(m.Value), Name: t.Name, Digest: t.Digest, Outcome: commit.Outcome(m.Seq),
			})
			o.tell(parley.Path(m.Value), t, commit.Outcome(m.Seq))
		case !x.learned:
			x.learned = true
			o.tell(x.path, x.spec, commit.Outcome(m.Seq))
		}
	}
}

// Indicate takes nothing: the memory indicates nothing.
func (o *ordered) Indicate(parley.Path, parley.Msg) {}

// after lets the memory tell outcomes.
func (o *ordered) after() {
	o.mu.Lock()
	told := o.told
	o.told = nil
	o.mu.Unlock()
	for _, r := range told {
		m := parley.Msg{Kind: service.RecallTell, Origin: r.to, Seq: uint64(r.outcome), Body: r.spec.Encode()}
		_ = o.recall.Request(m) // it fails if the node has closed
	}
}

// ended is what this node knows of a transaction that is over. The lock is held.
func (o *ordered) ended(tx string) *service.Finished {
	if e := o.past.Named(tx); e != nil {
		return e
	}
	return o.heard.Named(tx)
}

// look tells what is known of a transaction.
func (o *ordered) look(tx string) (Outcome, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e := o.ended(tx); e != nil {
		return Outcome{tx, stateOf(e.Outcome), o.s.n.why(e.Why), nil}, nil
	}
	if o.open[tx] != nil {
		return Outcome{Tx: tx}, nil
	}
	return Outcome{Tx: tx}, fmt.Errorf("%w: %q", ErrNoTransaction, tx)
}

// status adds how transactions stand.
func (o *ordered) status(out *CommitStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out.Open, out.Pending = o.count[o.s.n.self], len(o.open)
}
