package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley/cluster"
	"parley/replica/keyvalue"
)

// patient is a client that retries until it is answered, each time at another node.
type patient struct {
	r               *rig
	session, number uint64
	at, again       int
}

func (p *patient) try(ctx context.Context, ask func(ctx context.Context, t *cluster.Table) error) error {
	for ctx.Err() == nil {
		if t := p.r.table(p.at % len(p.r.nodes)); t != nil {
			once, cancel := context.WithTimeout(ctx, time.Second)
			if rand.IntN(10) == 0 { // sometimes it gives up sooner
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
				!errors.Is(err, cluster.ErrNotMember) && !errors.Is(err, cluster.ErrClosed):
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

// counting is the model of a counter with a single client; adding 0 reads it.
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

// load runs clients that count until all commands are done. Each function of happen is called after its share of
// the commands.
func load(t *testing.T, r *rig, clients, commands int, happen ...func()) (retries int) {
	t.Helper()
	ctx := soon(t, 20*time.Second)
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

// In memory mode a restarted node gets the state of the others. Nothing acknowledged is lost, and nothing is
// applied twice.
func TestTableRejoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(false))
		retries := load(t, r, 12, 2000,
			func() { r.stop(2) }, func() { r.start(2); r.back(2) },
			func() { r.stop(0); r.start(0) }, // before any node suspects it
		)
		if retries < 5 {
			t.Errorf("%d commands were asked again", retries)
		}
	})
}

// In durable mode one node may restart, and then all of them.
func TestTableDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) {
			withTable(true)(c)
			c.Test().Compact = 200
		})
		retries := load(t, r, 12, 2000,
			func() { r.stop(1) }, func() { r.start(1); r.back(1) },
			func() { r.stop(0, 1, 2); r.start(0, 1, 2) },
		)
		if retries < 5 {
			t.Errorf("%d commands were asked again", retries)
		}
	})
}
