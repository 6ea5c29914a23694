package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/commit/ordered"
	commit "parley/commit/problem"
	"parley/commit/service"
)

// commitChannel is the channel of transactions.
const commitChannel = 4096

// check tells what is wrong with a configuration.
func (c CommitConfig) check() error {
	switch {
	case int(c.Protocol) >= len(commitProtocols):
		return fmt.Errorf("cluster: there is no %v", c.Protocol)
	case c.Votes < 0 || c.Votes > time.Hour || c.Delay < 0 || c.Delay > time.Hour:
		return fmt.Errorf("cluster: transactions wait for votes %v and for messages %v: allowed is up to an hour",
			c.Votes, c.Delay)
	case c.Open < 0 || c.Open > 1<<16 || c.Prepares < 0 || c.Remember < 0 || c.Remember > 1<<20:
		return fmt.Errorf("cluster: %d open transactions, %d calls, %d outcomes: allowed are up to %d, any and %d",
			c.Open, c.Prepares, c.Remember, 1<<16, 1<<20)
	}
	return nil
}

func (c CommitConfig) withDefaults() CommitConfig {
	c.Votes, c.Delay = cmp.Or(c.Votes, 5*time.Second), cmp.Or(c.Delay, 250*time.Millisecond)
	c.Open, c.Prepares, c.Remember = cmp.Or(c.Open, 4096), cmp.Or(c.Prepares, 64), cmp.Or(c.Remember, 16384)
	return c
}

// commits is this node's part in transactions.
type commits struct {
	n       *Node
	c       CommitConfig
	process *host.Process
	ready   chan struct{} // closed when process is there
	order   *order        // what the process stands on, in spite of liars
	room    chan struct{} // held by each transaction of this node's that is not decided
	works   *works

	mu        sync.Mutex
	calls     map[string]*txCall
	closed    error
	committed uint64
	aborted   uint64
}

// txCall is a transaction of this node's until it is decided. All but done is read when done
// is closed.
type txCall struct {
	digest    uint64
	done      chan struct{}
	committed bool
	err       error
}

// startCommits opens the machine of transactions. Their numbers go on from the time in
// microseconds: no life of this node uses one twice, even if its disk is lost.
func (n *Node) startCommits() (err error) {
	n.commits, err = n.newCommits(uint64(time.Now().UnixMicro()), n.c.Rejoin)
	return err
}

// newCommits opens the machine of transactions.
func (n *Node) newCommits(first uint64, forgot bool) (*commits, error) {
	if err := n.c.Commit.check(); err != nil {
		return nil, err
	}
	c := n.c.Commit.withDefaults()
	s := &commits{
		n: n, c: c, ready: make(chan struct{}), room: make(chan struct{}, c.Open), calls: make(map[string]*txCall),
		works: newWorks(n.c.Participant, c.Prepares, c.Votes),
	}
	log := n.c.Log.With("machine", "commit")
	if r, remote := n.c.Participant.(RemoteParticipant); remote {
		r.Begin(log)
	}
	s.works.failed = func(tx string, err error) { log.Error("a participant fails", "tx", tx, "why", err) }
	ask := func(m parley.Msg) {
		if err := s.machine().Request(m); err != nil && !errors.Is(err, host.ErrStopped) {
			log.Warn("a transaction goes on without its participant", "why", err)
		}
	}
	s.works.voted = func(path parley.Path, yes bool, why string) {
		m := parley.Msg{Kind: service.Voted, Value: uint64(path), Body: []byte(why)}
		if yes {
			m.Seq = 1
		}
		ask(m)
	}
	s.works.applied = func(path parley.Path) { ask(parley.Msg{Kind: service.Applied, Value: uint64(path)}) }
	defer close(s.ready)
	o := host.Options{Channel: commitChannel, Name: "commit", Upper: s, Class: link.Bulk}
	var err error
	if c.Protocol == Agreed {
		p := ordered.New(ordered.Config{
			N: len(n.c.Members), M: n.c.M, Delta: parley.Tick(c.Delay), Votes: parley.Tick(c.Votes),
			Open: c.Open, Remember: c.Remember, Compact: compactEvery,
		})
		o.Machine = p.New(n.k.Self)
		if s.order, err = n.newOrder(s); err != nil {
			return nil, fmt.Errorf("cluster: transactions: %w", err)
		}
		o.Beneath = s.order.broadcast
	} else {
		p := service.New(service.Config{
			N: len(n.c.Members), Majority: c.Protocol == Majority, Delta: parley.Tick(c.Delay), Votes: parley.Tick(c.Votes),
			Open: c.Open, Remember: c.Remember, Compact: compactEvery, Forgot: forgot, First: first,
		})
		o.Machine = p.New(n.k.Self)
	}
	if s.process, err = n.k.Host.Open(o); err != nil {
		return nil, fmt.Errorf("cluster: transactions: %w", err)
	}
	return s, nil
}

// machine is the machine of transactions, once it is there.
func (s *commits) machine() *host.Process {
	<-s.ready
	return s.process
}

// decider is what a machine of transactions tells of them.
type decider interface {
	Find(name string) (service.Transaction, bool)
	Live() iter.Seq[service.Transaction]
}

// close ends all that waits.
func (s *commits) close(why error) {
	s.fail(why)
	if s.order != nil {
		s.order.close()
	}
	s.works.close()
}

// fail answers all who wait, and takes nothing more.
func (s *commits) fail(why error) {
	s.mu.Lock()
	s.closed = cmp.Or(s.closed, why)
	s.mu.Unlock()
	s.giveUp(fmt.Errorf("%w: %w", ErrUnknown, why))
}

// giveUp answers all who wait.
func (s *commits) giveUp(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.calls {
		delete(s.calls, name)
		s.finish(c, false, err)
	}
}

// finish answers who waits. The lock is held.
func (s *commits) finish(c *txCall, committed bool, err error) {
	c.committed, c.err = committed, err
	close(c.done)
	<-s.room
}

// Commit carries out a transaction at all members that are named, each with what it is to
// do, or at none of them: it commits if all of them say yes. It returns when the outcome is
// decided and durable; participants are told at the same time, and those that are down when
// they are back. Who asks again under the name gets the outcome of before, as long as a node
// that takes part remembers it, and joins those who wait if there is none yet. Ask again at a node that takes part:
// another one asks those anew, and what it says may be that this is aborted if one of them does not
// answer in time, and ErrTaken with ErrUnknown while there is no outcome.
//
// An error that is ErrUnknown, as when the context ends or the node is blocked, says that
// the transaction goes on and may commit: see Outcome. With any other one nothing is done.
func (n *Node) Commit(ctx context.Context, tx string, bodies map[string][]byte) (committed bool, err error) {
	t, err := n.sheetOf(tx, bodies)
	if err != nil {
		return false, err
	}
	if err := cmp.Or(n.k.Takes(n.c.Commit.Protocol == Agreed), n.k.HasRoom()); err != nil {
		return false, err
	}
	s := n.commits
	c, err := s.begin(ctx, t)
	if err != nil {
		return false, err
	}
	select {
	case <-c.done:
		return c.committed, c.err
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	}
}

// sheetOf is what a transaction is, if it can be.
func (n *Node) sheetOf(tx string, bodies map[string][]byte) (service.Spec, error) {
	t := service.Spec{Name: tx, Members: []parley.ID{n.k.Self}}
	if tx == "" || len(tx) > MaxTx || len(bodies) == 0 {
		return t, fmt.Errorf("%w: a transaction has a name of 1 to %d bytes, and participants", ErrRefused, MaxTx)
	}
	h := sha256.New()
	h.Write([]byte(tx))
	known := 0
	for id, m := range n.c.Members {
		body, has := bodies[m.Name]
		if !has {
			continue
		}
		known++
		if len(body) > MaxPart {
			return t, fmt.Errorf("%w: the part of %s has %d bytes: at most %d are allowed", ErrRefused, m.Name,
				len(body), MaxPart)
		}
		if parley.ID(id) != n.k.Self {
			t.Members = append(t.Members, parley.ID(id))
		}
		t.Parts = append(t.Parts, service.Part{ID: parley.ID(id), Body: slices.Clone(body)})
		sum := sha256.Sum256(body)
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(id)))
		h.Write(sum[:])
	}
	t.Digest = binary.BigEndian.Uint64(h.Sum(nil))
	if known != len(bodies) {
		for name := range bodies {
			if !slices.ContainsFunc(n.c.Members, func(m Member) bool { return m.Name == name }) {
				return t, fmt.Errorf("%w: %q is none of the %d members", ErrRefused, name, len(n.c.Members))
			}
		}
	}
	if size := t.Size(); size > maxPartsAll {
		return t, fmt.Errorf("%w: the parts have %d bytes together: at most %d are allowed", ErrRefused, size, maxPartsAll)
	}
	return t, nil
}

// begin begins a transaction, or joins those who wait for it.
func (s *commits) begin(ctx context.Context, t service.Spec) (*txCall, error) {
	join := func() (c *txCall, err error) {
		if c = s.calls[t.Name]; c != nil && c.digest != t.Digest {
			return nil, fmt.Errorf("%w: %q", ErrTaken, t.Name)
		}
		return c, s.closed
	}
	s.mu.Lock()
	c, err := join()
	s.mu.Unlock()
	if c != nil || err != nil {
		return c, err
	}
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many transactions are under way: %w", ErrRefused, context.Cause(ctx))
	}
	s.mu.Lock()
	if c, err = join(); c != nil || err != nil {
		<-s.room
		s.mu.Unlock()
		return c, err
	}
	c = &txCall{digest: t.Digest, done: make(chan struct{})}
	s.calls[t.Name] = c
	s.mu.Unlock()
	if err := s.start(t); err != nil {
		s.end(t.Name, false, err)
	}
	return c, nil
}

// start has the machine begin a transaction.
func (s *commits) start(t service.Spec) error {
	if s.c.Protocol == Majority {
		t = s.witnessed(t)
	}
	b := t.Encode()
	if s.order != nil {
		if err := s.order.takes(len(b)); err != nil {
			return err
		}
	}
	if err := s.process.Request(parley.Msg{Kind: service.Commit, Body: b}); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return nil
}

// witnessed adds nodes that have no part until there are three: of two, none may fail.
func (s *commits) witnessed(t service.Spec) service.Spec {
	for id := range s.n.k.Up().All() {
		if len(t.Members) < 3 && !t.Has(id) {
			t.Members = append(slices.Clone(t.Members), id)
		}
	}
	slices.Sort(t.Members[1:])
	return t
}

// end answers who waits for a transaction, if anybody does.
func (s *commits) end(tx string, committed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[tx]; c != nil {
		delete(s.calls, tx)
		s.finish(c, committed, err)
	}
}

// Deliver takes what the machine wants of the participant, and outcomes. It is part of a step.
func (s *commits) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	switch m.Kind {
	case service.Prepare:
		t, ok := service.ReadSpec(m.Body, len(s.n.c.Members))
		if !ok {
			panic("cluster: a transaction cannot be read that this node wrote")
		}
		body, _ := t.Part(s.n.k.Self)
		s.works.prepare(parley.Path(m.Value), t.Name, body, m.Seq == 1)
	case service.Ended:
		name, why := service.ReadEnded(m.Body)
		committed := commit.Outcome(m.Seq) == commit.Commit
		if m.Origin == service.Participant {
			s.works.end(parley.Path(m.Value), name, committed)
		}
		if m.Origin != service.Repeated {
			s.count(committed)
		}
		s.tell(name, committed, why)
	case service.Refused:
		err := fmt.Errorf("%w: too many transactions of this node are under way", ErrRefused)
		if m.Seq == service.NameTaken {
			err = fmt.Errorf("%w: %q", ErrTaken, m.Body)
		}
		s.end(string(m.Body), false, err)
	}
}

// tell answers who waits for a transaction. What is refused because of its name may be the
// one that has it, and is then known to have its outcome, or may have any.
func (s *commits) tell(name string, committed bool, why service.AbortReason) {
	switch at := s.n.k.Name(why.By); why.Claim {
	case service.Free:
		s.end(name, committed, nil)
	case service.TakenByCommit, service.TakenByAbort:
		s.end(name, why.Claim == service.TakenByCommit, nil)
	case service.TakenOther:
		s.end(name, false, fmt.Errorf("%w: %q, at %s", ErrTaken, name, at))
	default:
		s.end(name, false, fmt.Errorf("%w: %q, at %s, where %w", ErrTaken, name, at, ErrUnknown))
	}
}

func (s *commits) count(committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if committed {
		s.committed++
	} else {
		s.aborted++
	}
}

// Indicate takes that a transaction is blocked.
func (s *commits) Indicate(_ parley.Path, m parley.Msg) {
	if m.Kind != service.Blocked {
		return
	}
	waits, name := service.ReadBlocked(m.Body, len(s.n.c.Members))
	e := &BlockedError{Tx: name, Waits: s.n.k.Names(waits)}
	s.n.c.Log.Warn("a transaction is blocked", "tx", e.Tx, "waits", e.Waits)
	s.end(e.Tx, false, e)
}

// Outcome tells what this node knows of a transaction. A *BlockedError comes with the
// outcome Pending of one that is blocked.
func (n *Node) Outcome(tx string) (o Outcome, err error) {
	o, err = Outcome{Tx: tx}, fmt.Errorf("%w: %q", ErrNoTransaction, tx)
	n.commits.process.Do(func(machine parley.Machine, _ parley.Tick) {
		if t, known := machine.(decider).Find(tx); known {
			o, err = n.outcome(t), nil
		}
	})
	if o.Waits != nil {
		err = &BlockedError{Tx: tx, Waits: o.Waits}
	}
	return o, err
}

// outcome is what is known of a transaction.
func (n *Node) outcome(t service.Transaction) Outcome {
	o := Outcome{Tx: t.Name, State: stateOf(t.Outcome)}
	switch {
	case t.Blocked:
		o.Waits = n.k.Names(t.Waits)
	case t.Outcome == commit.Abort:
		o.Why = n.why(t.Why)
	}
	return o
}

func (n *Node) why(e service.AbortReason) string {
	if e.Text == "" || int(e.By) >= len(n.c.Members) {
		return ""
	}
	return n.c.Members[e.By].Name + ": " + e.Text
}

func stateOf(o commit.Outcome) TxState {
	return map[commit.Outcome]TxState{commit.Commit: Committed, commit.Abort: Aborted}[o]
}
