package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"connectrpc.com/connect"

	nodes "parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
	"parley/internal/must"
)

// client calls one node.
type client struct {
	table parleyv1.TableServiceClient
	group parleyv1.GroupServiceClient
	admin parleyv1.AdminServiceClient
	clock parleyv1.ClockServiceClient
}

// newClients makes a client for each node.
func newClients(dir string, w environment, n int) (out []*client, err error) {
	defer must.Return(&err)
	certs := filepath.Join(dir, "certs")
	trust, self := must.Get(cert.LoadTrust(certs, nil)), must.Get(cert.LoadClient(certs, clientName))
	for i := range n {
		_, api, _ := w.listen(i)
		h := &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return w.dial(ctx, i, network, address)
			},
			TLSClientConfig: trust.Dial(self, cert.Identity{Cluster: clusterName, Kind: cert.Node, Name: nodeName(i)}),
			MaxIdleConns:    64, MaxIdleConnsPerHost: 64, TLSHandshakeTimeout: time.Second,
			IdleConnTimeout: 10 * time.Second,
			// One connection for each call in flight, so that a paused node delays nothing else.
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		}}
		url := "https://" + api
		out = append(out, &client{
			table: parleyv1.NewTableServiceClient(h, url), group: parleyv1.NewGroupServiceClient(h, url),
			admin: parleyv1.NewAdminServiceClient(h, url), clock: parleyv1.NewClockServiceClient(h, url),
		})
	}
	return out, nil
}

// outcome is the outcome of a failed call.
type outcome int

const (
	nothing outcome = iota // no effect, ever
	unknown                // it may have or get an effect
	expired                // the session has expired; a retried command may have had an effect
)

// outcomeOf returns the outcome of a call from its error.
func outcomeOf(err error) outcome {
	switch {
	case nodes.Detail(err).GetReason() == "expired":
		return expired
	case nodes.Unknown(err):
		return unknown
	}
	return nothing
}

// open opens a session.
func (c *client) open(ctx context.Context) (uint64, error) {
	r, err := c.table.Open(ctx, &parleyv1.OpenRequest{Table: tableName})
	return r.GetSession(), err
}

// do executes a command of a session.
func (c *client) do(ctx context.Context, session, number uint64, command []byte) ([]byte, uint64, error) {
	r, err := c.table.Do(ctx, &parleyv1.DoRequest{
		Table: tableName, Call: &parleyv1.Call{Session: session, Number: number}, Command: command,
	})
	return r.GetAnswer(), r.GetPosition(), err
}

// put writes a value.
func (c *client) put(ctx context.Context, key string, value []byte) error {
	_, err := c.table.Put(ctx, &parleyv1.PutRequest{Table: tableName, Key: []byte(key), Value: value})
	return err
}

// query executes a command that only reads.
func (c *client) query(ctx context.Context, command []byte) ([]byte, uint64, error) {
	r, err := c.table.Query(ctx, &parleyv1.QueryRequest{Table: tableName, Command: command})
	return r.GetAnswer(), r.GetPosition(), err
}

// inspect returns the position and the hash of the node's replica of the table.
func (c *client) inspect(ctx context.Context) (position, hash uint64, err error) {
	r, err := c.table.Inspect(ctx, &parleyv1.InspectRequest{Table: tableName})
	return r.GetPosition(), r.GetHash(), err
}

// cast broadcasts in the group.
func (c *client) cast(ctx context.Context, payload []byte) error {
	_, err := c.group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: groupName, Payload: payload})
	return err
}

// errGap is the error of a subscription from a position that is not retained.
var errGap = errors.New("the position is not kept any more")

// hear receives deliveries from a position on, until an error or until each returns false.
func (c *client) hear(ctx context.Context, from uint64, each func(*parleyv1.Delivery) (more bool)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := c.group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: groupName, From: from})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	silent := time.AfterFunc(quiet, stop)
	defer silent.Stop()
	for s.Receive() {
		silent.Reset(quiet)
		if d := s.Msg().GetDelivery(); d != nil && !each(d) {
			return nil
		}
	}
	if connect.CodeOf(s.Err()) == connect.CodeOutOfRange {
		return errGap
	}
	return fmt.Errorf("the subscription ended: %w", s.Err())
}

// quiet is how long a subscription may be silent before it is restarted.
const quiet = 12 * time.Second
