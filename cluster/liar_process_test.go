package cluster_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/nodefile"
)

// Environment variables that make a process of this test a liar: the configuration of its node, and the seed of its
// lies. The configuration has one group of level total and one table, or one group of level Byzantine.
const (
	liarFile = "PARLEY_LIAR"
	liarSeed = "PARLEY_LIAR_SEED"
)

// The test is also a program: a faulty node for internal/chaos.
func TestMain(m *testing.M) {
	if file := os.Getenv(liarFile); file != "" {
		fmt.Fprintln(os.Stderr, "liar:", liarProcess(file))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// liarProcess joins with a configuration, and lies until the process is killed or its standard input ends. It
// prints a line when it has joined, and one each second with the lies so far. It returns why it fails.
func liarProcess(path string) error {
	file, err := nodefile.Read(path)
	if err != nil {
		return err
	}
	c, err := file.Config()
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(liarSeed), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: %w", liarSeed, err)
	}
	ordered := len(c.Groups) == 1 && c.Groups[0].Level == cluster.Byzantine && len(c.Tables) == 0
	if !ordered && (len(c.Groups) != 1 || c.Groups[0].Level != cluster.Total || len(c.Tables) != 1) {
		return fmt.Errorf("%s: one group of level total and one table, or one group of level byzantine, were expected", path)
	}
	broken := make(chan error, 8)
	end := func(err error) {
		select {
		case broken <- err:
		default:
		}
	}
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: file.LogLevel}))
	c.Broken = end
	c.Groups[0].Deliver = func(cluster.Delivery) {}
	self := slices.IndexFunc(c.Members, func(m cluster.Member) bool { return m.Name == c.Name })
	channels, each := []uint32{totalChannel, tableChannel}, *liarEach/20
	if ordered {
		channels, each = channels[:1], each/3
	}
	who := besides(&c, parley.ID(self), len(c.Members), seed, channels...)
	if ordered {
		who.ordered, who.lane = true, seed%2 == 0
		c.FaultInjection = &cluster.FaultInjection{Traitor: who.moods()}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end(io.EOF)
	}()
	ctx := context.Background()
	if c.Listen, err = file.Open(ctx); err != nil {
		return err
	}
	go func() {
		node, err := cluster.Join(ctx, c)
		if err != nil {
			end(err)
			return
		}
		if ordered {
			go broadcasts(node.Group(c.Groups[0].Name))
		}
		fmt.Printf("node %s is in, and lies\n", c.Name)
		for {
			who.lies(each, time.Second)
			fmt.Println(who.inWords())
		}
	}()
	return <-broken
}

// inWords returns how many lies the liar has sent.
func (l *liar) inWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf("%d lies of %d kinds", l.sent, len(l.counts))
	if l.ordered {
		text += fmt.Sprintf(", and %d lies of the protocol", l.chosen.Load())
	}
	return text
}

// broadcasts broadcasts in a group, so that a liar has batches to lie about. No correct node broadcasts such payloads.
func broadcasts(g *cluster.Group) {
	for k := 0; ; k++ {
		_ = g.BroadcastAsync(fmt.Appendf(nil, "~~~~~~~~ %d", k)) // its order owes it nothing
		time.Sleep(20 * time.Millisecond)
	}
}
