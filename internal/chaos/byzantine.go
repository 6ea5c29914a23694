package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"parley/internal/must"
)

// byzantineCount is the number of nodes of a run with a node that lies: one of four may.
const byzantineCount = 4

// leastAcknowledged is the number of broadcasts that a Byzantine run of four minutes needs. While two nodes are down,
// none is possible.
const leastAcknowledged = 2_500

// byzantine is a run with a group of level Byzantine. One of the four nodes is replaced by a process that lies until
// most of the time is over.
type byzantine struct {
	*run
	stop   chan struct{} // closed when no more is broadcast
	enlist func(...int)  // has more nodes broadcast, and reads their deliveries
}

// byzantineFaults returns the kinds of faults of a Byzantine run, in the order in which they are listed. First come
// those that befall correct nodes while another node lies.
func byzantineFaults() (during, after []fault) {
	all := faults()
	choose := func(names ...string) (out []fault) {
		for _, name := range names {
			out = append(out, all[slices.IndexFunc(all, func(f fault) bool { return f.name == name })])
		}
		return out
	}
	names := []string{
		"kill", "kill-quick", "stop", "stop-short", "restart-all", "rolling", "rolling-kill", "rolling-stop",
	}
	during = append(choose(names...),
		fault{"kill-two", "kill -9 of two nodes, which are started again some seconds later", true, killedTwo},
		fault{"stop-two", "SIGSTOP of two nodes for longer than others wait for them", true, stoppedTwo},
		fault{"take-turns", "a node restarts at the moment at which another one is killed", true, tookTurns},
		fault{"liar-restart", "the node that lies is killed, and continues to lie some seconds later", true, liarRestarted})
	// A node without its disk counts as faulty until it is admitted, and only one node may be faulty.
	return during, choose("disk-lost", "disk-flip", "disk-old")
}

func killedTwo(ctx context.Context, r *run) string {
	two, d := r.shuffled()[:2], r.between(2, 5)
	for _, i := range two {
		r.kill(i)
	}
	hold(ctx, d)
	must.Do(r.back(two...))
	return lasted(nodeNames(two), d)
}

func stoppedTwo(ctx context.Context, r *run) string {
	two, d := r.shuffled()[:2], suspect+r.between(1, 4)
	r.affects(two...)
	for _, i := range two {
		must.Do(r.nodes[i].signal(sigStop, false))
	}
	hold(ctx, d)
	for _, i := range two {
		must.Do(r.nodes[i].signal(sigCont, false))
	}
	return lasted(nodeNames(two), d)
}

// tookTurns kills one node, and later another one while the first restarts with what it had then.
func tookTurns(ctx context.Context, r *run) string {
	two := r.shuffled()[:2]
	r.kill(two[0])
	hold(ctx, r.between(1, 3))
	r.kill(two[1])
	must.Do(r.back(two[0]))
	hold(ctx, r.between(1, 3))
	must.Do(r.back(two[1]))
	return nodeName(two[0]) + ", then " + nodeName(two[1])
}

func liarRestarted(ctx context.Context, r *run) string {
	said := r.faulty.lies()
	must.Do(r.faulty.kill())
	hold(ctx, r.between(0, 3))
	must.Do(r.faulty.beginLiar(r.liar, r.seed+uint64(len(r.events))))
	late, done := within(ctx, 4*r.heal)
	defer done()
	must.Do(r.faulty.await(late))
	return nodeName(r.faulty.id) + ", after " + said
}

// lies returns how often a node that lies has lied since it started. It fails by must if that node has ended, or has
// not lied.
func (n *node) lies() string {
	if !n.runs() {
		must.Failf("%s lies no more: %v: see %s", nodeName(n.id), n.now().cmd.ProcessState, n.log)
	}
	said := n.now().last()
	var fields, kinds, chosen int
	_, err := fmt.Sscanf(said, "%d lies of %d kinds, and %d lies of the protocol", &fields, &kinds, &chosen)
	if err != nil || fields == 0 || chosen == 0 {
		must.Failf("%s has not lied, but says %q: see %s", nodeName(n.id), said, n.log)
	}
	return said
}

// do injects faults while one node lies, then ends that, and injects those that are tolerated only if no other node
// is faulty. Then it judges.
func (b *byzantine) do(ctx context.Context, o options, kinds []fault) error {
	fmt.Fprintf(b.out, "seed %d: four nodes on the loopback interface, of which %s lies, %v\n", b.seed,
		nodeName(b.faulty.id), o.long)
	end := b.start(ctx, o)
	failed := b.injectBoth(ctx, o, kinds)
	took := b.load.now()
	if failed == nil {
		failed = b.finish(ctx)
	}
	end()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errors.Join(failed, b.judge(o, took, failed == nil))
}

// start starts the load. The function that it returns ends the load, and waits until it has ended.
func (b *byzantine) start(ctx context.Context, o options) (end func()) {
	b.load = b.newLoad(cmp.Or(o.pace, 25*time.Millisecond), nil)
	b.load.orders.Distrust(b.faulty.id)
	b.stop = make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	b.enlist = func(nodes ...int) {
		b.load.listen(ctx, nodes...)
		b.load.start(ctx, b.stop, b.seed, "load", nodes...)
	}
	b.enlist(b.all()...)
	return func() {
		cancel()
		b.load.asks.Wait()
	}
}

// injectBoth injects the faults of both parts of the run.
func (b *byzantine) injectBoth(ctx context.Context, o options, kinds []fault) error {
	_, later := byzantineFaults()
	var during, after []fault
	for _, f := range kinds {
		if slices.ContainsFunc(later, func(l fault) bool { return l.name == f.name }) {
			after = append(after, f)
		} else {
			during = append(during, f)
		}
	}
	first := o
	if len(after) > 0 {
		first.long = o.long * 3 / 4
	}
	if len(during) > 0 {
		if err := b.injectAll(ctx, first, during); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		_, err := fault{do: func(_ context.Context, r *run) string {
			said := r.faulty.lies()
			r.printf("%s: %s", nodeName(r.faulty.id), said)
			return ""
		}}.attempt(ctx, b.run)
		return err
	}
	if err := b.inject(ctx, b.repents()); err != nil {
		return fmt.Errorf("the end of the liar: %w", err)
	}
	return b.injectAll(ctx, o, after)
}

// repents returns the change from a node that lies to a correct one, which has an empty disk.
func (b *byzantine) repents() fault {
	return fault{name: "liar-ends", do: func(_ context.Context, r *run) string {
		said, n := r.faulty.lies(), r.faulty
		must.Do(n.kill())
		r.faulty = nil
		r.dice.among = r.all()
		r.affects(n.id)
		r.rejoin(n.id)
		r.load.orders.Trust(n.id)
		b.enlist(n.id)
		return fmt.Sprintf("%s: %s; it restarts as a correct node with an empty disk", nodeName(n.id), said)
	}}
}

// finish waits until everything in flight is delivered everywhere, and has all nodes read all deliveries again.
func (b *byzantine) finish(ctx context.Context) (err error) {
	defer must.Return(&err)
	close(b.stop)
	b.load.asks.Wait()
	ctx, done := within(ctx, 4*b.heal)
	defer done()
	must.Get(b.well(ctx, "end"))
	b.again = b.reread(ctx)
	return ctx.Err()
}

// judge checks everything, and prints the results.
func (b *byzantine) judge(o options, took time.Duration, ended bool) error {
	r := b.run
	casts, delivered := r.load.orders.Count()
	lost, gaps, acknowledged := r.load.orders.Undelivered(), r.load.orders.Gaps(), len(r.load.answerTimes)
	r.toll.print(r.out)
	fmt.Fprintf(r.out, "%d broadcasts of correct nodes, %d delivered, %d acknowledged, %d of these lost\n", casts,
		delivered, acknowledged, len(lost))
	fmt.Fprintf(r.out, "%d deliveries of payloads of the node that lied; nodes missed some %d times\n",
		r.load.orders.Invented(), gaps)
	v := verdicts{out: r.out}
	v.add("one order of deliveries everywhere, none lost, none twice", r.load.orders.Settle())
	if ended {
		v.add("what a node has said that it delivered was delivered by all", forgotten(lost))
		v.add("all deliveries can be read at every node from the beginning", errors.Join(r.again, missed(gaps)))
	}
	v.add(r.promise(r.heal), r.slow(r.heal))
	v.add("enough was asked and enough befell", r.enough(o, took, acknowledged, leastAcknowledged))
	return errors.Join(v.errs...)
}

// verdicts prints the results of checks, and collects what is wrong.
type verdicts struct {
	out  io.Writer
	errs []error
}

func (v *verdicts) add(what string, err error) {
	word := "yes"
	if err != nil {
		word = "NO"
		v.errs = append(v.errs, fmt.Errorf("%s: %w", what, err))
	}
	fmt.Fprintf(v.out, "%-66s %s\n", what, word)
}
