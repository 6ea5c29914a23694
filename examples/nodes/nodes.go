// Package nodes starts all nodes of a cluster in one process, on the loopback interface. The other examples use it.
// In a real cluster each node is a separate process. It calls [cluster.Join] with its configuration file, and with
// the certificates that "parley cert" made.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
)

// Start starts n nodes, named node1 and so on. The function configure adds the services of a node to the node's
// configuration. The returned function end closes the nodes. Their data is then lost.
func Start(
	ctx context.Context, n int, configure func(c *cluster.Config),
) (nodes []*cluster.Node, end func(), err error) {
	authority, err := cert.NewAuthority("example", 2*time.Hour, nil) // longer than the certificates that it issues
	if err != nil {
		return nil, nil, err
	}
	trust, err := cert.NewTrust(authority.Anchors(), nil)
	if err != nil {
		return nil, nil, err
	}
	configs, members := make([]cluster.Config, n), make([]cluster.Member, n)
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := authority.IssueNode(name, nil, time.Hour)
		if err != nil {
			return nil, nil, err
		}
		listen, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		members[i] = cluster.Member{Name: name, Address: listen.Addr().String(), Signer: issued.SignerKey()}
		configs[i] = cluster.Config{
			Name: name, Self: issued.Self(), Trust: trust, Listen: listen, Log: slog.New(slog.DiscardHandler),
		}
		configure(&configs[i])
	}
	nodes = make([]*cluster.Node, n)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range configs {
		configs[i].Members = members
		all.Go(func() { nodes[i], errs[i] = cluster.Join(ctx, configs[i]) })
	}
	all.Wait()
	end = func() {
		for _, node := range nodes {
			if node != nil {
				_ = node.Close()
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		end()
		return nil, nil, err
	}
	return nodes, end, nil
}
