package commits

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
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/commit/ordered"
	commit "parley/commit/problem"
	"parley/commit/service"
)

// Service is a node's service for transactions.
type Service struct {
	k       *kernel.Kernel
	c       Config
	process *host.Process
	ready   chan struct{} // closed when process is set
	order   *order        // of a Byzantine order, for Agreed
	room    chan struct{} // held by each undecided transaction of this node
	parts   *participantCalls

	mu        sync.Mutex
	calls     map[string]*txCall
	closed    error
	committed uint64
	aborted   uint64
}

// txCall is a transaction of this node until it is decided. Its fields but done are read after done is closed.
type txCall struct {
	digest    uint64
	done      chan struct{}
	committed bool
	err       error
}

// Open starts a node's service for transactions. Transaction numbers begin at the current time in microseconds. So no
// incarnation of this node reuses a number, even if the disk was lost.
func Open(k *kernel.Kernel, c Config, participant Participant) (*Service, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	s := &Service{
		k: k, c: c, ready: make(chan struct{}), room: make(chan struct{}, c.Open), calls: make(map[string]*txCall),
		parts: newParticipantCalls(participant, c.Prepares, c.Votes),
	}
	log := k.Log.With("machine", "commit")
	if r, remote := participant.(RemoteParticipant); remote {
		r.Begin(log)
	}
	s.parts.failed = func(tx string, err error) { log.Error("participant failed", "tx", tx, "err", err) }
	ask := func(m parley.Msg) {
		if err := s.machine().Request(m); err != nil && !errors.Is(err, host.ErrStopped) {
			log.Warn("transaction continues without its participant", "err", err)
		}
	}
	s.parts.voted = func(path parley.Path, yes bool, why string) {
		m := parley.Msg{Kind: service.Voted, Value: uint64(path), Body: []byte(why)}
		if yes {
			m.Seq = 1
		}
		ask(m)
	}
	s.parts.applied = func(path parley.Path) { ask(parley.Msg{Kind: service.Applied, Value: uint64(path)}) }
	if err := s.open(); err != nil {
		s.Close(err)
		return nil, fmt.Errorf("cluster: transactions: %w", err)
	}
	return s, nil
}

// open opens the machine of transactions.
func (s *Service) open() (err error) {
	n, c := len(s.k.Members), s.c
	o := host.Options{Channel: kernel.CommitChannel, Name: "commit", Upper: s, Class: link.Bulk}
	var p parley.Protocol
	if c.Protocol == Agreed {
		p = ordered.New(ordered.Config{
			N: n, M: s.k.M, Delta: parley.Tick(c.Delay), Votes: parley.Tick(c.Votes),
			Open: c.Open, Remember: c.Remember, Compact: s.k.Compact,
		})
		s.order = newOrder(s)
		o.Beneath = s.order.broadcast
	} else {
		p = service.New(service.Config{
			N: n, Majority: c.Protocol == Majority, Delta: parley.Tick(c.Delay), Votes: parley.Tick(c.Votes),
			Open: c.Open, Remember: c.Remember, Compact: s.k.Compact, Forgot: s.k.Rejoin,
			First: uint64(time.Now().UnixMicro()),
		})
	}
	o.Machine = p.New(s.k.Self)
	s.process, err = s.k.Host.Open(o)
	close(s.ready)
	switch {
	case s.order == nil:
	case errors.Is(err, host.ErrRecords):
		err = fmt.Errorf("%w: if an earlier version of Parley wrote them, stop all nodes, and start them with empty "+
			"data folders", err)
	case err == nil:
		err = s.order.open()
	}
	return err
}

// machine returns the process of the transaction machine, once it is set.
func (s *Service) machine() *host.Process {
	<-s.ready
	return s.process
}

// decider is what a machine of transactions reports about them.
type decider interface {
	Find(name string) (service.Transaction, bool)
	Live() iter.Seq[service.Transaction]
}

// Close ends all waiting calls with an error, and returns when no call of the participant is in flight.
func (s *Service) Close(why error) {
	s.Fail(why)
	if s.order != nil {
		s.order.close()
	}
	s.parts.close()
}

// Fail ends all waiting calls with an error, and refuses new calls.
func (s *Service) Fail(why error) {
	s.mu.Lock()
	s.closed = cmp.Or(s.closed, why)
	s.mu.Unlock()
	s.giveUp(fmt.Errorf("%w: %w", kernel.ErrUnknown, why))
}

// giveUp ends all waiting calls with err.
func (s *Service) giveUp(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range s.calls {
		delete(s.calls, name)
		s.finish(c, false, err)
	}
}

// finish ends a call. The lock is held.
func (s *Service) finish(c *txCall, committed bool, err error) {
	c.committed, c.err = committed, err
	close(c.done)
	<-s.room
}

// Commit commits a transaction at all named members, each with its own body, or aborts it at all of
// them: see cluster.Node.Commit.
func (s *Service) Commit(ctx context.Context, tx string, bodies map[string][]byte) (committed bool, err error) {
	t, err := s.specOf(tx, bodies)
	if err != nil {
		return false, err
	}
	if err := cmp.Or(s.k.Takes(s.c.Protocol == Agreed), s.k.HasRoom()); err != nil {
		return false, err
	}
	c, err := s.begin(ctx, t)
	if err != nil {
		return false, err
	}
	select {
	case <-c.done:
		return c.committed, c.err
	case <-ctx.Done():
		return false, fmt.Errorf("%w: %w", kernel.ErrUnknown, context.Cause(ctx))
	}
}

// specOf validates a transaction and returns its specification.
func (s *Service) specOf(tx string, bodies map[string][]byte) (service.Spec, error) {
	t := service.Spec{Name: tx, Members: []parley.ID{s.k.Self}}
	if tx == "" || len(tx) > MaxTx || len(bodies) == 0 {
		return t, fmt.Errorf("%w: a transaction needs a name of 1 to %d bytes, and participants", kernel.ErrRefused, MaxTx)
	}
	h := sha256.New()
	h.Write([]byte(tx))
	known := 0
	for id, name := range s.k.Members {
		body, has := bodies[name]
		if !has {
			continue
		}
		known++
		if len(body) > MaxPart {
			return t, fmt.Errorf("%w: the part of %s has %d bytes: at most %d are allowed", kernel.ErrRefused, name,
				len(body), MaxPart)
		}
		if parley.ID(id) != s.k.Self {
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
			if !slices.Contains(s.k.Members, name) {
				return t, fmt.Errorf("%w: %q is none of the %d members", kernel.ErrRefused, name, len(s.k.Members))
			}
		}
	}
	if size := t.Size(); size > maxPartsAll {
		return t, fmt.Errorf("%w: all parts together have %d bytes: at most %d are allowed",
			kernel.ErrRefused, size, maxPartsAll)
	}
	return t, nil
}

// begin begins a transaction, or returns the call of one that is in flight.
func (s *Service) begin(ctx context.Context, t service.Spec) (*txCall, error) {
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
		return nil, fmt.Errorf("%w: too many transactions are in flight: %w", kernel.ErrRefused, context.Cause(ctx))
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

// start makes the machine begin a transaction.
func (s *Service) start(t service.Spec) error {
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
		return fmt.Errorf("%w: %w", kernel.ErrClosed, err)
	}
	return nil
}

// witnessed adds nodes without a part until there are three: of two, none may fail.
func (s *Service) witnessed(t service.Spec) service.Spec {
	for id := range s.k.Up().All() {
		if len(t.Members) < 3 && !t.Has(id) {
			t.Members = append(slices.Clone(t.Members), id)
		}
	}
	slices.Sort(t.Members[1:])
	return t
}

// end ends the calls that wait for a transaction.
func (s *Service) end(tx string, committed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[tx]; c != nil {
		delete(s.calls, tx)
		s.finish(c, committed, err)
	}
}

// Deliver handles requests to the participant, and outcomes. It is part of a step.
func (s *Service) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	switch m.Kind {
	case service.Prepare:
		t, ok := service.ReadSpec(m.Body, len(s.k.Members))
		if !ok {
			panic("cluster: a transaction cannot be read that this node wrote")
		}
		body, _ := t.Part(s.k.Self)
		s.parts.prepare(parley.Path(m.Value), t.Name, body, m.Seq == 1)
	case service.Ended:
		name, why := service.ReadEnded(m.Body)
		committed := commit.Outcome(m.Seq) == commit.Commit
		if m.Origin == service.Participant {
			s.parts.end(parley.Path(m.Value), name, committed)
		}
		if m.Origin != service.Repeated {
			s.count(committed)
		}
		s.tell(name, committed, why)
	case service.Refused:
		err := fmt.Errorf("%w: too many transactions of this node are in flight", kernel.ErrRefused)
		if m.Seq == service.NameTaken {
			err = fmt.Errorf("%w: %q", ErrTaken, m.Body)
		}
		s.end(string(m.Body), false, err)
	}
}

// tell ends the calls that wait for a transaction. If the transaction was refused because its name is taken, it
// may be the one that has the name: its outcome is then known from the claim, or unknown.
func (s *Service) tell(name string, committed bool, why service.AbortReason) {
	switch at := s.k.Name(why.By); why.Claim {
	case service.Free:
		s.end(name, committed, nil)
	case service.TakenByCommit, service.TakenByAbort:
		s.end(name, why.Claim == service.TakenByCommit, nil)
	case service.TakenOther:
		s.end(name, false, fmt.Errorf("%w: %q, at %s", ErrTaken, name, at))
	default:
		s.end(name, false, fmt.Errorf("%w: %q, at %s, where %w", ErrTaken, name, at, kernel.ErrUnknown))
	}
}

func (s *Service) count(committed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if committed {
		s.committed++
	} else {
		s.aborted++
	}
}

// Indicate handles the indication that a transaction is blocked.
func (s *Service) Indicate(_ parley.Path, m parley.Msg) {
	if m.Kind != service.Blocked {
		return
	}
	waits, name := service.ReadBlocked(m.Body, len(s.k.Members))
	e := &BlockedError{Tx: name, Waits: s.k.Names(waits)}
	s.k.Log.Warn("transaction is blocked until other nodes recover", "tx", e.Tx, "waits", e.Waits)
	s.end(e.Tx, false, e)
}

// Outcome returns what this node knows about a transaction. For a blocked transaction, it returns the outcome
// Pending and a *BlockedError.
func (s *Service) Outcome(tx string) (o Outcome, err error) {
	o, err = Outcome{Tx: tx}, fmt.Errorf("%w: %q", ErrNoTransaction, tx)
	s.process.Do(func(machine parley.Machine, _ parley.Tick) {
		if t, known := machine.(decider).Find(tx); known {
			o, err = s.outcome(t), nil
		}
	})
	if o.Waits != nil {
		err = &BlockedError{Tx: tx, Waits: o.Waits}
	}
	return o, err
}

// outcome converts the state of a transaction.
func (s *Service) outcome(t service.Transaction) Outcome {
	o := Outcome{Tx: t.Name, State: stateOf(t.Outcome)}
	switch {
	case t.Blocked:
		o.Waits = s.k.Names(t.Waits)
	case t.Outcome == commit.Abort:
		o.Why = s.why(t.Why)
	}
	return o
}

func (s *Service) why(e service.AbortReason) string {
	if e.Text == "" || int(e.By) >= len(s.k.Members) {
		return ""
	}
	return s.k.Members[e.By] + ": " + e.Text
}

func stateOf(o commit.Outcome) State {
	return map[commit.Outcome]State{commit.Commit: Committed, commit.Abort: Aborted}[o]
}

// Status returns the status of transactions.
func (s *Service) Status() *Status {
	out := &Status{Protocol: s.c.Protocol.String(), Preparing: s.parts.preparing(), Blocked: []Outcome{}}
	s.mu.Lock()
	out.Committed, out.Aborted = s.committed, s.aborted
	s.mu.Unlock()
	s.process.Do(func(machine parley.Machine, _ parley.Tick) {
		for t := range machine.(decider).Live() {
			o := s.outcome(t)
			if t.Coordinator == s.k.Self {
				out.Open++
			}
			if o.State == Pending {
				out.Pending++
			}
			if o.Waits != nil && len(out.Blocked) < 100 {
				out.Blocked = append(out.Blocked, o)
			}
		}
	})
	return out
}

// Busy reports whether a call waits for an outcome.
func (s *Service) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}
