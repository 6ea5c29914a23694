package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"parley/internal/must"
)

// run is one run: nodes in an environment, their load, and the faults injected.
type run struct {
	out    io.Writer
	dir    string
	seed   uint64
	fabric faultyNetwork
	disks  []faultyDisk
	shared shared
	fleet
	dice
	toll
	affected []int         // by the current fault
	others   recoveryTimes // of the nodes that the current fault spares
	liar     string        // the program that lies
	again    error         // what nodes could not read again at the end
}

// dice draw faults and nodes.
type dice struct {
	*rand.Rand
	among []int // the nodes to draw from
}

func newDice(seed uint64, n int) dice {
	d := dice{Rand: rand.New(rand.NewPCG(seed, 0))}
	for i := range n {
		d.among = append(d.among, i)
	}
	return d
}

func (d dice) shuffled() (out []int) {
	for _, k := range d.Perm(len(d.among)) {
		out = append(out, d.among[k])
	}
	return out
}

func (d dice) some() int { return d.among[d.IntN(len(d.among))] }

// between returns a random duration between two numbers of seconds.
func (d dice) between(low, high int) time.Duration {
	return time.Duration(low)*time.Second + time.Duration(d.Int64N(int64(high-low)*int64(time.Second)))
}

// count is the number of nodes of a run in which nodes only crash, or lie for some time.
const count = 5

// setUp prepares everything in a folder and starts the nodes. Call tearDown even if it fails.
func setUp(ctx context.Context, out io.Writer, dir string, o options) (r *run, err error) {
	defer must.Return(&err)
	count, services := count, crashServices
	if o.byzantine {
		count, services = byzantineCount, byzantineServices
	}
	r = &run{out: out, dir: dir, seed: o.seed, dice: newDice(o.seed, count), liar: o.liar}
	r.heal = o.heal
	if o.bare {
		r.w = must.Get(newLoopback(ctx, dir, count))
	} else {
		r.w, r.fabric, r.disks, err = newEnvironment(ctx, dir, count, o.seed)
		must.Do(err)
	}
	r.shared = must.Get(certify(dir, r.w, count, services))
	for i := range count {
		must.Do(configure(dir, r.w, i, r.shared, r.ownClock()))
		r.nodes = append(r.nodes, newNode(i, dir, o.binary, r.w))
	}
	r.clients = must.Get(newClients(dir, r.w, count))
	if o.byzantine {
		r.faulty = r.nodes[r.some()]
		r.dice.among = r.all()
		must.Do(r.faulty.beginLiar(r.liar, r.seed))
	}
	must.Do(r.back(r.all()...))
	ctx, done := within(ctx, time.Minute)
	defer done()
	for _, n := range r.nodes {
		must.Do(n.await(ctx))
	}
	return r, nil
}

// tearDown ends all nodes.
func (r *run) tearDown() error {
	if r.w == nil {
		return nil
	}
	if r.fabric != nil {
		r.fabric.clear()
	}
	for _, n := range r.nodes {
		if n.now() != nil {
			_ = n.kill()
		}
	}
	return r.w.close()
}

func (r *run) printf(form string, args ...any) {
	at := time.Duration(0)
	if r.load != nil {
		at = r.load.now()
	}
	fmt.Fprintf(r.out, "%7.1f s  %s\n", at.Seconds(), fmt.Sprintf(form, args...))
}
