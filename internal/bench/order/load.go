package order

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley/cluster"
	"parley/internal/must"
)

// headBytes is the length of the header of a message: the phase, the sender, and the sender's message number.
const headBytes = 10

// load is the state shared by all phases.
type load struct {
	spec    Spec
	correct int // the correct nodes come first; the others are silent
	groups  []*cluster.Group
	phases  byte
	phase   atomic.Pointer[phase]
}

// phase is the state of one phase.
type phase struct {
	number byte
	lone   bool // one message at a time
	window uint64
	began  time.Time
	nodes  []delivered
	own    []progress    // by sender
	seq    atomic.Uint64 // of the message in flight, if lone
	left   atomic.Int32  // nodes that have not delivered that message
	done   chan struct{}
	last   time.Duration        // when the first node delivered last, since the phase began
	gap    atomic.Int64         // the longest time between deliveries there, in nanoseconds, since it was set to 0
	gaps   bool                 // it is measured
	loop   atomic.Pointer[loop] // of an open loop
}

// delivered counts the deliveries of one node. Only one goroutine at a time writes it.
type delivered struct {
	count atomic.Uint64
	hash  uint64
	at    time.Duration // when the lone message was delivered, since the phase began
	_     [64]byte      // keeps it on cache lines of its own
}

// progress is how many of a sender's messages its own node has delivered.
type progress struct {
	delivered atomic.Uint64
	awaited   atomic.Uint64 // signal wake at this number; 0: nobody waits
	wake      chan struct{}
	_         [64]byte
}

// begin begins a phase.
func (l *load) begin(lone bool) *phase {
	runtime.GC()
	l.phases++
	p := &phase{
		number: l.phases, lone: lone, window: uint64(l.spec.Window), began: time.Now(), done: make(chan struct{}, 1),
		nodes: make([]delivered, l.spec.N), own: make([]progress, l.spec.N),
	}
	for i := range p.own {
		p.own[i].wake = make(chan struct{}, 1)
	}
	l.phase.Store(p)
	return p
}

// message returns the payload number seq of a sender: the phase, the sender, the number, and padding.
func (l *load) message(p *phase, sender int, seq uint64) []byte {
	m := make([]byte, l.spec.Size)
	m[0], m[1] = p.number, byte(sender)
	binary.LittleEndian.PutUint64(m[2:], seq)
	return m
}

// deliver records a delivery at a node.
func (l *load) deliver(node int, m []byte) {
	p := l.phase.Load()
	if p == nil || len(m) < headBytes || m[0] != p.number {
		return
	}
	sender, seq := int(m[1]), binary.LittleEndian.Uint64(m[2:])
	at := &p.nodes[node]
	at.hash = (at.hash ^ (uint64(sender)<<56 | seq)) * 1099511628211
	if o := p.loop.Load(); o != nil && node < l.correct {
		o.took(node, sender, seq, int64(time.Since(p.began)))
		at.count.Add(1) // last: a reader that has seen the final count also sees the records
		return
	}
	at.count.Add(1)
	switch {
	case p.lone:
		if node < l.correct && seq == p.seq.Load() {
			at.at = time.Since(p.began)
			if p.left.Add(-1) == 0 {
				p.done <- struct{}{}
			}
		}
	case sender == node:
		if p.gaps {
			now := time.Since(p.began)
			p.gap.Store(max(p.gap.Load(), int64(now-p.last)))
			p.last = now
		}
		own := &p.own[sender]
		n := own.delivered.Add(1)
		if awaited := own.awaited.Load(); awaited != 0 && n >= awaited && own.awaited.CompareAndSwap(awaited, 0) {
			own.wake <- struct{}{}
		}
	}
}

// slowest returns how many messages the slowest correct node has delivered.
func (l *load) slowest(p *phase) uint64 {
	least := p.nodes[0].count.Load()
	for i := range p.nodes[:l.correct] {
		least = min(least, p.nodes[i].count.Load())
	}
	return least
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// drain waits until all nodes have delivered so many messages, or it takes too long, and reports whether they have.
func (l *load) drain(ctx context.Context, p *phase, sent uint64) bool {
	for end := time.Now().Add(5 * time.Second); l.slowest(p) < sent && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(5 * time.Millisecond)
	}
	return l.slowest(p) == sent
}

// rate measures the rate while the first senders nodes send.
func (l *load) rate(ctx context.Context, senders int) (*Rate, error) {
	p := l.begin(false)
	var stop atomic.Bool
	var sent atomic.Uint64
	var all sync.WaitGroup
	errs := make([]error, senders)
	for s := range senders {
		all.Go(func() {
			n, err := l.send(p, s, &stop)
			sent.Add(n)
			errs[s] = err
		})
	}
	pause(ctx, l.spec.Duration/4)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from, cpu, count := time.Now(), processorTime(), l.slowest(p)
	pause(ctx, l.spec.Duration)
	took, used, messages := time.Since(from), processorTime()-cpu, float64(l.slowest(p)-count)
	runtime.ReadMemStats(&after)
	stop.Store(true)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	r := &Rate{PerSecond: messages / took.Seconds()}
	if messages > 0 {
		r.CPU = used.Seconds() / messages * 1e6
		r.Allocs = float64(after.Mallocs-before.Mallocs) / messages
	}
	r.Drained = l.drain(ctx, p, sent.Load())
	time.Sleep(20 * time.Millisecond) // lets deliveries arrive that no sender has sent
	r.Same = r.Drained
	for i := range p.nodes[:l.correct] {
		r.Same = r.Same && p.nodes[i].hash == p.nodes[0].hash
	}
	return r, nil
}

// send sends from one node until it is stopped, and returns the number of messages.
func (l *load) send(p *phase, s int, stop *atomic.Bool) (sent uint64, err error) {
	own := &p.own[s]
	for !stop.Load() {
		if sent-own.delivered.Load() >= p.window { // then wait until a quarter of it is free
			need := sent - p.window*3/4
			own.awaited.Store(need)
			if own.delivered.Load() < need || !own.awaited.CompareAndSwap(need, 0) {
				select {
				case <-own.wake:
				case <-time.After(10 * time.Second):
					return sent, fmt.Errorf("node %d has delivered none of its own messages for 10 s", s+1)
				}
			}
			continue
		}
		if err := l.groups[s].BroadcastAsync(l.message(p, s, sent)); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

// latency measures with one message in flight. At least one message follows the warm-up.
func (l *load) latency(ctx context.Context, sender int) (*Latency, error) {
	p := l.begin(true)
	var own, all []float64
	for seq := uint64(0); time.Since(p.began) < l.spec.Duration || len(own) == 0; seq++ {
		m := l.message(p, sender, seq)
		p.seq.Store(seq)
		p.left.Store(int32(l.correct))
		sent := time.Since(p.began)
		if err := l.groups[sender].BroadcastAsync(m); err != nil {
			return nil, err
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Second):
			return nil, errors.New("a message was not delivered everywhere within 10 s")
		}
		if sent < l.spec.Duration/6 { // warm-up
			continue
		}
		last := sent
		for i := range p.nodes[:l.correct] {
			last = max(last, p.nodes[i].at)
		}
		own = append(own, float64(p.nodes[sender].at-sent)/1e3)
		all = append(all, float64(last-sent)/1e3)
	}
	o, a := spread(own), spread(all)
	return &Latency{Count: len(own), OwnP50: o.P50, OwnP99: o.P99, AllP50: a.P50, AllP99: a.P99}, nil
}

// kill measures with one sender before and after the last m nodes end.
func (l *load) kill(ctx context.Context, nodes []*cluster.Node) (k *Kill, err error) {
	p := l.begin(false)
	p.gaps = true
	var stop atomic.Bool
	var all sync.WaitGroup
	var sending error
	all.Go(func() { _, sending = l.send(p, 0, &stop) })
	rate := func() float64 {
		from, count := time.Now(), p.nodes[0].count.Load()
		pause(ctx, l.spec.Duration)
		return float64(p.nodes[0].count.Load()-count) / time.Since(from).Seconds()
	}
	pause(ctx, l.spec.Duration/4)
	k = &Kill{Before: rate()}
	p.gap.Store(0)
	l.correct = l.spec.N - l.spec.M
	var ending error
	all.Go(func() {
		defer must.Return(&ending)
		must.Each(l.spec.M, func(i int) error { return nodes[l.correct+i].Close() })
	})
	k.After = rate()
	k.Silent = float64(p.gap.Load()) / 1e6
	stop.Store(true)
	all.Wait()
	if err := errors.Join(sending, ending); err != nil {
		return nil, err
	}
	lone, err := l.latency(ctx, 0)
	if err != nil {
		return nil, err
	}
	k.Lone, k.Lone99 = lone.OwnP50, lone.OwnP99
	return k, nil
}
