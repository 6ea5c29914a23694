package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// fault is one kind of harm.
type fault struct {
	name, what string
	bare       bool // it can be done without a cell
	// do harms, and returns when the harm is over, with what it did in words.
	do func(context.Context, *run) (string, error)
}

// faults are all kinds, in the order in which they are listed.
func faults() []fault {
	return []fault{
		{"kill", "kill -9 of a node, which is started again some seconds later", true, killed},
		{"kill-first", "kill -9 of the first member of the view, who coordinates", true, killedFirst},
		{"kill-quick", "kill -9 of a node, which is started again before it is suspected", true, killedQuick},
		{"stop", "SIGSTOP of a node for longer than others wait for it", true, stopped},
		{"stop-short", "SIGSTOP of a node for less than others wait for it", true, stoppedShort},
		{"restart-all", "kill -9 of all nodes, which are started again together", true, restartedAll},
		{"rolling", "one node after the other is asked to end, and started again", true, rolled},
		{"rolling-kill", "the same by kill -9", true, rolledKilled},
		{"rolling-stop", "one node after the other is stopped by SIGSTOP for 3 s", true, rolledStopped},
		{"majority", "three nodes go on alone, and then one of them with the two others", true, changedMajority},
		{"cut-minority", "two nodes are cut off from three", false, cutMinority},
		{"cut-first", "the first member of the view, who coordinates, is cut off", false, cutFirst},
		{"cut-pair", "two nodes can not reach each other, but all others", false, cutPair},
		{"cut-all", "the nodes fall apart into three parts, none of which is a majority", false, cutAll},
		{"mute", "what one node sends is lost, and what is sent to it arrives", false, mute},
		{"deaf", "what is sent to one node is lost, and what it sends arrives", false, deaf},
		{"flap", "the links of one node come and go", false, flapped},
		{"delay", "all links are slow and lose packets", false, delayed},
		{"disk-full", "the disk of a node is full: it must take no more writes, and stop well", false, diskFull},
		{"disk-slow", "the disk of a node takes a long time for everything", false, diskSlow},
		{"disk-stall", "the disk of a node takes nothing for some seconds", false, diskStall},
		{"clock-wrong", "the clock of a node is an hour off, and runs much too fast or slow", true, clockWrong},
		{"clock-skew", "a node comes back with a clock that shows another time", true, clockSkewed},
		{"disk-lost", "a node is killed, and comes back with an empty disk", true, diskLost},
		{"disk-flip", "a bit on the disk of a node flips while it is down", true, diskFlipped},
		{"disk-old", "a node comes back with an older copy of its disk: it must be refused", true, diskOld},
		{liarName, "a process with the key of a node says to the others what is wrong; it needs -liar", true, lied},
	}
}

// hold keeps a fault up for some time.
func hold(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// strikes notes that the harm under way is one of these nodes.
func (r *run) strikes(which ...int) { r.struck = append(r.struck, which...) }

func killed(ctx context.Context, r *run) (string, error) {
	return r.killFor(ctx, r.some(), r.between(2, 5))
}

func killedFirst(ctx context.Context, r *run) (string, error) {
	return r.killFor(ctx, r.first(ctx), r.between(2, 5))
}

func killedQuick(ctx context.Context, r *run) (string, error) { return r.killFor(ctx, r.some(), 0) }

func (r *run) killFor(ctx context.Context, i int, d time.Duration) (string, error) {
	r.strikes(i)
	if err := r.nodes[i].kill(); err != nil {
		return "", err
	}
	hold(ctx, d)
	return fmt.Sprintf("%s for %s", nodeName(i), brief(d)), r.back(i)
}

// restartWith has a node killed and started again with another clock.
func (r *run) restartWith(i int, clock string) error {
	r.strikes(i)
	if err := r.nodes[i].kill(); err != nil {
		return err
	}
	if err := configure(r.dir, r.w, i, r.members, clock); err != nil {
		return err
	}
	return r.back(i)
}

func stopped(ctx context.Context, r *run) (string, error) {
	return r.stopFor(ctx, r.some(), suspect+r.between(1, 4))
}

func stoppedShort(ctx context.Context, r *run) (string, error) {
	return r.stopFor(ctx, r.some(), suspect*4/10)
}

func (r *run) stopFor(ctx context.Context, i int, d time.Duration) (string, error) {
	r.strikes(i)
	if err := r.nodes[i].signal(sigStop, false); err != nil {
		return "", err
	}
	hold(ctx, d)
	return fmt.Sprintf("%s for %s", nodeName(i), brief(d)), r.nodes[i].signal(sigCont, false)
}

func restartedAll(ctx context.Context, r *run) (string, error) {
	r.strikes(r.all()...)
	for _, n := range r.nodes {
		if err := n.signal(syscall.SIGKILL, true); err != nil {
			return "", err
		}
	}
	for _, n := range r.nodes {
		<-n.now().ended
	}
	hold(ctx, r.between(0, 1))
	return "all nodes", r.back(r.all()...)
}

func rolled(ctx context.Context, r *run) (string, error) {
	return r.inTurn(ctx, "roll", func(i int) error { return errors.Join(r.nodes[i].end(ctx), r.back(i)) })
}

func rolledKilled(ctx context.Context, r *run) (string, error) {
	return r.inTurn(ctx, "kill", func(i int) error { return errors.Join(r.nodes[i].kill(), r.back(i)) })
}

func rolledStopped(ctx context.Context, r *run) (string, error) {
	return r.inTurn(ctx, "stop", func(i int) error {
		_, err := r.stopFor(ctx, i, 3*time.Second)
		return err
	})
}

// inTurn does something to one node after the other, each time when all is well again.
func (r *run) inTurn(ctx context.Context, name string, do func(i int) error) (string, error) {
	r.strikes(r.all()...)
	for turn, i := range r.shuffled() {
		if err := do(i); err != nil {
			return "", err
		}
		if _, err := r.heals(ctx, fmt.Sprintf("%s%d.%d", name, len(r.events), turn)); err != nil {
			return "", err
		}
	}
	return "all nodes", nil
}

// cutFor parts nodes for some time.
func (r *run) cutFor(ctx context.Context, said string, d time.Duration, parts ...[]int) (string, error) {
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			r.fabric.set(cut, a, b)
			r.fabric.set(cut, b, a)
		}
	}
	hold(ctx, d)
	r.fabric.clear()
	return fmt.Sprintf("%s for %s", said, brief(d)), nil
}

func cutMinority(ctx context.Context, r *run) (string, error) {
	who := r.shuffled()
	r.strikes(who[:2]...)
	return r.cutFor(ctx, nodeNames(who[:2])+" from "+nodeNames(who[2:]), r.between(3, 7), who[:2], who[2:])
}

func cutFirst(ctx context.Context, r *run) (string, error) {
	i := r.first(ctx)
	r.strikes(i)
	return r.cutFor(ctx, nodeName(i)+" from all others", r.between(3, 7), []int{i}, r.but(i))
}

func cutPair(ctx context.Context, r *run) (string, error) {
	who := r.shuffled()
	r.strikes(who[:2]...)
	return r.cutFor(ctx, nodeName(who[0])+" from "+nodeName(who[1]), r.between(3, 7), who[:1], who[1:2])
}

func cutAll(ctx context.Context, r *run) (string, error) {
	who := r.shuffled()
	r.strikes(who...)
	said := nodeNames(who[:2]) + " from " + nodeNames(who[2:4]) + " from " + nodeName(who[4])
	return r.cutFor(ctx, said, r.between(3, 6), who[:2], who[2:4], who[4:])
}

func mute(ctx context.Context, r *run) (string, error) {
	i, d := r.some(), r.between(3, 7)
	r.strikes(i)
	r.fabric.set(cut, []int{i}, r.but(i))
	hold(ctx, d)
	r.fabric.clear()
	return fmt.Sprintf("what %s sends, for %s", nodeName(i), brief(d)), nil
}

func deaf(ctx context.Context, r *run) (string, error) {
	i, d := r.some(), r.between(3, 7)
	r.strikes(i)
	r.fabric.set(cut, r.but(i), []int{i})
	hold(ctx, d)
	r.fabric.clear()
	return fmt.Sprintf("what is sent to %s, for %s", nodeName(i), brief(d)), nil
}

func flapped(ctx context.Context, r *run) (string, error) {
	i, times := r.some(), 5
	r.strikes(i)
	for range times {
		r.fabric.set(cut, []int{i}, r.but(i))
		r.fabric.set(cut, r.but(i), []int{i})
		hold(ctx, r.between(0, 2))
		r.fabric.clear()
		hold(ctx, r.between(0, 1))
	}
	return fmt.Sprintf("%s, %d times", nodeName(i), times), nil
}

func delayed(ctx context.Context, r *run) (string, error) {
	d := r.between(4, 8)
	r.strikes(r.all()...)
	r.fabric.set(rule{lost: 0.02, delay: 10 * time.Millisecond, jitter: 20 * time.Millisecond}, r.all(), r.all())
	hold(ctx, d)
	r.fabric.clear()
	return "10 to 30 ms and 2 % lost, for " + brief(d), nil
}

func brief(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
