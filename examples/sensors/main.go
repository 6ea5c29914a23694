// Command sensors has four nodes agree on a temperature, although one of them tells each other node another one.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"parley/agreement/consensus"
	"parley/cluster"
	"parley/examples/nodes"
	"parley/faulty"
)

func main() {
	if err := measure(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// configure makes the last node lie: it tells one half of the others one thing, and the other half another.
func configure(c *cluster.Config) {
	c.Round = time.Second // the longest that anybody waits for a node that is silent
	if c.Name == "node4" {
		c.FaultInjection = &cluster.FaultInjection{Traitor: faulty.TwoFaced}
	}
}

func measure(ctx context.Context, out io.Writer) error {
	all, end, err := nodes.Start(ctx, 4, configure)
	if err != nil {
		return err
	}
	defer end()
	agreed, err := agree(ctx, all, "noon", []string{"20", "21", "23", "22"})
	if err != nil {
		return err
	}
	for i, degrees := range agreed {
		fmt.Fprintf(out, "node%d: %s degrees\n", i+1, degrees)
	}
	return nil
}

// agree has each node hand in what it has measured. All correct nodes get the same values, one a node, and so the
// same median. It lies between two correct values, whatever a liar says, for there are three correct ones.
func agree(ctx context.Context, all []*cluster.Node, when string, measured []string) (agreed []string, err error) {
	agreed = make([]string, len(all)-1) // what the liar makes of it is of no matter
	errs := make(chan error, len(all))
	var wait sync.WaitGroup
	for i, node := range all {
		wait.Go(func() {
			p := cluster.VectorRequest{Name: when, Value: []byte(measured[i]), Gather: time.Second}
			median, _, err := node.Consensus(ctx, p, consensus.Median, []byte("0"))
			if i < len(agreed) {
				agreed[i] = string(median)
				errs <- err
			}
		})
	}
	wait.Wait()
	close(errs)
	for e := range errs {
		if e != nil {
			return nil, e
		}
	}
	return agreed, nil
}
