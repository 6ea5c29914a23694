package order

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"parley/internal/must"
)

// Open is the result of an open loop: messages are due at fixed times, whatever the cluster does, and latencies count
// from the time when a message was due. A cluster that stalls is therefore charged for all messages due meanwhile,
// and not only for one.
type Open struct {
	Offered float64 `json:"offered_per_s"`
	Got     float64 `json:"delivered_per_s"` // at all nodes
	CPU     float64 `json:"cpu_s_per_million"`
	Own     Spread  `json:"own_us"` // until the sender's node delivers
	All     Spread  `json:"all_us"` // until the last node does
	Drained bool    `json:"drained"`
}

// Spread describes latencies, in microseconds.
type Spread struct {
	Count int     `json:"n"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Most  float64 `json:"max"`
}

// mostOpen is the maximum number of messages of an open loop. The latency of each is kept.
const mostOpen = 20_000_000

// loop is a running open loop.
type loop struct {
	nodes  int
	every  float64 // nanoseconds between two messages of a sender
	shift  float64 // between the first messages of two senders
	sender []looped
}

// looped holds the messages of one sender: when its own node and when the last node delivered each, in nanoseconds
// since the phase began.
type looped struct {
	own, all []int64
	left     []atomic.Int32 // nodes that have not delivered it
}

// due returns when a message is due, in nanoseconds since the phase began.
func (o *loop) due(sender int, seq uint64) int64 {
	return int64(o.every*float64(seq) + o.shift*float64(sender))
}

// took records a delivery at a node.
func (o *loop) took(node, sender int, seq uint64, at int64) {
	if sender >= len(o.sender) || seq >= uint64(len(o.sender[sender].all)) {
		return
	}
	s := &o.sender[sender]
	if node == sender {
		s.own[seq] = at
	}
	if s.left[seq].Add(-1) == 0 {
		s.all[seq] = at
	}
}

// open measures while the first senders nodes send, at a total of Spec.Rate.
func (l *load) open(ctx context.Context, senders int) (r *Open, err error) {
	defer must.Return(&err)
	warm := l.spec.Duration / 4
	each := int(float64(l.spec.Rate) / float64(senders) * (warm + l.spec.Duration).Seconds())
	if each < 1 || each*senders > mostOpen {
		return nil, fmt.Errorf("%d messages: allowed in an open loop are 1 to %d: change --rate or --dur",
			each*senders, mostOpen)
	}
	o := &loop{nodes: l.correct, every: 1e9 * float64(senders) / float64(l.spec.Rate), shift: 1e9 / float64(l.spec.Rate)}
	for range senders {
		s := looped{make([]int64, each), make([]int64, each), make([]atomic.Int32, each)}
		for i := range s.left {
			s.left[i].Store(int32(l.correct))
		}
		o.sender = append(o.sender, s)
	}
	p := l.begin(false)
	p.loop.Store(o)
	cpu := processorTime()
	must.Each(senders, func(s int) error { return l.offer(ctx, p, o, s, each) })
	total := uint64(each * senders)
	r = &Open{Offered: float64(l.spec.Rate), Drained: l.drain(ctx, p, total)}
	r.CPU = (processorTime() - cpu).Seconds() / float64(total) * 1e6
	o.judge(r, warm)
	return r, nil
}

// offer sends the messages of one node when they are due, or immediately if they are overdue.
func (l *load) offer(ctx context.Context, p *phase, o *loop, s, count int) error {
	for seq := uint64(0); seq < uint64(count) && ctx.Err() == nil; {
		for ; seq < uint64(count) && o.due(s, seq) <= int64(time.Since(p.began)); seq++ {
			if err := l.groups[s].BroadcastAsync(l.message(p, s, seq)); err != nil {
				return err
			}
		}
		if l.spec.Network == nil {
			nap(50 * time.Microsecond)
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
	return nil
}

// judge sums up the messages that were due after the warm-up.
func (o *loop) judge(r *Open, warm time.Duration) {
	var own, all []float64
	last := int64(0)
	for s := range o.sender {
		for seq, at := range o.sender[s].all {
			due := o.due(s, uint64(seq))
			if due < int64(warm) || at == 0 {
				continue
			}
			own = append(own, float64(o.sender[s].own[seq]-due)/1e3)
			all = append(all, float64(at-due)/1e3)
			last = max(last, at)
		}
	}
	if len(all) > 0 {
		r.Got = float64(len(all)) / (float64(last)/1e9 - warm.Seconds())
	}
	r.Own, r.All = spread(own), spread(all)
}

func spread(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	slices.Sort(v)
	at := func(share float64) float64 { return v[min(len(v)-1, int(float64(len(v))*share))] }
	return Spread{len(v), at(0.5), at(0.99), at(0.999), v[len(v)-1]}
}
