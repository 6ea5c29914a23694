package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/cert"
	"parley/replica/bank"
	"parley/replica/service"
)

// served is a cluster in this process, with its clients.
type served struct {
	authority *cert.Authority
	trust     *cert.Trust
	nodes     []*cluster.Node
	servers   []*api.Server
	addresses []string // of the APIs
	watch     string   // of who watches the first node
	left      chan int // nodes that have left by request
}

// shared is the cluster of the tests that do it no harm.
var shared *served

func TestMain(m *testing.M) {
	var err error
	if shared, err = serve(4, api.Limits{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// serve makes a cluster of n nodes, and serves its clients.
func serve(n int, limits api.Limits) (*served, error) {
	s := &served{nodes: make([]*cluster.Node, n), left: make(chan int, n)}
	var err error
	if s.authority, err = cert.NewAuthority("test", time.Hour, nil); err != nil {
		return nil, err
	}
	if s.trust, err = cert.NewTrust(s.authority.Anchors(), nil); err != nil {
		return nil, err
	}
	configs := make([]cluster.Config, n)
	var members []cluster.Member
	for i := range configs {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := s.authority.IssueNode(name, []string{"localhost", "127.0.0.1"}, time.Hour/2)
		if err != nil {
			return nil, err
		}
		l, err := listen()
		if err != nil {
			return nil, err
		}
		members = append(members, cluster.Member{Name: name, Address: l.Addr().String(), Signer: issued.SignerKey()})
		configs[i] = cluster.Config{
			Name: name, Self: issued.Self(), Trust: s.trust, Listen: l, SignerKey: issued.Signer,
			Groups: []cluster.GroupConfig{
				{Name: "total"}, {Name: "causal", Level: cluster.Causal}, {Name: "short", Keep: 8},
			},
			Tables: []cluster.TableConfig{
				{Name: "table"}, {Name: "bank", New: func() service.Application { return bank.New() }},
			},
		}
	}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range configs {
		configs[i].Members = members
		all.Go(func() { s.nodes[i], errs[i] = cluster.Join(context.Background(), configs[i]) })
	}
	all.Wait()
	for i := range configs {
		if errs[i] != nil {
			return nil, errs[i]
		}
		l, err := listen()
		if err != nil {
			return nil, err
		}
		server := api.New(api.Config{
			Node: s.nodes[i], Cluster: configs[i], Limits: limits, Left: func() { s.left <- i },
		})
		go func() { _ = server.Serve(l) }()
		s.servers, s.addresses = append(s.servers, server), append(s.addresses, l.Addr().String())
	}
	l, err := listen()
	if err != nil {
		return nil, err
	}
	go func() { _ = s.servers[0].ServeWatch(l) }()
	s.watch = "http://" + l.Addr().String()
	return s, nil
}

func listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// close ends it.
func (s *served) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i, server := range s.servers {
		if err := server.Close(ctx); err != nil {
			return err
		}
		if err := s.nodes[i].Close(); err != nil && !errors.Is(err, net.ErrClosed) { // it has left
			return err
		}
	}
	return nil
}

// certificate makes one of a client.
func (s *served) certificate(t *testing.T, name string, r cert.Rights) *cert.Issued {
	t.Helper()
	issued, err := s.authority.IssueClient(name, r, time.Hour/2)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

// client is a new client of a node, with some rights.
func (s *served) client(t *testing.T, node int, r cert.Rights, o ...connect.ClientOption) *client.Client {
	t.Helper()
	c := client.New(client.Config{
		Self: s.certificate(t, "c", r).Self(), Trust: s.trust, Address: s.addresses[node],
		Node: fmt.Sprintf("node%d", node+1), Options: o,
	})
	t.Cleanup(c.Close)
	return c
}

// all is every right.
const all = cert.Read | cert.Write | cert.Admin
