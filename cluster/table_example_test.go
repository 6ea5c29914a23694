package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/cluster"
	"parley/replica/bank"
	"parley/replica/rsm"
)

// The lecture's bank account, with a replica at each of three nodes: a deposit of 150 dollars and 8 percent of
// interest are requested at two nodes at the same time, and all replicas apply them in one order.
func ExampleTable() {
	config := func(c *cluster.Config) {
		c.Tables = []cluster.TableConfig{{Name: "account", New: func() rsm.Application { return bank.New() }}}
	}
	nodes, end := several(3, config) // three processes would each call cluster.Join
	defer end()

	ctx := context.Background()
	var both sync.WaitGroup
	both.Go(func() { nodes[0].Table("account").Session().Do(ctx, []byte("deposit 150")) })
	both.Go(func() { nodes[1].Table("account").Session().Do(ctx, []byte("interest 8")) })
	both.Wait()

	var balances []string
	for _, node := range nodes {
		answer, _, err := node.Table("account").Query(ctx, []byte("balance"))
		if err != nil {
			fmt.Println(err)
		}
		balances = append(balances, string(answer))
	}
	fmt.Println("all the same:", balances[0] == balances[1] && balances[1] == balances[2])
	fmt.Println("1242 or 1230:", balances[0] == "1242" || balances[0] == "1230")
	// Output:
	// all the same: true
	// 1242 or 1230: true
}

// several starts n nodes in this process.
func several(n int, config func(c *cluster.Config)) (nodes []*cluster.Node, end func()) {
	r := configured(new(testing.B), n, func(_ int, c *cluster.Config) {
		c.Times = cluster.Times{Suspect: time.Minute} // no node crashes, however busy this computer is
		config(c)
	})
	r.start(all(n)...)
	for i := range r.nodes {
		nodes = append(nodes, r.nodes[i].Load())
	}
	return nodes, func() { r.stop(all(n)...) }
}
