package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"parley/internal/must"
)

// fault is one kind of fault.
type fault struct {
	name, what string
	bare       bool // it can be injected without a sandbox
	// do injects the fault, waits until it is over, and describes it. It fails by must.
	do func(context.Context, *run) string
}

// attempt calls do, and returns its error.
func (f fault) attempt(ctx context.Context, r *run) (said string, err error) {
	defer must.Return(&err)
	return f.do(ctx, r), nil
}

// faults returns all kinds, in the order in which they are listed.
func faults() []fault {
	return []fault{
		{"kill", "kill -9 of a node, which is started again some seconds later", true, killed},
		{"kill-first", "kill -9 of the first member of the view, which coordinates", true, killedFirst},
		{"kill-quick", "kill -9 of a node, which is started again before it is suspected", true, killedQuick},
		{"stop", "SIGSTOP of a node for longer than others wait for it", true, stopped},
		{"stop-short", "SIGSTOP of a node for less than others wait for it", true, stoppedShort},
		{"restart-all", "kill -9 of all nodes, which are started again together", true, restartedAll},
		{"rolling", "one node after the other is asked to end, and started again", true, rolled},
		{"rolling-kill", "the same by kill -9", true, rolledKilled},
		{"rolling-stop", "one node after the other is stopped by SIGSTOP for 3 s", true, rolledStopped},
		{"majority", "three nodes continue alone, and then one of them with the two others", true, changedMajority},
		{"cut-minority", "two nodes are cut off from three", false, cutMinority},
		{"cut-first", "the first member of the view, which coordinates, is cut off", false, cutFirst},
		{"cut-pair", "two nodes can not reach each other, but all others", false, cutPair},
		{"cut-all", "the nodes fall apart into three parts, none of which is a majority", false, cutAll},
		{"mute", "messages from one node are lost, and messages to it arrive", false, mute},
		{"deaf", "messages to one node are lost, and messages from it arrive", false, deaf},
		{"flap", "the links of one node come and go", false, flapped},
		{"delay", "all links are slow and lose packets", false, delayed},
		{"disk-full", "the disk of a node is full: it must take no more writes, and stop well", false, diskFull},
		{"disk-slow", "the disk of a node takes a long time for everything", false, diskSlow},
		{"disk-stall", "the disk of a node takes nothing for some seconds", false, diskStall},
		{"clock-wrong", "the clock of a node is an hour off, and runs much too fast or slow", true, clockWrong},
		{"clock-skew", "a node restarts with a clock that shows another time", true, clockSkewed},
		{"disk-lost", "a node is killed, and restarts with an empty disk", true, diskLost},
		{"disk-flip", "a bit on the disk of a node flips while it is down", true, diskFlipped},
		{"disk-old", "a node restarts with an older copy of its disk: it must be refused", true, diskOld},
		{liarName, "a process with the key of a node lies to the others; it needs -liar", true, lied},
	}
}

// hold waits for some time while a fault lasts.
func hold(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// affects records that the current fault affects these nodes.
func (r *run) affects(which ...int) { r.affected = append(r.affected, which...) }

// kill kills a node, and records it as affected.
func (r *run) kill(i int) {
	r.affects(i)
	must.Do(r.nodes[i].kill())
}

func killed(ctx context.Context, r *run) string { return r.killFor(ctx, r.some(), r.between(2, 5)) }

func killedFirst(ctx context.Context, r *run) string {
	return r.killFor(ctx, r.first(ctx), r.between(2, 5))
}

func killedQuick(ctx context.Context, r *run) string { return r.killFor(ctx, r.some(), 0) }

func (r *run) killFor(ctx context.Context, i int, d time.Duration) string {
	r.kill(i)
	hold(ctx, d)
	must.Do(r.back(i))
	return lasted(nodeName(i), d)
}

// restartWith kills a node and restarts it with another clock.
func (r *run) restartWith(i int, clock string) {
	r.kill(i)
	must.Do(configure(r.dir, r.w, i, r.shared, clock))
	must.Do(r.back(i))
}

func stopped(ctx context.Context, r *run) string {
	return r.stopFor(ctx, r.some(), suspect+r.between(1, 4))
}

func stoppedShort(ctx context.Context, r *run) string { return r.stopFor(ctx, r.some(), suspect*4/10) }

func (r *run) stopFor(ctx context.Context, i int, d time.Duration) string {
	r.affects(i)
	must.Do(r.nodes[i].signal(sigStop, false))
	hold(ctx, d)
	must.Do(r.nodes[i].signal(sigCont, false))
	return lasted(nodeName(i), d)
}

func restartedAll(ctx context.Context, r *run) string {
	r.affects(r.all()...)
	for _, i := range r.all() {
		must.Do(r.nodes[i].signal(syscall.SIGKILL, true))
	}
	for _, i := range r.all() {
		<-r.nodes[i].now().ended
	}
	hold(ctx, r.between(0, 1))
	must.Do(r.back(r.all()...))
	return "all nodes"
}

func rolled(ctx context.Context, r *run) string {
	return r.inTurn(ctx, "roll", func(i int) { must.Do(errors.Join(r.nodes[i].end(ctx), r.back(i))) })
}

func rolledKilled(ctx context.Context, r *run) string {
	return r.inTurn(ctx, "kill", func(i int) { must.Do(errors.Join(r.nodes[i].kill(), r.back(i))) })
}

func rolledStopped(ctx context.Context, r *run) string {
	return r.inTurn(ctx, "stop", func(i int) { r.stopFor(ctx, i, 3*time.Second) })
}

// inTurn applies do to one node after another, each time after all nodes have recovered.
func (r *run) inTurn(ctx context.Context, name string, do func(i int)) string {
	r.affects(r.all()...)
	for turn, i := range r.shuffled() {
		do(i)
		_, err := r.heals(ctx, fmt.Sprintf("%s%d.%d", name, len(r.events), turn))
		must.Do(err)
	}
	return "all nodes"
}

// linkRule is a rule for the packets that some nodes send to others.
type linkRule struct {
	rule
	from, to []int
}

// cuts returns the rules that separate parts of the nodes from each other.
func cuts(parts ...[]int) (out []linkRule) {
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			out = append(out, linkRule{cut, a, b}, linkRule{cut, b, a})
		}
	}
	return out
}

// impair applies network rules for some time.
func (r *run) impair(ctx context.Context, struck []int, said string, d time.Duration, rules ...linkRule) string {
	r.affects(struck...)
	for _, one := range rules {
		r.fabric.set(one.rule, one.from, one.to)
	}
	hold(ctx, d)
	r.fabric.clear()
	return lasted(said, d)
}

func cutMinority(ctx context.Context, r *run) string {
	who := r.shuffled()
	few, most := who[:2], who[2:]
	return r.impair(ctx, few, nodeNames(few)+" from "+nodeNames(most), r.between(3, 7), cuts(few, most)...)
}

func cutFirst(ctx context.Context, r *run) string {
	i := r.first(ctx)
	return r.impair(ctx, []int{i}, nodeName(i)+" from all others", r.between(3, 7), cuts([]int{i}, r.but(i))...)
}

func cutPair(ctx context.Context, r *run) string {
	who := r.shuffled()
	said := nodeName(who[0]) + " from " + nodeName(who[1])
	return r.impair(ctx, who[:2], said, r.between(3, 7), cuts(who[:1], who[1:2])...)
}

func cutAll(ctx context.Context, r *run) string {
	who := r.shuffled()
	said := nodeNames(who[:2]) + " from " + nodeNames(who[2:4]) + " from " + nodeName(who[4])
	return r.impair(ctx, who, said, r.between(3, 6), cuts(who[:2], who[2:4], who[4:])...)
}

func mute(ctx context.Context, r *run) string {
	i := []int{r.some()}
	said := "what " + nodeNames(i) + " sends,"
	return r.impair(ctx, i, said, r.between(3, 7), linkRule{cut, i, r.but(i[0])})
}

func deaf(ctx context.Context, r *run) string {
	i := []int{r.some()}
	said := "what is sent to " + nodeNames(i) + ","
	return r.impair(ctx, i, said, r.between(3, 7), linkRule{cut, r.but(i[0]), i})
}

func flapped(ctx context.Context, r *run) string {
	i, times := r.some(), 5
	for range times {
		r.impair(ctx, []int{i}, "", r.between(0, 2), cuts([]int{i}, r.but(i))...)
		hold(ctx, r.between(0, 1))
	}
	return fmt.Sprintf("%s, %d times", nodeName(i), times)
}

func delayed(ctx context.Context, r *run) string {
	slow := rule{lost: 0.02, delay: 10 * time.Millisecond, jitter: 20 * time.Millisecond}
	said := "10 to 30 ms and 2 % lost,"
	return r.impair(ctx, r.all(), said, r.between(4, 8), linkRule{slow, r.all(), r.all()})
}

// lasted says for how long something lasted.
func lasted(said string, d time.Duration) string { return fmt.Sprintf("%s for %s", said, brief(d)) }

func brief(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
