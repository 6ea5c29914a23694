package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/internal/chaos/judge"
	"parley/replica/keyvalue"
)

// load is the clients' requests to the nodes: commands of the table, and broadcasts.
type load struct {
	clients []*client
	history *judge.History
	orders  *judge.Orders
	began   time.Time
	keys    func(now time.Duration) []string // the keys of commands at this time; nil: there is no table
	pace    time.Duration                    // the interval of each client

	turn sync.RWMutex // read-locked during a request; locked while the load rests
	lies atomic.Int64 // how often the load has rested
	asks sync.WaitGroup

	mu          sync.Mutex
	answerTimes []time.Duration // when commands of the table were answered or, without a table, broadcasts
	last        map[string]uint64
}

// now is the time since the beginning.
func (l *load) now() time.Duration { return time.Since(l.began) }

// try is a client's timeout for one node.
const try = 1500 * time.Millisecond

// worker is one client of the table.
type worker struct {
	*load
	id      int
	home    int // the node that it calls
	dice    *rand.Rand
	session uint64
	number  uint64
	opened  int64 // how often the load had rested when the session was opened
}

func (l *load) worker(id int, seed uint64) *worker {
	return &worker{load: l, id: id, home: id % len(l.clients), dice: rand.New(rand.NewPCG(seed, uint64(id)))}
}

// run executes one command after another until stop is closed. The end of the context cancels the command in flight.
func (w *worker) run(ctx context.Context, stop <-chan struct{}) {
	pause := func() time.Duration { return w.pace/2 + time.Duration(w.dice.Int64N(int64(w.pace))) }
	for i := 0; continues(ctx, stop, pause()); i++ {
		w.turn.RLock()
		if now := w.lies.Load(); now != w.opened {
			w.session, w.opened = 0, now
		}
		w.carryOut(ctx, w.next(i))
		w.turn.RUnlock()
	}
}

// next draws a command.
func (w *worker) next(i int) *judge.Op {
	keys := w.keys(w.now())
	key := keys[w.dice.IntN(len(keys))]
	o := &judge.Op{Client: w.id, Key: key, Value: fmt.Sprintf("%d.%d", w.id, i)}
	switch x := w.dice.IntN(100); {
	case strings.HasPrefix(key, "sum"):
		o.Verb, o.By = judge.Add, w.dice.Int64N(9)+1
		if x < 25 {
			o.Verb = judge.Get
		}
	case x < 40:
		o.Verb = judge.Put
	case x < 65:
		o.Verb = judge.Get
	case x < 90:
		w.mu.Lock()
		o.Verb, o.Version = judge.Swap, w.last[key]
		w.mu.Unlock()
	default:
		o.Verb = judge.Remove
	}
	return o
}

// carryOut executes a command until it is answered. A command of a session is retried at one node after another, and
// executed only once.
func (w *worker) carryOut(ctx context.Context, o *judge.Op) {
	o.Call = w.now()
	w.history.Began(o)
	command := o.Command()
	var b []byte
	var position uint64
	var err error
	if o.Verb == judge.Get {
		b, position, err = w.read(ctx, command)
	} else {
		b, position, err = w.write(ctx, command)
	}
	a, ok := keyvalue.ReadAnswer(b)
	if err != nil || !ok {
		return // outcome unknown
	}
	at := w.now()
	w.history.Ended(o, at, a, position)
	w.mu.Lock()
	w.answerTimes = append(w.answerTimes, at)
	if w.last[o.Key] = a.Version; a.Status == keyvalue.Missing || o.Verb == judge.Remove {
		w.last[o.Key] = 0
	}
	w.mu.Unlock()
}

func (w *worker) read(ctx context.Context, command []byte) (b []byte, position uint64, err error) {
	err = w.patiently(ctx, func(ctx context.Context, c *client) (err error) {
		b, position, err = c.query(ctx, command)
		return err
	}, nil)
	return b, position, err
}

// write executes a command under one number of a session until it is answered. If the session has expired, a command
// that was tried before has an unknown outcome.
func (w *worker) write(ctx context.Context, command []byte) (b []byte, position uint64, err error) {
	for {
		if w.session == 0 {
			err := w.patiently(ctx, func(ctx context.Context, c *client) (err error) {
				w.session, err = c.open(ctx)
				return err
			}, nil)
			if err != nil {
				return nil, 0, err
			}
			w.number = 0
		}
		w.number++
		asked := false
		err = w.patiently(ctx, func(ctx context.Context, c *client) (err error) {
			b, position, err = c.do(ctx, w.session, w.number, command)
			asked = asked || err != nil && outcomeOf(err) == unknown
			return err
		}, func(err error) bool { return outcomeOf(err) == expired })
		if err == nil {
			return b, position, nil
		}
		if w.session = 0; asked || ctx.Err() != nil {
			return nil, 0, err
		}
	}
}

// patiently calls the client's node, and the next one if that does not answer, until the context ends.
func (w *worker) patiently(ctx context.Context, ask func(context.Context, *client) error, over func(error) bool) error {
	for {
		one, done := context.WithTimeout(ctx, try)
		err := ask(one, w.clients[w.home])
		done()
		if err == nil || over != nil && over(err) {
			return err
		}
		w.home = (w.home + 1) % len(w.clients)
		if hold(ctx, 50*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// caster broadcasts at one node, each payload once, until stop is closed. No other caster of the node may have the
// name.
func (l *load) caster(ctx context.Context, node int, name string, stop <-chan struct{}) {
	for i := 0; continues(ctx, stop, l.pace); i++ {
		l.turn.RLock()
		_ = l.cast(ctx, node, fmt.Sprintf("%s.%s.%d", name, nodeName(node), i)) // the load records the outcome
		l.turn.RUnlock()
	}
}

// continues waits, and returns false if stop is closed or the context ends first.
func continues(ctx context.Context, stop <-chan struct{}, after time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	case <-time.After(after):
		return true
	}
}

// rest pauses workers and casters until wake, and waits for the answers of their requests in flight.
func (l *load) rest() { l.turn.Lock() }

// wake resumes workers and casters. Workers open new sessions, because a liar may have used the old ones.
func (l *load) wake() {
	l.lies.Add(1)
	l.turn.Unlock()
}

// cast broadcasts a payload at a node.
func (l *load) cast(ctx context.Context, node int, payload string) error {
	l.orders.Cast(payload, node, l.now())
	one, done := context.WithTimeout(ctx, try)
	err := l.clients[node].cast(one, []byte(payload))
	done()
	l.orders.Answered(payload, err == nil, err != nil && outcomeOf(err) == nothing)
	if err == nil && l.keys == nil {
		l.mu.Lock()
		l.answerTimes = append(l.answerTimes, l.now())
		l.mu.Unlock()
	}
	return err
}

// listener records the deliveries of one node until the context ends.
func (l *load) listener(ctx context.Context, node int) {
	for ctx.Err() == nil {
		err := l.clients[node].hear(ctx, l.orders.Resume(node), func(d *parleyv1.Delivery) bool {
			l.orders.Deliver(node, d.GetPosition(), d.GetFrom(), string(d.GetPayload()))
			return true
		})
		if err == errGap { //nolint:errorlint // it is returned as it is
			l.orders.Gap(node)
		}
		hold(ctx, 100*time.Millisecond)
	}
}

// answered returns how many requests were answered in an interval, and the longest time without an answer.
func (l *load) answered(from, to time.Duration) (count int, outage time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := from
	for _, at := range l.answerTimes {
		if at < from || at > to {
			continue
		}
		count++
		outage = max(outage, at-last)
		last = at
	}
	return count, max(outage, to-last)
}

// latencies returns the median, the 99th percentile and the maximum of the times to an answer.
func latencies(ops []judge.Op) (median, p99, most time.Duration) {
	var all []time.Duration
	for _, o := range ops {
		if o.Known {
			all = append(all, o.End-o.Call)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
}

// flood writes large values at all nodes but one until the context ends.
func (l *load) flood(ctx context.Context, but int) {
	value := make([]byte, 40<<10)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := i; ctx.Err() == nil; k++ {
				if k%len(l.clients) == but {
					continue
				}
				one, done := context.WithTimeout(ctx, try)
				err := l.clients[k%len(l.clients)].put(one, fmt.Sprintf("flood %d %d", but, i), value)
				done()
				if err != nil {
					hold(ctx, 20*time.Millisecond)
				}
			}
		})
	}
	all.Wait()
}
