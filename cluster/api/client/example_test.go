package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// A client of two nodes broadcasts at one of them. Both are down, so that the request has no effect and can be
// retried.
func ExampleNodes_Do() {
	authority, err := cert.NewAuthority("shop", time.Hour, nil) // in production: client.LoadNodes
	if err != nil {
		fmt.Println(err)
		return
	}
	trust, err := cert.NewTrust(authority.Anchors(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	self, err := authority.IssueClient("till", cert.Write, time.Hour/2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var nodes []*client.Client
	for _, address := range []string{"10.0.0.1:7101", "10.0.0.2:7101"} {
		nodes = append(nodes, client.New(client.Config{
			Self: self.Self(), Trust: trust, Address: address,
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("it is down")}
			},
		}))
	}
	cluster := client.NewNodes(nodes...)
	defer func() { _ = cluster.Close() }()

	err = cluster.Do(context.Background(), func(ctx context.Context, node *client.Client) error {
		fmt.Println("call", node.Address())
		_, err := node.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: "news", Payload: []byte("open")})
		return err
	})
	fmt.Println("failed:", err != nil, "- perhaps delivered:", client.Unknown(err))
	// Output:
	// call 10.0.0.1:7101
	// call 10.0.0.2:7101
	// failed: true - perhaps delivered: false
}
