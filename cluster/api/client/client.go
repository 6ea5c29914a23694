// Package client calls the nodes of a cluster: it dials them with a client's certificate,
// and tells what an error means.
//
// A [Client] calls one node. [Nodes] calls the next one where a node is down, and does nothing twice;
// a [Subscription] goes on there without a gap; a [Session] has each command of a table carried out
// once, however often it has to ask.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// Config says who calls whom.
type Config struct {
	Self  *cert.Self  // the client, see cert.LoadClient
	Trust *cert.Trust // whom it trusts, see cert.LoadTrust
	// Address is where a node serves its API, as in "127.0.0.1:7101".
	Address string
	// Node is the node that is expected there; by default any of the cluster.
	Node string
	// Dial is how long connecting may take, by default 2 s: a process that stands still takes
	// connections and says nothing.
	Dial time.Duration
	// DialContext, if it is given, connects in place of the system's dialer: as that of a host
	// of cluster/link/memory.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Options are handed to the connect library; connect.WithGRPC() is one.
	Options []connect.ClientOption
}

// Client calls one node. It is safe for concurrent use.
type Client struct {
	Agree  parleyv1.AgreeServiceClient
	Group  parleyv1.GroupServiceClient
	Table  parleyv1.TableServiceClient
	Clock  parleyv1.ClockServiceClient
	Commit parleyv1.CommitServiceClient
	Admin  parleyv1.AdminServiceClient

	address   string
	transport *http.Transport
}

// mostBytes is how long an answer may be.
const mostBytes = 32 << 20

// attempt is how long one node is tried, if nothing else is said.
const attempt = 2 * time.Second

// New returns a client of a node. It connects when it is used, and again after a failure.
func New(c Config) *Client {
	want := cert.Identity{Cluster: c.Trust.Cluster(), Kind: cert.Node, Name: c.Node}
	if c.Node == "" {
		want.Name = cert.Any
	}
	config := c.Trust.Dial(c.Self, want)
	config.NextProtos = []string{"h2"}
	config.ServerName, _, _ = net.SplitHostPort(c.Address)
	t := &http.Transport{
		DialTLSContext: dial(c, config),
		HTTP2:          &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	h, url := &http.Client{Transport: t}, "https://"+c.Address
	o := append([]connect.ClientOption{
		connect.WithReadMaxBytes(mostBytes), connect.WithInterceptors(connect.UnaryInterceptorFunc(markReads)),
	}, c.Options...)
	return &Client{
		Agree:   parleyv1.NewAgreeServiceClient(h, url, o...),
		Group:   parleyv1.NewGroupServiceClient(h, url, o...),
		Table:   parleyv1.NewTableServiceClient(h, url, o...),
		Clock:   parleyv1.NewClockServiceClient(h, url, o...),
		Commit:  parleyv1.NewCommitServiceClient(h, url, o...),
		Admin:   parleyv1.NewAdminServiceClient(h, url, o...),
		address: c.Address, transport: t,
	}
}

// dialing is DialContext of a net.Dialer.
type dialing = func(ctx context.Context, network, address string) (net.Conn, error)

// dial connects in so much time. Whatever goes wrong, nobody has been asked for anything.
func dial(c Config, config *tls.Config) dialing {
	within, connect := cmp.Or(c.Dial, attempt), c.DialContext
	if connect == nil {
		connect = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		soon, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		c, err := shake(soon, connect, network, address, config)
		if err == nil {
			return c, nil
		}
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && !op.Timeout() {
			return nil, err
		}
		if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) {
			err = fmt.Errorf("no connection within %v", within) // the caller's time is not up
		}
		return nil, &net.OpError{Op: "dial", Net: network, Addr: named(address), Err: err}
	}
}

// shake connects, and shakes hands.
func shake(ctx context.Context, connect dialing, network, address string, config *tls.Config) (net.Conn, error) {
	raw, err := connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return c, nil
}

// named is an address as it was given.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// marked is an error of which something more is known: errors.Is finds the mark.
type marked struct {
	error
	mark error
}

// The marks, beside ErrCutOff.
var (
	errRead    = errors.New("the call changes nothing")
	errUnasked = errors.New("no node was asked")
	errLost    = errors.New("the outcome of an earlier try is unknown")
)

// Unwrap returns the error without the mark.
func (m *marked) Unwrap() error { return m.error }

// Is tells whether target is the mark.
func (m *marked) Is(target error) bool { return target == m.mark }

// markReads marks the errors of calls that change nothing.
func markReads(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		answer, err := next(ctx, r)
		if err != nil && r.Spec().IdempotencyLevel == connect.IdempotencyNoSideEffects {
			return nil, &marked{err, errRead}
		}
		return answer, err
	}
}

// Load returns a client of a node, with the certificate of a name in a folder, as
// "parley cert client" makes it.
func Load(dir, name, address string, options ...connect.ClientOption) (*Client, error) {
	self, err := cert.LoadClient(dir, name)
	if err != nil {
		return nil, err
	}
	trust, err := cert.LoadTrust(dir, nil)
	if err != nil {
		return nil, err
	}
	return New(Config{Self: self, Trust: trust, Address: address, Options: options}), nil
}

// Address is where the node is.
func (c *Client) Address() string { return c.address }

// Close ends the connections that nothing uses. The error is always nil.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// Detail is what a node says of an error, nil if it is not of a node.
func Detail(err error) *parleyv1.ErrorDetail {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return nil
	}
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if detail, ok := m.(*parleyv1.ErrorDetail); ok {
				return detail
			}
		}
	}
	return nil
}

// Unknown tells whether what was asked may have been done, or may still be, in spite of the
// error. If not, nothing of it was done, nor will be, or there was nothing to do but to
// read. What a node did not say itself is unknown, unless only a node says so, or nobody
// could be asked.
func Unknown(err error) bool {
	if err == nil {
		return false
	}
	if all, ok := errors.AsType[*NodeErrors](err); ok {
		return slices.ContainsFunc(all.Nodes, func(one *NodeError) bool { return Unknown(one) })
	}
	switch {
	case errors.Is(err, errUnasked):
		return false
	case errors.Is(err, errLost):
		return true
	}
	if d := Detail(err); d != nil {
		return d.GetOutcome() != parleyv1.Outcome_OUTCOME_NOTHING_DONE
	}
	if errors.Is(err, errRead) {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || refused(op)) {
		return false
	}
	if !connect.IsWireError(err) && strings.Contains(err.Error(), closedFirst) {
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodePermissionDenied, connect.CodeUnauthenticated,
		connect.CodeUnimplemented:
		return false
	}
	return true
}

// closedFirst is in the error of a connection that the node closed before anything was asked on
// it, as when it does not accept our certificate. It is one of net/http, which exports none.
const closedFirst = "http2: client conn could not be established"

// refused tells whether the node did not accept our certificate. It says so when we have
// begun to speak, and then has not listened.
func refused(op *net.OpError) bool {
	return op.Op == "remote error" && strings.Contains(op.Error(), "certificate")
}

// Elsewhere tells whether another node may do what this one could not: it could not be
// reached, ends, is no member now, or was gone in the middle of its answer. If the outcome
// is unknown, only what is safe to ask twice may be asked there.
func Elsewhere(err error) bool {
	if all, ok := errors.AsType[*NodeErrors](err); ok {
		return Elsewhere(all.Nodes[len(all.Nodes)-1])
	}
	code := connect.CodeOf(err)
	// Which no node of ours says; connect calls it canceled if a connection breaks as we write.
	broken := (code == connect.CodeInternal || code == connect.CodeCanceled) && Detail(err) == nil
	return err != nil && (code == connect.CodeUnavailable || code == connect.CodeUnknown || broken) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Attempt is the part of a context's time that one of some nodes has that are asked one
// after the other: 2 s, or less if otherwise not all of them can be asked. It is for what is
// safe to ask twice.
func Attempt(ctx context.Context, nodes int) (context.Context, context.CancelFunc) {
	most := attempt
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/time.Duration(max(nodes, 1)))
	}
	return context.WithTimeout(ctx, most)
}
