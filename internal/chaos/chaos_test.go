package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/api"
	disks "parley/cluster/disk"
	"parley/cluster/link/memory"
	"parley/cluster/nodefile"
	"parley/internal/must"
)

// indoors is an environment within this process: five nodes on a network and disks in memory, in a bubble of
// synctest. To kill a node it is cut off before it can send anything, and its disk keeps what was synced by then.
type indoors struct {
	dir     string
	network *memory.Network
	disks   []*disks.Memory
	nodes   []*cluster.Node
	servers []*api.Server
}

func (w *indoors) host(i int) *memory.Host { return w.network.Host(nodeName(i)) }

func (w *indoors) others(i int) (out []*memory.Host) {
	for k := range w.nodes {
		if k != i {
			out = append(out, w.host(k))
		}
	}
	return append(out, w.network.Host("clients"))
}

func (w *indoors) listen(i int) (nodes, api, metrics string) {
	return w.host(i).Addr(7000), w.host(i).Addr(7100), "127.0.0.1:9090"
}

func (w *indoors) data(i int) string { return filepath.Join(w.dir, nodeName(i), "data") }

func (w *indoors) start(int, *exec.Cmd) error { return errors.New("there are no processes") }

func (w *indoors) dial(ctx context.Context, _ int, network, address string) (net.Conn, error) {
	return w.network.Host("clients").DialContext(ctx, network, address)
}

func (w *indoors) close() error { return nil }

// begin starts nodes concurrently.
func (w *indoors) begin(which ...int) error {
	errs := make([]error, len(w.nodes))
	var all sync.WaitGroup
	for _, i := range which {
		all.Go(func() { errs[i] = w.join(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (w *indoors) join(i int) error {
	file, err := nodefile.Read(configFile(w.dir, i))
	if err != nil {
		return err
	}
	c, err := file.Config()
	if err != nil {
		return err
	}
	c.Network, c.Disk = w.host(i), w.disks[i]
	if w.nodes[i], err = cluster.Join(context.Background(), c); err != nil {
		return err
	}
	l, err := w.host(i).Listen(context.Background(), "tcp", file.API)
	if err != nil {
		return err
	}
	w.servers[i] = api.New(api.Config{Node: w.nodes[i], Cluster: c})
	go func(s *api.Server) { _ = s.Serve(l) }(w.servers[i])
	return nil
}

// kill ends nodes so that no other node receives anything of it.
func (w *indoors) kill(which ...int) error {
	for _, i := range which {
		w.network.Cut(w.host(i), w.others(i)...)
		w.disks[i] = w.disks[i].Crash(nil)
	}
	var errs []error
	for _, i := range which {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = w.servers[i].Close(over) // it waits for nothing
		errs = append(errs, w.nodes[i].Close())
		for _, other := range w.others(i) {
			w.network.Break(w.host(i), other)
		}
	}
	for _, i := range which {
		w.network.Heal(w.host(i), w.others(i)...)
	}
	return errors.Join(errs...)
}

// faults returns the faults that can be injected here, with their names in the program.
func (w *indoors) faults() []fault {
	return []fault{
		{name: "kill-quick", do: func(_ context.Context, r *run) string {
			i := r.some()
			r.affected = []int{i}
			must.Do(errors.Join(w.kill(i), w.begin(i)))
			return nodeName(i)
		}},
		{name: "stop", do: func(ctx context.Context, r *run) string {
			i := r.some()
			r.affected = []int{i}
			w.network.Cut(w.host(i), w.others(i)...)
			hold(ctx, 3*time.Second)
			w.network.Heal(w.host(i), w.others(i)...)
			return nodeName(i)
		}},
		{name: "restart-all", do: func(_ context.Context, r *run) string {
			all := r.all()
			r.affected = all
			must.Do(errors.Join(w.kill(all...), w.begin(all...)))
			return "all"
		}},
		{name: "rolling", do: func(ctx context.Context, r *run) string {
			return r.inTurn(ctx, "roll", func(i int) { must.Do(errors.Join(w.kill(i), w.begin(i))) })
		}},
	}
}

// inMemory starts n nodes in the bubble of a test. If lies is not empty, it is added to the configuration of the last
// one, which then is faulty.
func inMemory(t *testing.T, dir string, n int, services, lies string) (*run, *indoors) {
	w := &indoors{
		dir: dir, network: memory.New(memory.Options{}), nodes: make([]*cluster.Node, n), servers: make([]*api.Server, n),
	}
	r := &run{
		out: new(strings.Builder), dir: dir, seed: 1, dice: newDice(1, n), fleet: fleet{w: w, heal: 30 * time.Second},
	}
	m, err := certify(dir, w, n, services)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		more := ""
		if i == n-1 {
			more = lies
		}
		w.disks = append(w.disks, disks.NewMemory(-1))
		if err := configure(dir, w, i, m, more); err != nil {
			t.Fatal(err)
		}
		one := newNode(i, dir, "", w)
		one.life = &life{ended: make(chan struct{})} // it has no process that ends
		r.nodes = append(r.nodes, one)
	}
	if err := w.begin(r.all()...); err != nil {
		t.Fatal(err)
	}
	if r.clients, err = newClients(dir, w, n); err != nil {
		t.Fatal(err)
	}
	if lies != "" {
		r.faulty = r.nodes[n-1]
		r.dice.among = r.all()
	}
	return r, w
}

// No acknowledged operation is lost when nodes are killed, cut off, and all restarted: with the program's own load
// and judgment, in virtual time. make chaos-short does the same with real processes.
func TestNothingIsLostInMemory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, w := inMemory(t, dir, count, crashServices, "")
		out, kinds := r.out, w.faults()
		err := r.chaos(t.Context(), options{long: 6 * time.Second, bare: true, only: "all", pace: 100 * time.Millisecond}, kinds)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		t.Log(out)
		for _, f := range kinds {
			if !strings.Contains(fmt.Sprint(out), fmt.Sprintf("  %s ", f.name)) {
				t.Errorf("%s did not befall", f.name)
			}
		}
		if err := w.kill(0, 1, 2, 3, 4); err != nil {
			t.Error(err)
		}
	})
}

// The same with a group of level Byzantine, while one of four nodes lies. make chaos-byzantine does it with real
// processes, and with more lies.
func TestNothingIsLostWhileOneLies(t *testing.T) {
	for _, how := range []string{"random", "twin"} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			r, w := inMemory(t, dir, byzantineCount, byzantineServices, "lab: true\ntraitor: "+how+"\n")
			o := options{long: 6 * time.Second, bare: true, only: "all"}
			b := &byzantine{run: r}
			end := b.start(t.Context(), o)
			failed := b.injectAll(t.Context(), o, w.faults())
			took := r.load.now()
			if failed == nil {
				failed = b.finish(t.Context())
			}
			end()
			if err := errors.Join(failed, b.judge(o, took, failed == nil)); err != nil {
				t.Errorf("%s: %v\n%s", how, err, r.out)
			}
			t.Log(r.out)
			if err := w.kill(0, 1, 2, 3); err != nil {
				t.Error(err)
			}
		})
	}
}
