package agree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/host"
	"parley/cluster/kernel"
)

// streamHandle is an open stream at one node, and the upper layer of its machine.
type streamHandle struct {
	s            *Service
	t            stream.Key
	process      *host.Process
	room         chan struct{} // held by each request
	evidenceRoom chan struct{} // also held by each request for evidence

	mu      sync.Mutex
	next    uint64 // number of the last request
	waiting map[uint64]chan agreeResult

	evidence []stream.Evidence // of the next decision; used within steps only
}

// agreeResult is the result of a request.
type agreeResult struct {
	slot     uint64
	value    []byte
	evidence []stream.Evidence
	nothing  bool
	err      error
}

// ask sends a request to the machine and waits for its answer.
func (o *streamHandle) ask(ctx context.Context, m parley.Msg) (agreeResult, error) {
	if ctx.Err() != nil {
		return agreeResult{}, fmt.Errorf("%w: %w", kernel.ErrRefused, context.Cause(ctx))
	}
	if !o.t.All() && m.Seq != 0 {
		if err := o.hold(ctx, o.evidenceRoom); err != nil {
			return agreeResult{}, err
		}
		defer func() { <-o.evidenceRoom }()
	}
	if err := o.hold(ctx, o.room); err != nil {
		return agreeResult{}, err
	}
	defer func() { <-o.room }()
	told := make(chan agreeResult, 1)
	o.mu.Lock()
	o.next++
	m.Value = o.next
	o.waiting[m.Value] = told
	o.mu.Unlock()
	if err := o.process.Request(m); err != nil {
		o.take(m.Value)
		return agreeResult{}, fmt.Errorf("%w: %w", kernel.ErrClosed, err)
	}
	select {
	case a := <-told:
		return a, a.err
	case <-ctx.Done():
		o.take(m.Value)
		if o.t.All() {
			_ = o.process.Request(parley.Msg{Kind: stream.Withdrawn, Value: m.Value}) // it fails if the node has closed
		}
		return agreeResult{}, fmt.Errorf("%w: %w", kernel.ErrUnknown, context.Cause(ctx))
	case <-o.s.k.Ended:
		return agreeResult{}, fmt.Errorf("%w: %w", kernel.ErrUnknown, o.s.k.Closed())
	}
}

// hold waits for a place. Nothing has begun before that.
func (o *streamHandle) hold(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: too many agreements are in flight: %w", kernel.ErrRefused, context.Cause(ctx))
	case <-o.s.k.Ended:
		return o.s.k.Closed()
	}
}

// take ends the waiting for an answer; it returns nil if no caller waits for it.
func (o *streamHandle) take(number uint64) chan agreeResult {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.waiting[number]
	delete(o.waiting, number)
	return told
}

// Deliver handles a decision. It is part of a step.
func (o *streamHandle) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	if m.Kind == parley.Carried {
		if one, ok := stream.DecodeEvidence(from, m.Body); ok {
			o.evidence = append(o.evidence, one)
		}
		return
	}
	slices.SortFunc(o.evidence, func(a, b stream.Evidence) int { return int(a.Node) - int(b.Node) })
	a := agreeResult{slot: m.Seq, value: m.Body, evidence: o.evidence}
	if o.evidence = nil; !o.t.All() {
		if list := o.s.listeners(); len(list) > 0 {
			d := Decision{
				Source: from, Algorithm: o.t.Algorithm, M: o.t.M, Slot: m.Seq, Value: m.Body, Evidence: a.evidence,
			}
			for _, each := range list {
				(*each)(d)
			}
		}
	}
	if m.Value != 0 {
		if told := o.take(m.Value); told != nil {
			told <- a
		}
	}
}

// Indicate handles the end of requests without a decision on a value.
func (o *streamHandle) Indicate(_ parley.Path, m parley.Msg) {
	a := agreeResult{slot: m.Seq}
	switch {
	case m.Kind == stream.Nothing:
		a.nothing = true
	case m.Kind == stream.Unanswered && !o.t.Timed() && m.Seq == 0:
		a.err = fmt.Errorf("%w: %w", kernel.ErrRefused, ErrBusy)
	case m.Kind == stream.Unanswered && !o.t.Timed():
		a.err = fmt.Errorf("%w: more than %d nodes restarted during the agreement", kernel.ErrUnknown, o.t.M)
	case m.Kind == stream.Undecided, m.Kind == stream.Unanswered && m.Seq == 0:
		a.err = fmt.Errorf("%w: %w", kernel.ErrRefused, kernel.ErrAbstained)
	case m.Kind == stream.Unanswered:
		a.err = fmt.Errorf("%w: %w", kernel.ErrUnknown, kernel.ErrAbstained)
	default:
		return
	}
	if told := o.take(m.Value); told != nil {
		told <- a
	}
}
