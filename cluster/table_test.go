package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link/memory"
	"parley/replica/keyvalue"
)

// rig is a cluster whose nodes end and come back.
type rig struct {
	tb      testing.TB
	at      places
	configs []cluster.Config
	nodes   []atomic.Pointer[cluster.Node]
}

// quick are times for nodes in one process.
var quick = cluster.Times{
	Beat: 20 * time.Millisecond, Suspect: 400 * time.Millisecond, Flush: 100 * time.Millisecond,
	Retry: 200 * time.Millisecond,
}

func newRig(tb testing.TB, n int, config func(c *cluster.Config)) *rig {
	tb.Helper()
	r := &rig{tb: tb}
	configured(tb, r, n, config)
	tb.Cleanup(func() { r.stop(all(n)...) })
	r.start(all(n)...)
	r.settle()
	return r
}

// settle waits until all nodes are in their first views together: one that the others began without is let in a
// moment later, and until then it refuses what it is asked for. Who stays out is for the test to find.
func (r *rig) settle() {
	out := func(v cluster.ViewStatus) bool { return len(v.Members) != len(r.nodes) }
	for range 1000 {
		waits := false
		for i := range r.nodes {
			node := r.nodes[i].Load()
			waits = waits || node != nil && slices.ContainsFunc(views(node), out)
		}
		if !waits {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// configured makes the configurations of n nodes.
func configured(tb testing.TB, r *rig, n int, config func(c *cluster.Config)) {
	tb.Helper()
	a, err := cert.NewAuthority("test", 2*time.Hour, nil)
	if err != nil {
		tb.Fatal(err)
	}
	trust, err := cert.NewTrust(a.Anchors(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	r.configs, r.nodes = make([]cluster.Config, n), make([]atomic.Pointer[cluster.Node], n)
	var members []cluster.Member
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := a.IssueNode(name, nil, time.Hour)
		if err != nil {
			tb.Fatal(err)
		}
		r.configs[i] = cluster.Config{Name: name, Self: issued.Self(), Trust: trust, Times: quick}
		address := r.at.take(tb, &r.configs[i])
		members = append(members, cluster.Member{Name: name, Address: address, Signer: issued.SignerKey()})
		if testing.Verbose() && os.Getenv("V") != "" {
			r.configs[i].Log = slog.Default().With("at", name)
		}
		config(&r.configs[i])
	}
	for i := range r.configs {
		r.configs[i].Members = members
	}
}

func all(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func (r *rig) start(which ...int) {
	var starts sync.WaitGroup
	for _, i := range which {
		starts.Go(func() {
			node, err := cluster.Join(context.Background(), r.configs[i])
			if err != nil {
				r.tb.Error(err)
				return
			}
			r.nodes[i].Store(node)
		})
	}
	starts.Wait()
	if r.tb.Failed() {
		r.tb.FailNow()
	}
}

func (r *rig) stop(which ...int) {
	var stops sync.WaitGroup
	for _, i := range which {
		stops.Go(func() {
			if node := r.nodes[i].Swap(nil); node != nil {
				if err := node.Close(); err != nil {
					r.tb.Error(err)
				}
			}
		})
	}
	stops.Wait()
}

// cut cuts a node off: connections stay, and nothing comes over them. heal undoes that.
func (r *rig) cut(i int)  { r.at.network.Cut(r.at.host(r.configs[i].Name), r.others(i)...) }
func (r *rig) heal(i int) { r.at.network.Heal(r.at.host(r.configs[i].Name), r.others(i)...) }

func (r *rig) others(i int) (out []*memory.Host) {
	for k := range r.configs {
		if k != i {
			out = append(out, r.at.host(r.configs[k].Name))
		}
	}
	return out
}

// back waits until a node is a member: until then the others must not fail, too.
func (r *rig) back(i int) {
	ctx, cancel := context.WithTimeout(r.tb.Context(), 10*time.Second)
	defer cancel()
	if _, _, err := r.table(i).KeyValue().Get(ctx, []byte("any")); !errors.Is(err, keyvalue.ErrMissing) {
		r.tb.Errorf("node %d is not back: %v", i, err)
	}
}

// table is that of a node, nil if the node is down.
func (r *rig) table(i int) *cluster.Table {
	if node := r.nodes[i].Load(); node != nil {
		return node.Table("t")
	}
	return nil
}

// same waits until all copies are at one position, and demands that they are the same.
func (r *rig) same(ctx context.Context) (position uint64) {
	r.tb.Helper()
	for {
		var positions, hashes []uint64
		for i := range r.nodes {
			p, h, err := r.table(i).Inspect(ctx)
			if err != nil {
				r.tb.Fatal(err)
			}
			positions, hashes = append(positions, p), append(hashes, h)
		}
		one := true
		for i := range positions {
			one = one && positions[i] == positions[0]
		}
		if !one && ctx.Err() != nil {
			r.tb.Fatalf("in the end the copies are at positions %d", positions)
		}
		if !one {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for _, h := range hashes {
			if h != hashes[0] {
				r.tb.Fatalf("at position %d the states are %x", positions[0], hashes)
			}
		}
		return positions[0]
	}
}

// patient is a client that asks again until it is answered, each time another node.
type patient struct {
	r               *rig
	session, number uint64
	at, again       int
}

func (p *patient) try(ctx context.Context, ask func(ctx context.Context, t *cluster.Table) error) error {
	for ctx.Err() == nil {
		if t := p.r.table(p.at % len(p.r.nodes)); t != nil {
			once, cancel := context.WithTimeout(ctx, time.Second)
			if rand.IntN(10) == 0 { // it is not so patient now and then
				cancel()
				once, cancel = context.WithTimeout(ctx, 150*time.Microsecond)
			}
			err := ask(once, t)
			cancel()
			switch {
			case err == nil:
				return nil
			case errors.Is(err, cluster.ErrExpired):
				return err
			case !errors.Is(err, cluster.ErrUnknown) && !errors.Is(err, cluster.ErrRefused) &&
				!errors.Is(err, cluster.ErrOut) && !errors.Is(err, cluster.ErrClosed):
				return fmt.Errorf("an error of no kind: %w", err)
			case errors.Is(err, cluster.ErrUnknown):
				p.again++
			}
		}
		p.at++
		time.Sleep(2 * time.Millisecond)
	}
	return ctx.Err()
}

func (p *patient) do(ctx context.Context, command []byte) (answer []byte, err error) {
	if p.session == 0 {
		if err := p.try(ctx, func(ctx context.Context, t *cluster.Table) (err error) {
			p.session, err = t.Open(ctx)
			return err
		}); err != nil {
			return nil, err
		}
	}
	p.number++
	err = p.try(ctx, func(ctx context.Context, t *cluster.Table) (err error) {
		answer, _, err = t.Do(ctx, p.session, p.number, command)
		return err
	})
	return answer, err
}

// counting is what a counter does when nobody else asks: by 0 it is read.
type counting struct {
	key string
	by  int64
}

var counters = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := make(map[string][]porcupine.Operation)
		for _, o := range history {
			by[o.Input.(counting).key] = append(by[o.Input.(counting).key], o)
		}
		var out [][]porcupine.Operation
		for _, list := range by {
			out = append(out, list)
		}
		return out
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		sum := state.(int64) + input.(counting).by
		return output.(string) == fmt.Sprint(sum), sum
	},
}

// load has clients count until all commands are done, and meanwhile lets things happen:
// each when so many are done.
func load(t *testing.T, r *rig, clients, commands int, happen ...func()) (retries int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var done atomic.Int64
	var working sync.WaitGroup
	var mu sync.Mutex
	var history []porcupine.Operation
	begin := time.Now()
	for k := range clients {
		working.Go(func() {
			p := &patient{r: r, at: k}
			for i := 0; done.Add(1) <= int64(commands); i++ {
				in := counting{fmt.Sprint("counter", (k+i)%4), int64(i % 3)}
				called := time.Since(begin)
				b, err := p.do(ctx, keyvalue.Add([]byte(in.key), in.by))
				if err != nil {
					t.Errorf("client %d: %v", k, err)
					return
				}
				a, _ := keyvalue.ReadAnswer(b)
				mu.Lock()
				history = append(history, porcupine.Operation{
					ClientId: k, Input: in, Call: int64(called), Output: string(a.Value), Return: int64(time.Since(begin)),
				})
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			mu.Lock()
			retries += p.again
			mu.Unlock()
		})
	}
	for i, f := range happen {
		for done.Load() < int64((i+1)*commands/(len(happen)+1)) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		f()
	}
	working.Wait()
	if t.Failed() {
		t.FailNow()
	}
	want := make(map[string]int64)
	for _, o := range history {
		want[o.Input.(counting).key] += o.Input.(counting).by
	}
	if len(history) < commands {
		t.Fatalf("%d commands were answered", len(history))
	}
	r.same(ctx)
	for key, sum := range want {
		for i := range r.nodes {
			value, _, err := r.table(i).KeyValue().Get(ctx, []byte(key))
			if err != nil || string(value) != fmt.Sprint(sum) {
				t.Errorf("%s is %s at node %d, and all commands add %d: %v", key, value, i, sum, err)
			}
		}
	}
	if !porcupine.CheckOperations(counters, history) {
		t.Error("not linearizable")
	}
	r.same(ctx)
	return retries
}

func withTable(t testing.TB, durable bool) func(c *cluster.Config) {
	dir := t.TempDir()
	return func(c *cluster.Config) {
		c.Dir, c.Durable = filepath.Join(dir, c.Name), durable
		c.Tables = []cluster.TableConfig{{Name: "t"}}
	}
}

// In memory mode a node that ends and comes back takes over the state of the others.
// Nothing that was acknowledged is lost, and nothing done twice.
func TestTableRejoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(t, false))
		retries := load(t, r, 12, 2000,
			func() { r.stop(2) }, func() { r.start(2); r.back(2) },
			func() { r.stop(0); r.start(0) }, // before anybody misses it
		)
		if retries < 5 {
			t.Errorf("%d commands were asked again", retries)
		}
	})
}

// In durable mode one may end and come back, and then all of them.
func TestTableDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster.CompactEvery(t, 200)
		r := newRig(t, 3, withTable(t, true))
		retries := load(t, r, 12, 2000,
			func() { r.stop(1) }, func() { r.start(1); r.back(1) },
			func() { r.stop(0, 1, 2); r.start(0, 1, 2) },
		)
		if retries < 5 {
			t.Errorf("%d commands were asked again", retries)
		}
	})
}
