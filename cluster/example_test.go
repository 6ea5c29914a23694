package cluster_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"parley/agreement/consensus"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/faulty"
)

// Three nodes in one process, each with its own certificate. In a real cluster each is a process that loads the
// files of "parley cert" with [cert.LoadNode] and [cert.LoadTrust].
func ExampleJoin() {
	authority, err := cert.NewAuthority("shop", time.Hour, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	trust, err := cert.NewTrust(authority.Anchors(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	configs, members := make([]cluster.Config, 3), make([]cluster.Member, 3)
	for i, name := range []string{"till", "stock", "office"} {
		issued, err := authority.IssueNode(name, nil, time.Hour)
		if err != nil {
			fmt.Println(err)
			return
		}
		listen, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			fmt.Println(err)
			return
		}
		members[i] = cluster.Member{Name: name, Address: listen.Addr().String()}
		configs[i] = cluster.Config{
			Name: name, Members: members, Self: issued.Self(), Trust: trust, Listen: listen,
			Groups: []cluster.GroupConfig{{Name: "news", Level: cluster.Causal}},
		}
	}
	nodes := make([]*cluster.Node, 3)
	var all sync.WaitGroup
	for i, c := range configs {
		all.Go(func() {
			node, err := cluster.Join(context.Background(), c)
			if err != nil {
				fmt.Println(err)
			}
			nodes[i] = node
		})
	}
	all.Wait()
	defer func() {
		for _, node := range nodes {
			_ = node.Close()
		}
	}()

	ctx := context.Background()
	if _, err := nodes[0].Group("news").Broadcast(ctx, []byte("open")); err != nil {
		fmt.Println(err)
	}
	for _, node := range nodes {
		news, err := node.Group("news").Subscribe(1) // from the beginning
		if err != nil {
			fmt.Println(err)
			continue
		}
		d, err := news.Next(ctx)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s says %q\n", members[d.From].Name, d.Payload)
	}
	// Output:
	// till says "open"
	// till says "open"
	// till says "open"
}

// A loop over the deliveries of a group, from the first one.
func ExampleSubscription_All() {
	nodes, end := several(3, func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{{Name: "news"}} })
	defer end()

	ctx := context.Background()
	for _, headline := range []string{"rain", "more rain", "sun"} {
		if _, err := nodes[0].Group("news").Broadcast(ctx, []byte(headline)); err != nil {
			fmt.Println(err)
			return
		}
	}
	news, err := nodes[2].Group("news").Subscribe(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = news.Close() }()
	for d, err := range news.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", d.Payload)
		if string(d.Payload) == "sun" {
			break
		}
	}
	// Output:
	// rain
	// more rain
	// sun
}

// Four nodes agree on the value of the first, although the third sends another one to half of them.
func ExampleNode_Agree() {
	nodes, end := several(4, func(c *cluster.Config) { // four processes would each call cluster.Join
		c.Round = 5 * time.Second // maximum wait for a silent node
		if c.Name == "node3" {
			c.FaultInjection = &cluster.FaultInjection{Traitor: faulty.TwoFaced}
		}
	})
	defer end()

	var all sync.WaitGroup
	all.Add(2)
	decided := func(d cluster.Decision) {
		fmt.Printf("they decide %q\n", d.Value)
		all.Done()
	}
	defer nodes[1].Decisions(decided)() // the call ends it
	defer nodes[3].Decisions(decided)()
	d, err := nodes[0].Agree(context.Background(), cluster.AgreeRequest{Value: []byte("attack")})
	if err != nil {
		fmt.Println(err)
		return
	}
	all.Wait()
	fmt.Printf("the source decides %q, with m = %d\n", d.Value, d.M)
	// Output:
	// they decide "attack"
	// they decide "attack"
	// the source decides "attack", with m = 1
}

// Three of four nodes submit measurements. All get the same values, and the same median.
func ExampleNode_Consensus() {
	nodes, end := several(4, func(c *cluster.Config) { c.Round = 5 * time.Second })
	defer end()

	var all sync.WaitGroup
	for i, degrees := range []string{"20", "21", "99"} {
		all.Go(func() {
			p := cluster.VectorRequest{Name: "noon", Value: []byte(degrees), Gather: time.Second}
			median, vector, err := nodes[i].Consensus(context.Background(), p, consensus.Median, []byte("0"))
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("%q: %s\n", vector.Values, median)
		})
	}
	all.Wait()
	// Output:
	// ["20" "21" "99" ""]: 20
	// ["20" "21" "99" ""]: 20
	// ["20" "21" "99" ""]: 20
}

// Two nodes broadcast concurrently, and all deliver in one order.
func ExampleGroup_Broadcast() {
	nodes, end := several(3, func(c *cluster.Config) {
		c.Groups = []cluster.GroupConfig{{Name: "orders", Level: cluster.Total}}
	})
	defer end()

	ctx := context.Background()
	var both sync.WaitGroup
	for _, node := range nodes[:2] {
		both.Go(func() {
			if _, err := node.Group("orders").Broadcast(ctx, []byte("mine first")); err != nil {
				fmt.Println(err)
			}
		})
	}
	both.Wait()
	var orders []string
	for _, node := range nodes {
		s, err := node.Group("orders").Subscribe(1) // from the beginning
		if err != nil {
			fmt.Println(err)
			return
		}
		first, _ := s.Next(ctx)
		second, _ := s.Next(ctx)
		orders = append(orders, fmt.Sprint(first.From, second.From))
	}
	fmt.Println("one order:", orders[0] == orders[1] && orders[1] == orders[2])
	// Output:
	// one order: true
}
