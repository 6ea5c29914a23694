package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/agreement/stream"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/faulty"
)

// Algorithm is the algorithm by which nodes agree on the value of one of them.
type Algorithm = stream.Algorithm

// The algorithms.
const (
	EIG       = stream.EIG       // exponential information gathering: n > 3m, m+1 rounds
	OM        = stream.OM        // oral messages, the recursion: n > 3m, m+1 rounds
	SM        = stream.SM        // signed messages: n >= m+2, m+1 rounds
	PhaseKing = stream.PhaseKing // short messages: n > 3m, 3m+4 rounds
)

// ParseAlgorithm reads the name of an algorithm.
func ParseAlgorithm(text string) (Algorithm, error) { return stream.ParseAlgorithm(text) }

// MaxValue is the largest value that nodes agree on, in bytes.
const MaxValue = stream.MaxValue

// Question asks for an agreement on a value of this node's.
type Question struct {
	Value     []byte // at most MaxValue bytes; with EIG and OM for m > 2 at most 32
	Algorithm Algorithm
	// M is how many nodes may lie; by default as many as the algorithm tolerates.
	M int
	// Evidence asks all nodes what they heard. The answer waits for them, a round at most.
	Evidence bool
}

// Decision is what all correct nodes agree on.
type Decision struct {
	Source    parley.ID
	Algorithm Algorithm
	M         int
	// Slot numbers the agreements of the same source, algorithm and m, from 1.
	Slot  uint64
	Value []byte // which nobody may change
	// Evidence is, where it was asked for, what nodes say they heard: at the source of
	// all that told in time, at another node its own.
	Evidence []stream.Evidence
}

// Errors of agreements, beside [ErrExpelled] and [RoundError]. Each error of [Node.Agree], [Node.Propose]
// and [Node.Consensus] is, by [errors.Is], either [ErrUnknown]: it was handed to the machine, and the
// others may decide, on this node's value or without it, or may have; or else nothing came
// of it, nor will. That is [ErrTooLarge] of a value, [ErrRefused] of what makes no sense, was not
// begun before the context ended, or may not be ([ErrDraining] and a RoundError are ErrRefused).
var (
	// ErrAbstained is the error of an agreement in which this node took no part, for it
	// was held up beyond the time of a round, heard fewer than are correct, or was out: it
	// had come back, or lost touch; or of one for which its value came too late. It is ErrUnknown,
	// too, if the others may have decided on this node's value, and else ErrRefused, which holds
	// if no more than M lie or are late, this node among them.
	ErrAbstained = kernel.ErrAbstained
	// ErrClosed is the error of a node that was closed. It is ErrUnknown, too, of what was begun.
	ErrClosed = kernel.ErrClosed
	// ErrReserved is the error of the one value that stands for no value. It is ErrRefused, too.
	ErrReserved = errors.New("the value is the one that stands for none")
)

// Lab is for laboratories: it makes a node lie.
type Lab struct {
	// Traitor is how the node behaves in agreements, and in groups of level Byzantine.
	Traitor faulty.Behaviour
}

// Agree has all correct nodes agree on a value, which is the one given if this node is
// correct and no more than M lie. It returns when this node has decided. If the context
// ends before, the agreement goes on, and may come to an end: the error is ErrUnknown then, and
// the context's. If it ends before the agreement has begun, it is ErrRefused.
//
// Before the first agreement of a source, an algorithm and an m the others are asked whether they
// are prepared: that takes two rounds if one is silent, and some ten if more than M are.
//
// A node that has come back waits until it takes part again: for some three times as long as
// an agreement lasts with silent nodes, and thrice as long if all have come back at once. One
// that was cut off for long does, too.
//
// It fails without having begun if messages to the others are too slow for the length of
// a round, with a *RoundError.
func (n *Node) Agree(ctx context.Context, q Question) (Decision, error) {
	t := stream.Key{Algorithm: q.Algorithm, M: q.M, Source: n.k.Self}
	if t.M == 0 {
		t.M = t.Algorithm.Most(len(n.c.Members))
	}
	d := Decision{Source: n.k.Self, Algorithm: t.Algorithm, M: t.M}
	switch {
	case len(q.Value) > t.Limit():
		return d, fmt.Errorf("%w: a value of %d bytes: with %v and m = %d at most %d",
			ErrTooLarge, len(q.Value), t.Algorithm, t.M, t.Limit())
	case bytes.Equal(q.Value, stream.NoValue()):
		return d, fmt.Errorf("%w: %w", ErrRefused, ErrReserved)
	}
	o, err := n.ready(t)
	if err != nil {
		return d, err
	}
	a, err := o.ask(ctx, stream.SourceRequest(q.Value, q.Evidence))
	d.Slot, d.Value, d.Evidence = a.slot, a.value, a.evidence
	return d, err
}

// ready returns a stream in which something may be asked for.
func (n *Node) ready(t stream.Key) (*opened, error) {
	if err := n.k.Takes(true); err != nil {
		return nil, err
	}
	if err := n.share().allows(t); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := n.fits(t.M); err != nil {
		return nil, err
	}
	o, err := n.streams.open(n, t)
	if errors.Is(err, host.ErrStopped) {
		return nil, fmt.Errorf("%w: %w", ErrClosed, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return o, nil
}

// Decisions has a function called for every decision of this node, whoever asked, until
// stop: as they fall, which need not be in the order of slots. Those on no value are left
// out. The function is
// called within a step of the node: it must not block, nor ask for an agreement.
func (n *Node) Decisions(each func(Decision)) (stop func()) {
	l := &n.streams
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := &each
	l.listen(append(slices.Clone(l.listeners()), mine))
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		isMine := func(one *func(Decision)) bool { return one == mine }
		l.listen(slices.DeleteFunc(slices.Clone(l.listeners()), isMine))
	}
}

// streams are the streams that are open at a node.
type streams struct {
	mu    sync.Mutex
	table map[stream.Key]*opened
	heard atomic.Pointer[[]*func(Decision)]
	delay delays

	shared sync.Once
	share  share

	once   sync.Once
	closed chan struct{} // when the node is
}

// close wakes whoever waits for an answer.
func (l *streams) close() { l.once.Do(func() { close(l.closed) }) }

func (l *streams) listen(list []*func(Decision)) { l.heard.Store(&list) }

func (l *streams) listeners() []*func(Decision) {
	if list := l.heard.Load(); list != nil {
		return *list
	}
	return nil
}

// absent opens the stream of a channel on which a message came.
func (n *Node) absent(channel uint32) bool {
	if channel < kernel.FirstStream || channel > kernel.LastStream {
		return false
	}
	t := streamOf(channel)
	_, err := n.streams.open(n, t)
	if err != nil {
		n.c.Log.Debug("a message of no stream", "channel", channel, "why", err)
	}
	return err == nil
}

// open returns a stream, which it opens if it is not open yet. All nodes do so lazily:
// there are only so many.
func (l *streams) open(n *Node, t stream.Key) (*opened, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.table[t]; o != nil {
		return o, nil
	}
	if err := n.share().allows(t); err != nil {
		return nil, err
	}
	if t.Algorithm == SM && n.c.SignerKey == nil {
		return nil, errors.New("this node has no key to sign with")
	}
	o := &opened{n: n, t: t, waiting: make(map[uint64]chan answer)}
	o.room, o.whys = make(chan struct{}, n.share().window(t)), make(chan struct{}, stream.MaxEvidenceRequests)
	machine := n.machine(t)
	var err error
	o.process, err = n.k.Host.Open(host.Options{
		Channel: channelOf(t), Name: streamName(t), Machine: machine, Upper: o, Again: n.k.Again || n.c.Rejoin,
		Class: link.Bulk,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", streamName(t), err)
	}
	if l.table == nil {
		l.table = make(map[stream.Key]*opened)
	}
	l.table[t] = o
	return o, nil
}

// reopen opens all streams there may be at a node that has lived before, so that it takes
// part again as soon as it can, and not only when it is asked for something: until then it
// counts as faulty.
func (n *Node) reopen() {
	if !n.k.Again && !n.c.Rejoin {
		return
	}
	for channel := uint32(kernel.FirstStream); channel <= kernel.LastStream; channel++ {
		t := streamOf(channel)
		if n.share().allows(t) != nil || t.Algorithm == SM && n.c.SignerKey == nil {
			continue
		}
		if _, err := n.streams.open(n, t); err != nil {
			n.c.Log.Warn("a stream of agreements cannot be opened", "stream", streamName(t), "why", err)
		}
	}
}

// machine makes the machine of a stream, or of a liar in it.
func (n *Node) machine(t stream.Key) parley.Machine {
	p := stream.New(stream.Config{
		Key: t, N: len(n.c.Members), Window: n.share().window(t), Name: n.k.Name,
		DiskIntact: !n.c.Rejoin && (n.c.Dir == "" || n.admin.life < rejoined),
	}, n.c.streamed())
	if n.c.Lab == nil {
		return p.New(n.k.Self)
	}
	return faulty.New(p, 0, map[parley.ID]faulty.Behaviour{n.k.Self: n.c.Lab.Traitor})
}

// opened is a stream at one node, and the upper of its machine.
type opened struct {
	n       *Node
	t       stream.Key
	process *host.Process
	room    chan struct{} // held by each question
	whys    chan struct{} // and by each that asks for evidence

	mu      sync.Mutex
	next    uint64 // number of the last question
	waiting map[uint64]chan answer

	evidence []stream.Evidence // of the decision that comes next; of steps only
}

// answer is what comes of a question.
type answer struct {
	slot     uint64
	value    []byte
	evidence []stream.Evidence
	err      error
}

// ask asks the machine for something and waits for its answer.
func (o *opened) ask(ctx context.Context, m parley.Msg) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrRefused, context.Cause(ctx))
	}
	if !o.t.All() && m.Seq != 0 {
		if err := o.hold(ctx, o.whys); err != nil {
			return answer{}, err
		}
		defer func() { <-o.whys }()
	}
	if err := o.hold(ctx, o.room); err != nil {
		return answer{}, err
	}
	defer func() { <-o.room }()
	told := make(chan answer, 1)
	o.mu.Lock()
	o.next++
	m.Value = o.next
	o.waiting[m.Value] = told
	o.mu.Unlock()
	if err := o.process.Request(m); err != nil {
		o.take(m.Value)
		return answer{}, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	select {
	case a := <-told:
		return a, a.err
	case <-ctx.Done():
		o.take(m.Value)
		if o.t.All() {
			_ = o.process.Request(parley.Msg{Kind: stream.Withdrawn, Value: m.Value}) // it fails if the node has closed
		}
		return answer{}, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
	case <-o.n.streams.closed:
		return answer{}, fmt.Errorf("%w: %w", ErrUnknown, o.n.k.Closed())
	}
}

// hold waits for a place. Nothing is begun before that.
func (o *opened) hold(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: too many agreements are under way: %w", ErrRefused, context.Cause(ctx))
	case <-o.n.streams.closed:
		return o.n.k.Closed()
	}
}

// take ends the waiting for an answer; nil if nobody waits for it.
func (o *opened) take(number uint64) chan answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.waiting[number]
	delete(o.waiting, number)
	return told
}

// Deliver takes a decision. It is part of a step.
func (o *opened) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	if m.Kind == parley.Carried {
		if one, ok := stream.DecodeEvidence(from, m.Body); ok {
			o.evidence = append(o.evidence, one)
		}
		return
	}
	slices.SortFunc(o.evidence, func(a, b stream.Evidence) int { return int(a.Node) - int(b.Node) })
	a := answer{m.Seq, m.Body, o.evidence, nil}
	if o.evidence = nil; !o.t.All() {
		if list := o.n.streams.listeners(); len(list) > 0 {
			d := Decision{from, o.t.Algorithm, o.t.M, m.Seq, m.Body, a.evidence}
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

// Indicate takes what becomes of questions that get no answer.
func (o *opened) Indicate(_ parley.Path, m parley.Msg) {
	if m.Kind == stream.Unanswered || m.Kind == stream.Undecided {
		began := ErrUnknown
		if m.Seq == 0 || m.Kind == stream.Undecided {
			began = ErrRefused
		}
		if told := o.take(m.Value); told != nil {
			told <- answer{slot: m.Seq, err: fmt.Errorf("%w: %w", began, ErrAbstained)}
		}
	}
}
