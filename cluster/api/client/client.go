// Package client calls the nodes of a cluster: it connects with a client's certificate, and interprets errors.
//
// A [Quorum] calls several nodes, and accepts only what m+1 of them answer alike, so that m faulty nodes cannot deceive
// the caller. All others rely on the node that answers.
//
// A [Client] calls one node. [Nodes] calls the next node if a node is down, and never repeats a request that may
// have taken effect. A [Subscription] continues at the next node without a gap. A [Session] numbers commands, so
// that a table applies each command at most once, however often the session retries.
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

// Config configures a client.
type Config struct {
	Self  *cert.Self  // the client, see cert.LoadClient
	Trust *cert.Trust // the trusted authorities, see cert.LoadTrust
	// Address is where a node serves its API, such as "127.0.0.1:7101".
	Address string
	// Node is the name of the node that must be at this address. By default, it may be any node of the cluster.
	Node string
	// Dial is how long connecting may take, by default 2 s. The limit is necessary because a paused process still
	// accepts connections, but never answers.
	Dial time.Duration
	// DialContext, if set, replaces the system's dialer. For example, it can be the method of a host of
	// cluster/link/memory.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Options are passed to the connect library; connect.WithGRPC() is one.
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
	node      string // the name that the node must have, or ""
	transport *http.Transport
}

// mostBytes is the limit of an answer, in bytes.
const mostBytes = 32 << 20

// attempt is the default time limit of an attempt at one node.
const attempt = 2 * time.Second

// New returns a client of a node. The client connects at its first call, and reconnects after a failure.
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
		address: c.Address, node: c.Node, transport: t,
	}
}

// dialing is the type of net.Dialer.DialContext.
type dialing = func(ctx context.Context, network, address string) (net.Conn, error)

// dial returns a dialer with a time limit. All of its errors say that no request was sent.
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
			err = fmt.Errorf("no connection within %v", within) // the caller's time is not over
		}
		return nil, &net.OpError{Op: "dial", Net: network, Addr: named(address), Err: err}
	}
}

// shake connects, and performs the TLS handshake.
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

// named is an address as configured.
type named string

func (named) Network() string  { return "tcp" }
func (n named) String() string { return string(n) }

// marked is an error with additional knowledge: errors.Is finds the mark.
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

// Is reports whether target is the mark.
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

// Load returns a client of a node. It reads the certificate of the client with this name from a folder, in which
// "parley cert client" created it.
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

// Address returns the address of the node.
func (c *Client) Address() string { return c.address }

// Close closes idle connections. The error is always nil.
func (c *Client) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// Detail returns the detail that a node attached to an error. It returns nil if the error is not from a node.
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

// Unknown reports whether the outcome of a failed request is unknown: the request may have taken effect, or may still
// take effect. If Unknown returns false, the request has no effect, now or later, or it only reads. If the error has
// no detail from a node, the outcome is unknown, with two exceptions: no node could be called, or the error has a
// code that only a node returns.
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

// closedFirst is in the error of a connection that the node closed before any request, for example because it
// does not accept our certificate. It is an error of net/http, which does not export it.
const closedFirst = "http2: client conn could not be established"

// refused reports whether the node refused our certificate. The error may come after we have begun to send, but
// the node has read nothing.
func refused(op *net.OpError) bool {
	return op.Op == "remote error" && strings.Contains(op.Error(), "certificate")
}

// Elsewhere reports whether another node may be able to serve the request. This is so if the called node could not be
// reached, is stopping, is not a member now, or disconnected during its answer. If the outcome is unknown, retry only
// requests that are safe to repeat.
func Elsewhere(err error) bool {
	if all, ok := errors.AsType[*NodeErrors](err); ok {
		return Elsewhere(all.Nodes[len(all.Nodes)-1])
	}
	code := connect.CodeOf(err)
	// No node of ours returns these; connect returns "canceled" if a connection breaks during a write.
	broken := (code == connect.CodeInternal || code == connect.CodeCanceled) && Detail(err) == nil
	return err != nil && (code == connect.CodeUnavailable || code == connect.CodeUnknown || broken) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Attempt returns a context for a call of one node, when the caller tries several nodes in turn. The call may take 2
// s, or less if the time would otherwise not suffice to try all nodes. Use Attempt for requests that are safe to
// repeat.
func Attempt(ctx context.Context, nodes int) (context.Context, context.CancelFunc) {
	most := attempt
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/time.Duration(max(nodes, 1)))
	}
	return context.WithTimeout(ctx, most)
}
