package node

import (
	"context"
	"net"
	"time"

	"parley/cluster"
	"parley/cluster/api"
	"parley/cluster/nodefile"
)

// services are what a node serves to programs other than nodes.
type services struct {
	api, metrics net.Listener // nil if not configured
	server       *api.Server
}

// openServices listens for API and metrics clients. They are served once the node is a member.
func openServices(ctx context.Context, file *nodefile.File) (*services, error) {
	s := new(services)
	var err error
	s.api, s.metrics, err = file.OpenServices(ctx)
	return s, err
}

// serve serves API and metrics clients until close. end ends the process, with nil if the node has left the cluster.
func (s *services) serve(node *cluster.Node, c cluster.Config, end func(error)) {
	s.server = api.New(api.Config{Node: node, Cluster: c, Left: func() { end(nil) }})
	run := func(serve func(net.Listener) error, l net.Listener) {
		if l == nil {
			return
		}
		go func() {
			if err := serve(l); err != nil {
				end(broken{err})
			}
		}()
	}
	run(s.server.Serve, s.api)
	run(s.server.ServeWatch, s.metrics)
}

// close accepts no more requests and waits for those in flight, for a limited time.
func (s *services) close() error {
	if s.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.server.Close(ctx)
}

// drop stops listening if serving has not begun.
func (s *services) drop() {
	for _, l := range []net.Listener{s.api, s.metrics} {
		if l != nil && s.server == nil {
			_ = l.Close()
		}
	}
}

// inWords says where the API and metrics are served.
func (s *services) inWords() string {
	text := ""
	if s.api != nil {
		text += "clients are served at " + s.api.Addr().String() + "\n"
	}
	if s.metrics != nil {
		text += "metrics are served at " + s.metrics.Addr().String() + "\n"
	}
	return text
}
