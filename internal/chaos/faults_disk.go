package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"parley/internal/must"
)

// errStillWrites is the error of a node that executes its clients' writes although its disk is full.
var errStillWrites = errors.New("takes writes though its disk is full")

// diskFull fills the disk of a node. The node must refuse its clients' writes. Once the others have made it write
// more than the remaining space of its log, it must stop by itself; until then it must end normally on request. Then
// the space is freed and the node is restarted.
func diskFull(ctx context.Context, r *run) string {
	i := r.some()
	n, disk := r.nodes[i], r.disks[i]
	r.affects(i)
	must.Do(disk.fill())
	defer func() { _ = disk.free() }() // in case the space was not freed below
	since := time.Now()
	must.Do(r.refuses(ctx, i, fmt.Sprintf("full%d", len(r.events))))
	busy, done := context.WithTimeout(ctx, 8*time.Second)
	defer done()
	go r.load.flood(busy, i)
	said, status := "ended when it was asked to", 0
	select {
	case <-n.now().ended:
		said, status = "stopped after "+brief(time.Since(since)), 1
	case <-busy.Done():
		asked, late := within(ctx, 20*time.Second)
		defer late()
		must.Do(n.end(asked))
	}
	done()
	if got := n.now().cmd.ProcessState.ExitCode(); got != status {
		must.Failf("%s %s with status %d: %d was expected", nodeName(i), said, got, status)
	}
	hold(ctx, r.between(1, 2))
	must.Do(disk.free())
	must.Do(r.back(i))
	return fmt.Sprintf("%s, which %s", nodeName(i), said)
}

// diskFlipped flips a bit on the disk of a node that is down. Either the node restarts with nothing lost, or it
// reports what is damaged and that it can rejoin, and then rejoins with an empty disk.
func diskFlipped(ctx context.Context, r *run) string {
	i := r.some()
	r.kill(i)
	what := r.dice.flip(r.w.data(i))
	must.Do(r.back(i))
	must.Do(r.refused(ctx, i))
	said := "restarted with it"
	if !r.nodes[i].runs() {
		r.rejoin(i)
		said = "rejoined with an empty disk"
	}
	return fmt.Sprintf("%s: %s, and it %s", nodeName(i), what, said)
}

// rejoin starts a node with an empty disk.
func (f *fleet) rejoin(i int) {
	must.Do(os.RemoveAll(f.w.data(i)))
	must.Do(f.nodes[i].begin("--rejoin"))
}

// diskOld starts a node with an older copy of its disk. The others must refuse it, and it must stop and report that.
// It rejoins with an empty disk.
func diskOld(ctx context.Context, r *run) string {
	i := r.some()
	r.affects(i)
	n, data, copied := r.nodes[i], r.w.data(i), filepath.Join(r.dir, nodeName(i), "copy")
	must.Do(n.end(ctx))
	must.Do(errors.Join(os.RemoveAll(copied), os.CopyFS(copied, os.DirFS(data)), r.back(i)))
	must.Do(r.serves(ctx, i))
	hold(ctx, 3*time.Second)
	must.Do(errors.Join(n.kill(), os.RemoveAll(data), os.CopyFS(data, os.DirFS(copied)), r.back(i)))
	must.Do(r.refused(ctx, i))
	if n.runs() {
		must.Failf("%s serves with a disk that is an old copy", nodeName(i))
	}
	r.rejoin(i)
	return nodeName(i) + ", which was refused and rejoined"
}

// diskLost kills a node, and starts it with an empty disk.
func diskLost(ctx context.Context, r *run) string {
	i := r.some()
	r.kill(i)
	hold(ctx, r.between(0, 3))
	r.rejoin(i)
	return nodeName(i)
}

func diskSlow(ctx context.Context, r *run) string {
	i, d := r.some(), r.between(4, 8)
	r.affects(i)
	busy, done := context.WithTimeout(ctx, d)
	defer done()
	must.Do(r.disks[i].slow(busy, 40*time.Millisecond))
	return lasted(nodeName(i), d)
}

func diskStall(_ context.Context, r *run) string {
	i, d := r.some(), r.between(2, 4)
	r.affects(i)
	must.Do(r.disks[i].stall(d))
	return lasted(nodeName(i), d)
}

// changedMajority has three nodes continue without two, ends them, and starts the two with one of the three: any
// majority has everything that was acknowledged.
func changedMajority(ctx context.Context, r *run) string {
	who := r.shuffled()
	r.affects(who...)
	for _, i := range who[:2] {
		must.Do(r.nodes[i].kill())
	}
	must.Do(r.serves(ctx, who[2]))
	hold(ctx, 2*time.Second)
	for _, i := range who[2:] {
		must.Do(r.nodes[i].kill())
	}
	then := who[:3]
	must.Do(r.back(then...))
	late, done := within(ctx, 4*r.heal)
	defer done()
	for _, i := range then {
		must.Do(r.serves(late, i))
	}
	hold(ctx, time.Second)
	must.Do(r.back(who[3:]...))
	return nodeNames(who[2:]) + ", then " + nodeNames(then)
}

// refuses waits until a node refuses its clients' writes.
func (f *fleet) refuses(ctx context.Context, i int, name string) error {
	ctx, done := within(ctx, 10*time.Second)
	defer done()
	for k := 0; ; k++ {
		err := f.load.cast(ctx, i, fmt.Sprintf("%s.%s.%d", name, nodeName(i), k))
		if err != nil && outcomeOf(err) == nothing || !f.nodes[i].runs() {
			return nil
		}
		if hold(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("%s %w: %w", nodeName(i), errStillWrites, err)
		}
	}
}

// refused waits until a node serves, or ends with the advice to rejoin.
func (f *fleet) refused(ctx context.Context, i int) error {
	ctx, done := within(ctx, 4*f.heal)
	defer done()
	n := f.nodes[i]
	if err := f.serves(ctx, i); err == nil || n.runs() {
		return err
	}
	<-n.now().ended
	n.mu.Lock()
	n.life.meant = true
	n.mu.Unlock()
	log, err := os.ReadFile(n.log)
	if err != nil {
		return err
	}
	if tail := log[max(0, len(log)-2000):]; !bytes.Contains(tail, []byte("--rejoin")) {
		return fmt.Errorf("%s has ended and does not say that it can rejoin: see %s", nodeName(i), n.log)
	}
	return nil
}

// flip flips a bit of the records in a folder. It fails by must.
func (d dice) flip(dir string) string {
	var files []string
	must.Do(filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Base(filepath.Dir(path)) == "records" {
			files = append(files, path)
		}
		return err
	}))
	for _, k := range d.Perm(len(files)) {
		b := must.Get(os.ReadFile(files[k]))
		written := len(bytes.TrimRight(b, "\x00"))
		if written == 0 {
			continue
		}
		at := d.IntN(written)
		b[at] ^= 1 << d.IntN(8)
		must.Do(os.WriteFile(files[k], b, 0o600))
		return fmt.Sprintf("byte %d of %s", at, filepath.Base(files[k]))
	}
	must.Failf("%s: nothing was written in %q", dir, files)
	return ""
}
