package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
	"parley/internal/chaos/judge"
	"parley/internal/must"
)

// The minimum for a run of four minutes. Shorter runs need their share.
const (
	leastFaults   = 12
	leastAnswered = 10_000
	leastTime     = 4 * time.Minute
)

// workers is the number of clients of the table.
const workers = 10

// epoch is how long the clients use the same keys, so that each key has few operations.
const epoch = 4 * time.Second

// keysAt returns the keys of an epoch.
func keysAt(now time.Duration) (out []string) {
	for i := range 5 {
		out = append(out, fmt.Sprintf("key %d.%d", now/epoch, i))
	}
	return append(out, fmt.Sprintf("sum %d", now/epoch))
}

// chaos injects one fault after another into the nodes, and judges.
func (r *run) chaos(ctx context.Context, o options, kinds []fault) error {
	r.load = r.newLoad(cmp.Or(o.pace, 25*time.Millisecond), keysAt)
	where := ", each with its own network and disk"
	if o.bare {
		where = " on the loopback interface"
	}
	fmt.Fprintf(r.out, "seed %d: five nodes%s, %v\n", r.seed, where, o.long)
	if o.liar == "" && o.only == "" {
		fmt.Fprintf(r.out, "%s is left out: no program was given for it by -liar\n", liarName)
	}
	whole, end := context.WithCancel(ctx)
	defer end()
	stop := make(chan struct{})
	r.load.listen(whole, r.all()...)
	r.load.start(whole, stop, r.seed, "load", r.all()...)
	failed := r.injectAll(ctx, o, kinds)
	took := r.load.now()
	if failed == nil {
		failed = r.finish(ctx, stop)
	}
	end()
	r.load.asks.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errors.Join(failed, r.judge(o, took, failed == nil, r.again))
}

// start starts all clients of the table, if there is one, and those that broadcast at the given nodes. They end when
// stop is closed or the context ends; wait for asks to know that they have. name must differ from that of all other
// broadcasts.
func (l *load) start(ctx context.Context, stop <-chan struct{}, seed uint64, name string, nodes ...int) {
	for i := range workers {
		if l.keys != nil {
			l.asks.Go(func() { l.worker(i, seed).run(ctx, stop) })
		}
	}
	for _, i := range nodes {
		l.asks.Go(func() { l.caster(ctx, i, name, stop) })
	}
}

// listen subscribes to nodes until the context ends.
func (l *load) listen(ctx context.Context, nodes ...int) {
	for _, i := range nodes {
		go l.listener(ctx, i)
	}
}

// injectAll injects one fault after another: each kind once before any is repeated, and kinds requested by name at
// least once.
func (r *run) injectAll(ctx context.Context, o options, kinds []fault) error {
	if _, err := r.heals(ctx, "begin"); err != nil {
		return fmt.Errorf("at the beginning: %w", err)
	}
	var turn []fault
	before := len(r.events)
	for (r.load.now() < o.long || o.only != "" && len(r.events) < before+len(kinds)) && ctx.Err() == nil {
		if len(turn) == 0 {
			turn = slices.Clone(kinds)
			r.dice.Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		}
		f := turn[0]
		turn = turn[1:]
		if err := r.inject(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		hold(ctx, time.Second)
	}
	return nil
}

// inject injects one fault, and waits until all nodes have recovered.
func (r *run) inject(ctx context.Context, f fault) error {
	var err error
	e := event{fault: f.name, began: r.load.now()}
	r.affected, r.others = nil, recoveryTimes{}
	if f.lies() {
		r.load.rest()
		defer func() {
			r.load.wake()
			r.rested += r.load.now() - e.began
		}()
	}
	if e.said, err = f.attempt(ctx, r); err != nil {
		return err
	}
	e.affected, e.others = r.affected, r.others
	e.over = r.load.now()
	e.well, err = r.heals(ctx, fmt.Sprintf("%s.%d", f.name, len(r.events)))
	e.whole = r.load.now()
	meanwhile := "nothing judged was asked"
	if !f.lies() {
		e.answered, e.outage = r.load.answered(e.began, e.whole)
		meanwhile = fmt.Sprintf("%d answers, none for %s", e.answered, brief(e.outage))
	}
	r.events = append(r.events, e)
	r.printf("%-12s %s; well after %s; meanwhile %s", e.fault, e.said, e.well, meanwhile)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("not well after %v: %w", 4*r.heal, err)
	}
	if f.lies() && err == nil {
		err = r.agreeAgain(ctx)
	}
	for _, n := range r.nodes {
		err = errors.Join(err, n.dead())
	}
	return err
}

// agreeAgain waits after a liar until all replicas of the table are equal and all nodes have delivered the fence,
// from which on their deliveries are judged again, at the same position. Nodes that have it at another position
// rejoin with empty folders.
func (r *run) agreeAgain(ctx context.Context) (err error) {
	defer must.Return(&err)
	for turn := 0; ; turn++ {
		must.Do(r.fence(ctx, fmt.Sprintf("fence.%d.%d", len(r.events), turn)))
		other := judge.Strangers(r.load.orders.Fences())
		if len(other) == 0 {
			r.load.orders.Fenced()
			return nil
		}
		if len(other) > 2 || turn > 0 {
			return fmt.Errorf("%w: %d", errNumbers, r.load.orders.Fences())
		}
		r.printf("%s: %s number deliveries differently, and rejoin", liarName, nodeNames(other))
		r.load.orders.Unhear()
		var errs []error
		for _, i := range other { // together, so that none takes over another's numbers
			errs = append(errs, r.nodes[i].kill(), os.RemoveAll(r.w.data(i)))
		}
		for _, i := range other {
			errs = append(errs, r.nodes[i].begin("--rejoin"))
		}
		must.Do(errors.Join(errs...))
		must.Get(r.heals(ctx, fmt.Sprintf("renumbered.%d", len(r.events))))
	}
}

// finish waits until everything in flight has finished, and has all clients read the final state.
func (r *run) finish(ctx context.Context, stop chan struct{}) (err error) {
	defer must.Return(&err)
	close(stop)
	r.load.asks.Wait()
	ctx, done := within(ctx, 2*r.heal)
	defer done()
	must.Get(r.well(ctx, "end"))
	must.Do(r.quiet(ctx))
	keys := make(map[string]bool)
	for _, o := range r.load.history.All() {
		keys[o.Key] = true
	}
	var all sync.WaitGroup
	for i := range r.nodes {
		all.Go(func() {
			w := r.load.worker(workers+i, r.seed)
			w.home = i
			for key := range keys { // order: every key is read once
				w.carryOut(ctx, &judge.Op{Client: w.id, Verb: judge.Get, Key: key})
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil {
		r.again = r.reread(ctx)
	}
	return ctx.Err()
}

// reread has every node read all deliveries again, from the first position on, because a durable group keeps them.
func (r *run) reread(ctx context.Context) (err error) {
	defer must.Return(&err)
	all := r.all()
	must.Each(len(all), func(k int) error {
		i, again := all[k], r.load.orders.Again()
		err := r.clients[i].hear(ctx, 1, func(d *parleyv1.Delivery) bool {
			return again.Deliver(d.GetPosition(), d.GetFrom(), string(d.GetPayload()))
		})
		if rest := again.Missing(); rest != nil {
			return fmt.Errorf("%s: %w", nodeName(i), errors.Join(rest, err))
		}
		return nil
	})
	return nil
}

// missed returns an error if nodes did not retain deliveries that others had not received yet.
func missed(gaps int) error {
	if gaps == 0 {
		return nil
	}
	return fmt.Errorf("%d times a node did not have what it had delivered when it was listened to again", gaps)
}

// judge checks everything, and prints the results. A run that was given up has not ended: other nodes may not have
// delivered yet what one node has acknowledged.
func (r *run) judge(o options, took time.Duration, ended bool, reread error) error {
	ops := r.load.history.All()
	answered := judge.Answered(ops)
	lost := r.load.orders.Undelivered()
	casts, delivered := r.load.orders.Count()
	gaps := r.load.orders.Gaps()
	median, p99, most := latencies(ops)
	r.toll.print(r.out)
	fmt.Fprintf(r.out, "%d commands of the table, %d answered; %v in the median, %v for 99 of 100, %v at most\n",
		len(ops), answered, median.Round(10*time.Microsecond), p99.Round(100*time.Microsecond), most.Round(time.Millisecond))
	fmt.Fprintf(r.out, "%d broadcasts, %d delivered, %d lost; nodes missed some %d times\n",
		casts, delivered, len(lost), gaps)
	v := verdicts{out: r.out}
	since := time.Now()
	v.add("the answers fit one order that agrees with their times (porcupine)", judge.Linear(ops, nil, 5*time.Minute))
	v.add("positions of commands agree with their times", judge.Ordered(ops))
	v.add("one order of deliveries everywhere, none lost, none twice", r.load.orders.Settle())
	if ended {
		v.add("what a node has said that it delivered was delivered by all", forgotten(lost))
		v.add("all deliveries can be read at every node from the beginning", errors.Join(reread, missed(gaps)))
	}
	v.add(r.promise(r.heal), r.slow(r.heal))
	v.add("enough was asked and enough befell", r.enough(o, took, answered, leastAnswered))
	fmt.Fprintf(r.out, "judged in %s\n", brief(time.Since(since)))
	return errors.Join(v.errs...)
}

// forgotten returns an error about payloads that a node has acknowledged and that no node delivers.
func forgotten(lost []judge.Cast) error {
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("%d payloads, the first of them of %s at %v", len(lost), nodeName(lost[0].Node), lost[0].At)
}
