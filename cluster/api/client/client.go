// Package client calls the nodes of a cluster: it dials them with a client's certificate,
// and tells what an error means.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// Config says who calls whom.
type Config struct {
	Self  *cert.Self  // the client, see cert.LoadClient
	Trust *cert.Trust // whom it trusts, see cert.LoadTrust
	// Address is that of a node's API, as in "127.0.0.1:7101".
	Address string
	// Node is the node that is expected there; by default any of the cluster.
	Node string
	// Options are those of the library; connect.WithGRPC() is one.
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

// New returns a client of a node. It connects when it is used, and again after a failure.
func New(c Config) *Client {
	want := cert.Identity{Cluster: c.Trust.Cluster(), Kind: cert.Node, Name: c.Node}
	if c.Node == "" {
		want.Name = cert.Any
	}
	config := c.Trust.Dial(c.Self, want)
	config.NextProtos = []string{"h2"}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	t := &http.Transport{
		DialTLSContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(true)
	h, url := &http.Client{Transport: t}, "https://"+c.Address
	o := append([]connect.ClientOption{connect.WithReadMaxBytes(mostBytes)}, c.Options...)
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

// Close ends the connections that nothing uses.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

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
// error. If not, nothing of it was done, nor will be. What a node did not say itself is
// unknown, unless only a node says so, or nobody could be asked.
func Unknown(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := errors.AsType[*lost](err); ok {
		return true
	}
	if d := Detail(err); d != nil {
		return d.GetOutcome() != parleyv1.Outcome_OUTCOME_NOTHING_DONE
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodePermissionDenied, connect.CodeUnauthenticated,
		connect.CodeUnimplemented:
		return false
	}
	return true
}

// Elsewhere tells whether another node may do what this one could not: it could not be
// reached, ends, or is no member now. If the outcome is unknown, only what is safe to ask
// twice may be asked there.
func Elsewhere(err error) bool {
	code := connect.CodeOf(err)
	return err != nil && (code == connect.CodeUnavailable || code == connect.CodeUnknown) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
