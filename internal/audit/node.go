package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/link"
	"parley/faulty"
	"parley/internal/must"
)

// part is the specification of one node. The parent process writes it to a child as JSON.
type part struct {
	Certificates string
	Traces       string
	Members      []cluster.Member
	Self         int
	M            int
	Round        time.Duration
	Traitor      string
	Instances    int // of each service
	AtOnce       int // broadcasts of a node in flight
	Verbose      bool

	network link.Network // set by tests; nil: the system's
}

// services are the audited services, in this order.
var services = []string{"agree", "propose", order}

// order is the service without rounds. count is no service: a node answers it with the number of its deliveries.
const (
	order = "order"
	count = "count"
)

// group is the name of the group for broadcasts.
const group = "order"

// running is a node that has joined.
type running struct {
	part
	node   *cluster.Node
	mine   chan struct{} // its own deliveries
	failed atomic.Int64  // instances without an answer

	deliveries atomic.Int64
	missing    []atomic.Int64 // by source: broadcasts that are not delivered; negative for traitors that broadcast more
}

// join joins the cluster.
func (p part) join(ctx context.Context, on net.Listener) (r *running, err error) {
	defer must.Return(&err)
	r = &running{part: p, mine: make(chan struct{}, p.Instances+1), missing: make([]atomic.Int64, len(p.Members))}
	for i := range r.missing {
		r.missing[i].Store(int64(p.Instances))
	}
	trust := must.Get(cert.LoadTrust(p.Certificates, nil))
	name := p.Members[p.Self].Name
	self, signer := must.Get2(cert.LoadNode(p.Certificates, name))
	c := cluster.Config{
		Name: name, Members: p.Members, Self: self, Trust: trust, Listen: on, Network: p.network,
		M: p.M, Round: p.Round, SignerKey: signer,
		Agreements: []cluster.AgreementConfig{{Algorithm: cluster.EIG, M: p.M}},
		Trace:      &cluster.Tracing{Open: cluster.TraceFolder(filepath.Join(p.Traces, name)), Buffer: 256 << 20},
		Broken:     func(err error) { panic(err) },
		Groups:     []cluster.GroupConfig{{Name: group, Level: cluster.Byzantine, Deliver: r.delivered}},
	}
	if p.Verbose {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", name)
	}
	if p.Traitor != "" {
		c.FaultInjection = &cluster.FaultInjection{Traitor: must.Get(faulty.Parse(p.Traitor))}
	}
	r.node, err = cluster.Join(ctx, c)
	return r, err
}

// delivered records a delivery.
func (r *running) delivered(d cluster.Delivery) {
	r.deliveries.Add(1)
	r.missing[d.From].Add(-1)
	if int(d.From) == r.Self {
		select {
		case r.mine <- struct{}{}:
		default:
		}
	}
}

// do does the node's part of one service, and counts failures.
func (r *running) do(ctx context.Context, service string) error {
	switch service {
	case "agree": // each node is the source of its share
		return r.each(r.share(), 16, func(i int) error {
			ctx, cancel := context.WithTimeout(ctx, r.patience())
			defer cancel()
			return r.patiently(ctx, func() error {
				_, err := r.node.Agree(ctx, cluster.AgreeRequest{Value: fmt.Appendf(nil, "value %d of %d", i, r.Self), M: r.M})
				return err
			})
		})
	case "propose":
		return r.each(r.Instances, 50, func(i int) error {
			ctx, cancel := context.WithTimeout(ctx, 2*r.patience())
			defer cancel()
			return r.patiently(ctx, func() error {
				_, err := r.node.AgreeVector(ctx, cluster.VectorRequest{
					Name: fmt.Sprintf("name %d", i), Value: fmt.Appendf(nil, "%d of %d", i, r.Self), M: r.M, Gather: r.Round,
				})
				return err
			})
		})
	case order:
		err := r.each(r.Instances, r.AtOnce, func(i int) error {
			if err := r.node.Group(group).BroadcastAsync(fmt.Appendf(nil, "payload %d of %d", i, r.Self)); err != nil {
				return err
			}
			ctx, cancel := ctx, context.CancelFunc(func() {})
			if r.Traitor != "" { // to which nothing is promised
				ctx, cancel = context.WithTimeout(ctx, r.patience())
			}
			defer cancel()
			select {
			case <-r.mine:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if r.Traitor == "" {
			r.awaitOthers(ctx)
		}
		return err
	}
	return fmt.Errorf("there is no service %q", service)
}

// awaitOthers waits until this node has delivered all broadcasts of the correct nodes. It counts the missing ones as
// failures if the context ends first.
func (r *running) awaitOthers(ctx context.Context) {
	for i := r.M; i < len(r.missing); i++ { // the first are traitors
		for r.missing[i].Load() > 0 {
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
			if left := r.missing[i].Load(); i != r.Self && left > 0 { // each counts its own
				r.failed.Add(left)
			}
			break
		}
	}
}

// patience is how long to wait for an answer of a service in rounds.
func (r *running) patience() time.Duration { return 2*time.Second + 30*r.Round }

// patiently repeats a call while messages are too slow for the rounds, because that may change.
func (r *running) patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if too := new(cluster.RoundError); !errors.As(err, &too) {
			return err
		}
		select {
		case <-time.After(r.Round):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// share returns how many instances this node begins. The shares of the correct nodes add up to all instances, and
// traitors begin some more.
func (r *running) share() int {
	correct := len(r.Members) - r.M
	return (r.Instances + correct - 1 - r.Self%correct) / correct
}

// each calls do the given number of times, with atOnce calls in flight. A worker whose call times out makes no
// further calls.
func (r *running) each(times, atOnce int, do func(i int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < times; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					r.failed.Add(1)
					if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
						return
					}
				}
			}
		})
	}
	all.Wait()
	return nil
}

// prepare makes a cluster's certificates, and assigns each node its part and a port of this computer. It fails by
// must.
func prepare(dir string, n int, p part) (parts []part, ports []*net.TCPListener) {
	p.Certificates, p.Traces = filepath.Join(dir, "certs"), filepath.Join(dir, "traces")
	whole := cert.Whole{Cluster: "audit", Valid: 24 * time.Hour}
	for i := range n {
		whole.Nodes = append(whole.Nodes, fmt.Sprintf("node%d", i+1))
	}
	signers := must.Get(whole.Create(p.Certificates))
	for i, name := range whole.Nodes {
		l := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
		ports = append(ports, l)
		p.Members = append(p.Members, cluster.Member{Name: name, Address: l.Addr().String(), Signer: signers[i]})
	}
	for i := range n {
		one := p
		one.Self = i
		parts = append(parts, one)
	}
	return parts, ports
}

// child is a node in a process of its own. It reads its part from the standard input, followed by one line for each
// service in which it takes part. It answers each with a line, and ends when the input ends.
func child() (err error) {
	defer must.Return(&err)
	in := json.NewDecoder(os.Stdin)
	var p part
	must.Do(in.Decode(&p))
	file := os.NewFile(3, "listener")
	on := must.Get(net.FileListener(file))
	_ = file.Close()
	r := must.Get(p.join(context.Background(), on))
	fmt.Println("joined")
	for {
		var next struct {
			Service string
			Within  time.Duration
		}
		if err := in.Decode(&next); err != nil {
			return r.node.Close()
		}
		if next.Service == count {
			fmt.Println(count, r.deliveries.Load())
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), next.Within)
		err := r.do(ctx, next.Service)
		cancel()
		if err != nil {
			return err
		}
		fmt.Println(next.Service, r.failed.Swap(0))
	}
}

// traitors assigns behaviors to the first m nodes. A two-faced node shows its second face to the upper half of the
// nodes.
func traitors(m int, how []string) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for i := range m {
		out[parley.ID(i)] = how[i%len(how)]
	}
	return out
}
