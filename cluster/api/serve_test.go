package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/cluster/link/memory"
	"parley/replica/bank"
	"parley/replica/rsm"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is a cluster with clients on a network in memory, in a bubble of synctest.
type served struct {
	network   *memory.Network
	authority *cert.Authority
	trust     *cert.Trust
	configs   []cluster.Config
	nodes     []*cluster.Node
	servers   []*api.Server
	addresses []string // of the APIs
	watch     string   // address for monitoring the first node
	left      chan int // nodes that have left on request
}

// The ports of a node: for other nodes, for clients, and for monitoring.
const nodePort, clientPort, watchPort = 7000, 7100, 9090

// inBubble runs a test with a cluster of n nodes in a bubble.
func inBubble(t *testing.T, n int, limits api.Limits, test func(t *testing.T, s *served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, n, limits)
		t.Cleanup(func() { s.close(t) })
		test(t, s)
	})
}

// four is inBubble with four nodes and the default limits.
func four(t *testing.T, test func(t *testing.T, s *served)) {
	t.Helper()
	inBubble(t, 4, api.Limits{}, test)
}

// serve starts a cluster of n nodes, and serves its clients.
func serve(t *testing.T, n int, limits api.Limits) *served {
	t.Helper()
	return serveSafe(t, n, limits, nil)
}

// serveSafe is serve. If change is not nil, there is also a table of level byzantine, the last one, and change changes
// the configurations of the nodes, of which the API knows nothing.
func serveSafe(t *testing.T, n int, limits api.Limits, change func(i int, c *cluster.Config)) *served {
	t.Helper()
	s := &served{network: memory.New(memory.Options{}), nodes: make([]*cluster.Node, n), left: make(chan int, n)}
	var err error
	s.authority, err = cert.NewAuthority("test", time.Hour, nil)
	must(t, err)
	s.trust, err = cert.NewTrust(s.authority.Anchors(), nil)
	must(t, err)
	configs := make([]cluster.Config, n)
	s.configs = configs
	var members []cluster.Member
	for i := range configs {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := s.authority.IssueNode(name, []string{"localhost", "127.0.0.1"}, time.Hour/2)
		must(t, err)
		host := s.network.Host(name)
		members = append(members, cluster.Member{Name: name, Address: host.Addr(nodePort), Signer: issued.SignerKey()})
		configs[i] = cluster.Config{
			Name: name, Self: issued.Self(), Trust: s.trust, Network: host, SignerKey: issued.Signer,
			Groups: []cluster.GroupConfig{
				{Name: "total"}, {Name: "causal", Level: cluster.Causal}, {Name: "short", Keep: 8},
			},
			Tables: []cluster.TableConfig{
				{Name: "table"}, {Name: "bank", Sessions: 8, New: func() rsm.Application { return bank.New() }},
			},
		}
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range configs {
		configs[i].Members = members
		own := configs[i]
		if change != nil {
			configs[i].Tables = append(configs[i].Tables, cluster.TableConfig{Name: "safe", Level: cluster.Byzantine})
			own.Tables = slices.Clone(configs[i].Tables)
			change(i, &own)
		}
		all.Go(func() { s.nodes[i], errs[i] = cluster.Join(context.Background(), own) })
	}
	all.Wait()
	for i := range configs {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		server := api.New(api.Config{
			Node: s.nodes[i], Cluster: configs[i], Limits: limits, Left: func() { s.left <- i },
		})
		l := s.listen(t, i, clientPort)
		go func() { _ = server.Serve(l) }()
		s.servers, s.addresses = append(s.servers, server), append(s.addresses, l.Addr().String())
	}
	l := s.listen(t, 0, watchPort)
	go func() { _ = s.servers[0].ServeWatch(l) }()
	s.watch = "http://" + l.Addr().String()
	return s
}

// listen listens on a port of a node's host.
func (s *served) listen(t *testing.T, node int, port uint16) net.Listener {
	t.Helper()
	host := s.network.Host(fmt.Sprintf("node%d", node+1))
	l, err := host.Listen(t.Context(), "tcp", host.Addr(port))
	must(t, err)
	return l
}

// dial connects as a client.
func (s *served) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.network.Host("clients").DialContext(ctx, network, address)
}

// close stops the servers and nodes.
func (s *served) close(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i, server := range s.servers {
		if err := server.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := s.nodes[i].Close(); err != nil && !errors.Is(err, net.ErrClosed) { // it has left
			t.Error(err)
		}
	}
}

// certificate issues a client's certificate.
func (s *served) certificate(t *testing.T, name string, r cert.Rights) *cert.Issued {
	t.Helper()
	issued, err := s.authority.IssueClient(name, r, time.Hour/2)
	must(t, err)
	return issued
}

// client returns a new client of a node, with the given rights.
func (s *served) client(t *testing.T, node int, r cert.Rights, o ...connect.ClientOption) *client.Client {
	t.Helper()
	return s.connect(t, "clients", client.Config{
		Self: s.certificate(t, "c", r).Self(), Address: s.addresses[node], Node: fmt.Sprintf("node%d", node+1), Options: o,
	})
}

// from returns a client of the first node, on a host.
func (s *served) from(t *testing.T, host string, self *cert.Issued) *client.Client {
	t.Helper()
	return s.connect(t, host, client.Config{Self: self.Self(), Address: s.addresses[0], Node: "node1"})
}

// connect creates a client on a host.
func (s *served) connect(t *testing.T, host string, c client.Config) *client.Client {
	t.Helper()
	c.Trust, c.DialContext = s.trust, s.network.Host(host).DialContext
	out := client.New(c)
	t.Cleanup(func() { _ = out.Close() })
	return out
}

// byProtocol runs a test with four nodes for each protocol of the handler.
func byProtocol(t *testing.T, test func(t *testing.T, s *served, name string, options []connect.ClientOption)) {
	t.Helper()
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			four(t, func(t *testing.T, s *served) { test(t, s, name, options) })
		})
	}
}

// all are all rights.
const all = cert.Read | cert.Write | cert.Admin

// subscribed returns an open subscription to a group.
func subscribed(
	ctx context.Context, t *testing.T, c *client.Client, group string,
) *connect.ServerStreamForClient[parleyv1.SubscribeResponse] {
	t.Helper()
	stream, err := c.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: group})
	if err != nil || !stream.Receive() {
		t.Fatal(err, stream.Err())
	}
	return stream
}

// await waits until so returns true.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 30 s: " + what)
		}
	}
}
