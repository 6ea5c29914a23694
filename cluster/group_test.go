package cluster_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/link/memory"
)

// hasty are times for tests in which nodes are killed.
var hasty = cluster.Times{
	Beat: 20 * time.Millisecond, Suspect: 300 * time.Millisecond, Flush: 200 * time.Millisecond,
	Retry: 400 * time.Millisecond,
}

// told records the deliveries of one node.
type told struct {
	mu   sync.Mutex
	list []string
	per  map[parley.ID]uint64 // number of deliveries by sender
	bad  string               // a payload that was delivered too early
}

// tagged returns a payload with its number, and the number of deliveries of each sender at its own sender.
func tagged(number, n int, t *told) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := binary.BigEndian.AppendUint64(nil, uint64(number))
	for id := range n {
		b = binary.BigEndian.AppendUint64(b, t.per[parley.ID(id)])
	}
	return b
}

func (t *told) deliver(d cluster.Delivery, level cluster.Level) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number := binary.BigEndian.Uint64(d.Payload)
	if level != cluster.Reliable && level != cluster.Uniform && number != t.per[d.From] && t.bad == "" {
		t.bad = fmt.Sprintf("%d of %d after %d", number, d.From, t.per[d.From])
	}
	for id := range len(d.Payload)/8 - 1 {
		before := binary.BigEndian.Uint64(d.Payload[8*(id+1):])
		if level == cluster.Causal && t.per[parley.ID(id)] < before && t.bad == "" {
			t.bad = fmt.Sprintf("%d of %d, which comes after %d of %d, of which %d came", number, d.From, before, id,
				t.per[parley.ID(id)])
		}
	}
	t.per[d.From]++
	t.list = append(t.list, fmt.Sprintf("%d:%d", d.From, number))
}

func (t *told) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.list)
}

func (t *told) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list)
}

// killed runs a group of four nodes that all broadcast, and kills the last one in the middle. It returns the
// deliveries of each node.
func killed(t *testing.T, level cluster.Level, each int) []*told {
	t.Helper()
	const n = 4
	var heard []*told
	for range n {
		heard = append(heard, &told{per: make(map[parley.ID]uint64)})
	}
	nodes := joined(t, n, func(i int, c *cluster.Config) {
		c.Times, c.Round = hasty, time.Second // 1/5 of it is enough on a busy computer
		c.Groups = []cluster.GroupConfig{{Name: "g", Level: level, Deliver: func(d cluster.Delivery) {
			heard[i].deliver(d, level)
		}}}
	})
	var senders sync.WaitGroup
	for i, node := range nodes {
		senders.Go(func() {
			for k := range each {
				if i == n-1 && k == each/2 {
					_ = node.Close()
					return
				}
				if err := node.Group("g").BroadcastAsync(tagged(k, n, heard[i])); err != nil {
					if i < n-1 {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	senders.Wait()
	eventually(t, "all who stay deliver what they broadcast, and the same number", func() bool {
		for _, one := range heard[:n-1] {
			own := 0
			for _, what := range one.all() {
				if what[0] != '3' {
					own++
				}
			}
			if own < (n-1)*each || one.count() != heard[0].count() {
				return false
			}
		}
		return true
	})
	for i, one := range heard {
		if one.bad != "" {
			t.Errorf("node %d delivers %s", i+1, one.bad)
		}
	}
	return heard
}

// sameSet requires that the remaining members deliver the same payloads, each once.
func sameSet(t *testing.T, heard []*told) {
	t.Helper()
	first := heard[0].all()
	slices.Sort(first)
	if len(slices.Compact(slices.Clone(first))) != len(first) {
		t.Error("a payload is delivered twice")
	}
	for i, one := range heard[1 : len(heard)-1] {
		all := one.all()
		slices.Sort(all)
		if !slices.Equal(all, first) {
			t.Errorf("node %d delivers %d payloads, and node 1 others, %d", i+2, len(all), len(first))
		}
	}
}

// ofTheDead requires that all remaining members deliver what the killed node had delivered.
func ofTheDead(t *testing.T, heard []*told) {
	t.Helper()
	stay := make(map[string]bool)
	for _, what := range heard[0].all() {
		stay[what] = true
	}
	for _, what := range heard[len(heard)-1].all() {
		if !stay[what] {
			t.Errorf("who was killed delivered %s, and who stays does not", what)
		}
	}
}

// sameSequence requires one sequence at the remaining members; the deliveries of the killed node are a prefix of
// it.
func sameSequence(t *testing.T, heard []*told) {
	t.Helper()
	first := heard[0].all()
	for i, one := range heard[1 : len(heard)-1] {
		if !slices.Equal(one.all(), first) {
			t.Errorf("node %d delivers in another order than node 1", i+2)
		}
	}
	dead := heard[len(heard)-1].all()
	if len(dead) > len(first) || !slices.Equal(dead, first[:len(dead)]) {
		t.Error("what the dead delivered is no beginning of the sequence")
	}
}

// What one remaining member delivers, all remaining members deliver.
func TestReliableGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSet(t, killed(t, cluster.Reliable, 2000)) })
}

// They also deliver what a killed member has delivered.
func TestUniformGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		heard := killed(t, cluster.Uniform, 2000)
		sameSet(t, heard)
		ofTheDead(t, heard)
	})
}

// They deliver in the order of each sender, without a gap.
func TestFIFOGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSet(t, killed(t, cluster.FIFO, 2000)) })
}

// They deliver nothing before what its sender had delivered.
func TestCausalGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSet(t, killed(t, cluster.Causal, 2000)) })
}

func TestAtomicGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSequence(t, killed(t, cluster.Atomic, 500)) })
}

func TestTotalGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSequence(t, killed(t, cluster.Total, 2000)) })
}

func TestByzantineGroup(t *testing.T) {
	bubble(t, func(t *testing.T) { sameSequence(t, killed(t, cluster.Byzantine, 500)) })
}

// A restarted node in a group in memory is a new member: it delivers what is broadcast from then on, including
// its own payloads, and nothing that it has missed.
func TestRejoins(t *testing.T) {
	each(t, func(t *testing.T, level cluster.Level) {
		var first cluster.Config
		var heard, again []*told
		for range 3 {
			heard = append(heard, &told{per: make(map[parley.ID]uint64)})
		}
		nodes := joined(t, 3, func(i int, c *cluster.Config) {
			onDisk(c, false)
			c.Times = hasty
			c.Groups = []cluster.GroupConfig{{Name: "g", Level: level, Deliver: func(d cluster.Delivery) {
				heard[i].deliver(d, cluster.Reliable)
			}}}
			if i == 2 {
				first = *c
			}
		})
		say := func(node *cluster.Node, number int) {
			t.Helper()
			must(t, node.Group("g").BroadcastAsync(binary.BigEndian.AppendUint64(nil, uint64(number))))
		}
		say(nodes[2], 1)
		eventually(t, "it is delivered", func() bool { return heard[0].count() == 1 && heard[1].count() == 1 })
		must(t, nodes[2].Close())
		say(nodes[0], 2)
		eventually(t, "who stays goes on", func() bool { return heard[0].count() == 2 && heard[1].count() == 2 })
		again = append(again, &told{per: make(map[parley.ID]uint64)})
		first.Groups = []cluster.GroupConfig{{Name: "g", Level: level, Deliver: func(d cluster.Delivery) {
			again[0].deliver(d, cluster.Reliable)
		}}}
		back, err := cluster.Join(t.Context(), first)
		must(t, err)
		defer back.Close()
		say(back, 3)
		eventually(t, "its own is delivered", func() bool { return heard[0].count() == 3 && again[0].count() == 1 })
		say(nodes[1], 4)
		eventually(t, "the other's is", func() bool { return heard[0].count() == 4 && again[0].count() == 2 })
		if got := again[0].all(); !slices.Equal(got, []string{"2:3", "1:4"}) {
			t.Errorf("it delivers %v", got)
		}
	}, cluster.Reliable, cluster.Causal, cluster.Atomic, cluster.Total)
}

// A payload may have another level than its group if one machine supports both.
func TestBroadcastAt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var heard [3]told
		nodes := joined(t, 3, func(i int, c *cluster.Config) {
			heard[i].per = make(map[parley.ID]uint64)
			c.Groups = []cluster.GroupConfig{
				{Name: "g", Level: cluster.Causal, Deliver: func(d cluster.Delivery) { heard[i].deliver(d, cluster.Reliable) }},
				{Name: "total"},
			}
		})
		g := nodes[0].Group("g")
		each := []cluster.Level{cluster.Reliable, cluster.Uniform, cluster.FIFO, cluster.Causal}
		for k := range 400 {
			must(t, second(g.BroadcastAt(t.Context(), each[k%4], binary.BigEndian.AppendUint64(nil, uint64(k)))))
		}
		eventually(t, "all is delivered", func() bool {
			return heard[0].count() == 400 && heard[1].count() == 400 && heard[2].count() == 400
		})
		for _, level := range []cluster.Level{cluster.Total, cluster.Atomic, cluster.Byzantine} {
			if _, err := g.BroadcastAt(t.Context(), level, nil); !errors.Is(err, cluster.ErrRefused) {
				t.Errorf("a causal group takes a payload of level %s", level)
			}
			if _, err := nodes[0].Group("total").BroadcastAt(t.Context(), level, nil); (err == nil) != (level == cluster.Total) {
				t.Errorf("level %s in a group of level total: %v", level, err)
			}
		}
		if err := g.BroadcastAsync(make([]byte, 1<<20)); !errors.Is(err, cluster.ErrTooLarge) {
			t.Errorf("a payload of a megabyte: %v", err)
		}
	})
}

// read reads count deliveries.
func read(t *testing.T, s *cluster.Subscription, count int) (out []cluster.Delivery) {
	t.Helper()
	ctx := soon(t, 20*time.Second)
	for range count {
		d, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("after %d deliveries: %v", len(out), err)
		}
		out = append(out, d)
	}
	return out
}

// A subscription from a position reads at any node what others read there, and then what comes.
func TestSubscribe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const each = 3000
		nodes := joined(t, 3, func(_ int, c *cluster.Config) { c.Groups = []cluster.GroupConfig{{Name: "g"}} })
		late, err := nodes[1].Group("g").Subscribe(0)
		must(t, err)
		var senders sync.WaitGroup
		for i, node := range nodes {
			senders.Go(func() {
				for k := range each {
					if err := node.Group("g").BroadcastAsync(fmt.Appendf(nil, "%d.%d", i, k)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all := read(t, late, 3*each)
		senders.Wait()
		for i := range all[1:] {
			if all[i].Position >= all[i+1].Position {
				t.Fatalf("position %d after %d", all[i+1].Position, all[i].Position)
			}
		}
		for _, from := range []int{0, 1, 777, 3*each - 1} {
			for i, node := range nodes {
				s, err := node.Group("g").Subscribe(all[from].Position)
				must(t, err)
				for k, d := range read(t, s, min(50, 3*each-from)) {
					if want := all[from+k]; d.Position != want.Position || !bytes.Equal(d.Payload, want.Payload) {
						t.Fatalf("node %d reads %s at %d, and node 2 %s at %d", i+1, d.Payload, d.Position, want.Payload, want.Position)
					}
				}
				_ = s.Close()
				if _, err := s.Next(t.Context()); !errors.Is(err, cluster.ErrClosed) {
					t.Error(err)
				}
			}
		}
		// Nothing more comes: the context ends the wait, but not the subscription.
		ctx := soon(t, 20*time.Millisecond)
		if _, err := late.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		resumed, err := nodes[2].Group("g").Subscribe(all[len(all)-1].Position + 1)
		must(t, err)
		must(t, nodes[0].Group("g").BroadcastAsync([]byte("more")))
		for _, s := range []*cluster.Subscription{late, resumed} {
			if got := read(t, s, 1); string(got[0].Payload) != "more" {
				t.Errorf("%s", got[0].Payload)
			}
		}
		waits := make(chan error)
		go func() {
			_, err := late.Next(context.Background())
			waits <- err
		}()
		time.Sleep(10 * time.Millisecond)
		must(t, nodes[1].Close())
		if err := <-waits; !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
		if _, err := nodes[1].Group("g").Subscribe(0); !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
		if err := nodes[1].Group("g").BroadcastAsync(nil); !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
	})
}

// A subscriber slower than the group is cut off as soon as it falls behind the retained history, which is bounded
// in deliveries and in bytes; others are not affected.
func TestSlowSubscriber(t *testing.T) {
	for name, c := range map[string]cluster.GroupConfig{
		"deliveries": {Name: "g", Keep: 100},
		"bytes":      {Name: "g", KeepBytes: 100 * (65 + 48)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := joined(t, 2, func(_ int, all *cluster.Config) { all.Groups = []cluster.GroupConfig{c} })
				g := nodes[0].Group("g")
				slow, err := g.Subscribe(0)
				must(t, err)
				quick, err := g.Subscribe(0)
				must(t, err)
				say := func() cluster.Delivery {
					must(t, g.BroadcastAsync(make([]byte, 64)))
					return read(t, quick, 1)[0]
				}
				first := say()
				if d := read(t, slow, 1)[0]; d.Position != first.Position {
					t.Errorf("%d, not %d", d.Position, first.Position)
				}
				if s, err := g.Subscribe(first.Position); err != nil || read(t, s, 1)[0].Position != first.Position {
					t.Error(err)
				}
				var last cluster.Delivery
				for range 300 {
					last = say()
				}
				for range 2 {
					if _, err := slow.Next(t.Context()); !errors.Is(err, cluster.ErrSlowSubscriber) {
						t.Error(err)
					}
				}
				if _, err := g.Subscribe(first.Position); !errors.Is(err, cluster.ErrNotRetained) {
					t.Error(err)
				}
				kept := 0
				for s, err := g.Subscribe(last.Position - 99<<16); ; kept++ {
					must(t, err)
					if read(t, s, 1)[0].Position == last.Position {
						break
					}
				}
				if _, err := g.Subscribe(last.Position - 100<<16); kept != 99 || !errors.Is(err, cluster.ErrNotRetained) {
					t.Errorf("%d are kept, %v", kept+1, err)
				}
			})
		})
	}
}

// In durable mode all nodes may restart: the deliveries are repeated at their positions, and the group continues
// after them.
func TestAllComeBack(t *testing.T) {
	each(t, func(t *testing.T, level cluster.Level) {
		n := 3
		if level == cluster.Byzantine {
			n = 4
		}
		configs := make([]cluster.Config, n)
		nodes := joined(t, n, func(i int, c *cluster.Config) {
			onDisk(c, true)
			c.Times = hasty
			c.Groups = []cluster.GroupConfig{{Name: "g", Level: level}}
			configs[i] = *c
		})
		s, err := nodes[1].Group("g").Subscribe(0)
		must(t, err)
		for k := range 20 {
			must(t, nodes[k%3].Group("g").BroadcastAsync([]byte{byte(k)}))
		}
		before := read(t, s, 20)
		for _, node := range nodes {
			must(t, node.Close())
		}
		var all sync.WaitGroup
		for i := range configs {
			all.Go(func() {
				var err error
				if nodes[i], err = cluster.Join(t.Context(), configs[i]); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if t.Failed() {
			t.FailNow()
		}
		must(t, nodes[0].Group("g").BroadcastAsync([]byte("more")))
		if s, err = nodes[1].Group("g").Subscribe(1); err != nil {
			t.Fatal(err)
		}
		for _, d := range before {
			if again := read(t, s, 1)[0]; again.Position != d.Position || !bytes.Equal(again.Payload, d.Payload) {
				t.Errorf("%q at %d was %q at %d before", again.Payload, again.Position, d.Payload, d.Position)
			}
		}
		if d := read(t, s, 1)[0]; string(d.Payload) != "more" {
			t.Errorf("%q is delivered", d.Payload)
		}
	}, cluster.Uniform, cluster.Causal, cluster.Atomic, cluster.Total, cluster.Byzantine)
}

// A member of a Byzantine group in memory that was closed, or disconnected, rejoins: it delivers everything, also what
// it missed, at the same positions as all others, and its own payloads are delivered again.
func TestComesBackAmongLiars(t *testing.T) {
	each(t, func(t *testing.T, how string) {
		var config cluster.Config
		var mu sync.Mutex
		places := make([]map[uint64]string, 5) // of each node, and of the last one's second incarnation
		for i := range places {
			places[i] = make(map[uint64]string)
		}
		group := func(i int) []cluster.GroupConfig {
			return []cluster.GroupConfig{{Name: "g", Level: cluster.Byzantine, Deliver: func(d cluster.Delivery) {
				mu.Lock()
				places[i][d.Position] = fmt.Sprintf("%d:%s", d.From, d.Payload)
				mu.Unlock()
			}}}
		}
		var hosts [4]*memory.Host
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			hosts[i] = c.Network.(*memory.Host)
			onDisk(c, false)
			c.Times, c.Round, c.Groups = hasty, time.Second, group(i)
			config = *c
		})
		say := func(i int, what string) {
			t.Helper()
			must(t, nodes[i].Group("g").BroadcastAsync([]byte(what)))
		}
		has := func(i int, what string) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				for _, x := range places[i] {
					if x == what {
						return true
					}
				}
				return false
			}
		}
		say(3, "first")
		eventually(t, "all deliver", func() bool { return has(0, "3:first")() && has(1, "3:first")() && has(3, "3:first")() })
		last := 3
		if how == "closed" {
			must(t, nodes[3].Close())
			say(0, "missed")
			eventually(t, "who stays delivers", has(1, "0:missed"))
			config.Groups = group(4)
			back, err := cluster.Join(t.Context(), config)
			must(t, err)
			defer back.Close()
			nodes[3], last = back, 4
		} else {
			hosts[3].Network().Cut(hosts[3], hosts[:3]...)
			for k := range 40 {
				say(k%3, fmt.Sprint("more ", k))
				time.Sleep(75 * time.Millisecond)
			}
			hosts[3].Network().Heal(hosts[3], hosts[:3]...)
		}
		eventually(t, "its own is delivered", func() bool {
			_ = nodes[3].Group("g").BroadcastAsync([]byte("own")) // fails while it is out
			return has(last, "3:own")() && has(0, "3:own")()
		})
		say(1, "last")
		eventually(t, "all deliver what comes then", func() bool {
			return has(0, "1:last")() && has(1, "1:last")() && has(2, "1:last")() && has(last, "1:last")()
		})
		var theirs map[uint64]string
		eventually(t, "both deliver as much", func() bool {
			mu.Lock()
			defer mu.Unlock()
			theirs = maps.Clone(places[last])
			return len(theirs) == len(places[0])
		})
		mu.Lock()
		defer mu.Unlock()
		for position, what := range theirs {
			if places[0][position] != what {
				t.Errorf("at %d it delivers %s, and the first node %s", position, what, places[0][position])
			}
		}
		for position, what := range places[0] {
			if theirs[position] != what {
				t.Errorf("at %d the first node delivers %s, and it %s", position, what, theirs[position])
			}
		}
	}, "closed", "cut off")
}
