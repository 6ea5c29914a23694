// Command sensors makes four nodes agree on a temperature although one of them sends different values to
// the others.
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

// configure makes the last node lie: it sends different values to the two halves of the other nodes.
func configure(c *cluster.Config) {
	c.Round = time.Second // the longest wait for a silent node
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

// agree proposes the measured value of each node. All correct nodes get the same values, one for each node,
// and so the same median. The median lies between two correct values, because three of the four nodes are
// correct.
func agree(ctx context.Context, all []*cluster.Node, when string, measured []string) (agreed []string, err error) {
	agreed = make([]string, len(all)-1) // the liar's result does not matter
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
