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

// Environment variables that make a process of this test a liar: the configuration of its node, which has one
// group of level total, and one table; and the seed of its lies.
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
	if len(c.Groups) != 1 || c.Groups[0].Level != cluster.Total || len(c.Tables) != 1 {
		return fmt.Errorf("%s: one group of level total, and one table, were expected", path)
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
	who := besides(&c, parley.ID(self), len(c.Members), seed, totalChannel, tableChannel)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end(io.EOF)
	}()
	ctx := context.Background()
	if c.Listen, err = file.Open(ctx); err != nil {
		return err
	}
	go func() {
		if _, err := cluster.Join(ctx, c); err != nil {
			end(err)
			return
		}
		fmt.Printf("node %s is in, and lies\n", c.Name)
		for {
			who.lies(*liarEach/20, time.Second)
			fmt.Println(who.inWords())
		}
	}()
	return <-broken
}

// inWords returns how many lies the liar has sent.
func (l *liar) inWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d lies of %d kinds", l.sent, len(l.counts))
}
