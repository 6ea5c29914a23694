package participant

import (
	"context"
	"net"
)

// NewOn is New on a test's own network, for a service at a TCP address there.
func NewOn(node, address string, connect func(context.Context, string, string) (net.Conn, error)) *Client {
	return newClient(node, place{"tcp", address}, connect)
}
