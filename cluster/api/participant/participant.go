// Package participant calls the service that carries out a node's part of transactions. You write this service
// (ParticipantService in the file parley/v1/participant.proto). It is another process on the same computer. Package
// cluster makes the calls.
package participant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// allowed describes valid addresses, for errors.
const allowed = "allowed are http://127.0.0.1:PORT, or another address of this machine's own (::1, localhost), " +
	"and unix:/PATH"

// place is where a service listens.
type place struct{ network, address string }

// CheckAddress returns an error if the address of a service is invalid. The service is not authenticated, so the
// address must be reachable only from this computer.
func CheckAddress(address string) error {
	_, err := parse(address)
	return err
}

func parse(text string) (place, error) {
	wrong := func(why string) (place, error) { return place{}, fmt.Errorf("%q: %s: %s", text, why, allowed) }
	if path, unix := strings.CutPrefix(text, "unix:"); unix {
		if !strings.HasPrefix(path, "/") || len(path) > 100 || strings.ContainsRune(path, 0) {
			return wrong("the path of a socket has 2 to 100 bytes, and begins with /")
		}
		return place{"unix", path}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" || u.Opaque != "" || u.User != nil || u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return wrong("this is no address of a participant")
	case !loopback(u.Hostname()):
		return wrong("others can reach that")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
		return wrong("a port from 1 to 65535 is missing")
	}
	return place{"tcp", u.Host}, nil
}

// loopback reports whether a host is this computer and cannot be reached from another one.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// The times.
const (
	attempt  = 10 * time.Second      // for an answer to Commit and Abort
	patience = 20 * time.Millisecond // before a retry; doubles
	longest  = time.Second
)

// mostUnder is how many calls of Prepare may be in flight, including those whose votes are no longer waited for.
const mostUnder = 1024

// Client calls a service, and is a [cluster.RemoteParticipant]. It is safe for concurrent use.
type Client struct {
	node    string
	service parleyv1.ParticipantServiceClient
	dial    func(context.Context) (net.Conn, error)
	idle    func()

	mu     sync.Mutex
	log    *slog.Logger
	logged time.Time // when it was last logged that the service does not answer
	life   uint64
	ctx    context.Context // of this incarnation
	end    context.CancelFunc
	under  map[string]*preparing // by transaction
}

// preparing is a call of Prepare in flight, whether or not its vote is still waited for. vote and err are read
// after over is closed.
type preparing struct {
	over chan struct{}
	vote bool
	err  error
}

var _ cluster.RemoteParticipant = (*Client)(nil)

// New returns a client of the service at an address, for a node. It connects when it is used, and reconnects
// after a failure.
func New(node, address string) (*Client, error) {
	at, err := parse(address)
	if err != nil {
		return nil, err
	}
	return newClient(node, at, (&net.Dialer{Timeout: 5 * time.Second, Control: control}).DialContext), nil
}

// newClient is New with a given dialer.
func newClient(node string, at place, reach func(context.Context, string, string) (net.Conn, error)) *Client {
	c := &Client{node: node, under: make(map[string]*preparing)}
	c.dial = func(ctx context.Context) (net.Conn, error) { return reach(ctx, at.network, at.address) }
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			// net/http continues to connect when nobody waits for it any more: end that with this incarnation.
			life, _ := c.now()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(life, cancel)()
			return c.dial(ctx)
		},
		MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	c.idle = t.CloseIdleConnections
	host := at.address
	if at.network == "unix" {
		host = "localhost"
	}
	c.service = parleyv1.NewParticipantServiceClient(timed{&http.Client{Transport: t}}, "http://"+host,
		connect.WithProtoJSON(), connect.WithReadMaxBytes(64<<10))
	c.Begin(slog.New(slog.DiscardHandler))
	return c
}

// Reach returns an error if nobody listens at the address.
func (c *Client) Reach(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// control refuses connections to another computer, whatever a name resolves to.
func control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if strings.HasPrefix(network, "tcp") && (err != nil || !to.Addr().IsLoopback()) {
		return fmt.Errorf("%s is not an address of this computer", address)
	}
	return nil
}

// timed sends a service the time limit of its answer.
type timed struct{ *http.Client }

type waitKey struct{}

// Do sends a request. All requests are safe to repeat, so net/http may send one again when the service has
// meanwhile closed the connection, as a restarted one does: a nil key allows that, and is not sent.
func (t timed) Do(r *http.Request) (*http.Response, error) {
	r.Header["Idempotency-Key"] = nil
	if wait, ok := r.Context().Value(waitKey{}).(time.Duration); ok {
		r.Header.Set("Connect-Timeout-Ms", strconv.FormatInt(max(1, wait.Milliseconds()), 10))
	}
	return t.Client.Do(r) //nolint:gosec // the configuration names the address, and no request does
}

// Begin begins an incarnation of the node. The number of the incarnation is the time at which it begins.
func (c *Client) Begin(log *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		c.end()
	}
	c.log, c.life = log, max(c.life+1, uint64(time.Now().UnixMicro()))
	c.ctx, c.end = context.WithCancel(context.Background())
}

// End makes all calls return.
func (c *Client) End() {
	c.mu.Lock()
	c.end()
	c.mu.Unlock()
	c.idle()
}

// now returns the context and number of the current incarnation.
func (c *Client) now() (context.Context, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx, c.life
}

var (
	errBusy = errors.New("the participant has not yet answered 1024 calls")
	errLate = errors.New("the participant has not answered in time")
)

// Prepare requests a vote. When ctx ends, the vote is no, but the call to the service continues. The next call for
// the transaction waits until this call has ended. So an Abort never overtakes its Prepare.
func (c *Client) Prepare(ctx context.Context, tx string, body []byte) (vote bool, err error) {
	under := &preparing{over: make(chan struct{})}
	c.mu.Lock()
	if len(c.under) == mostUnder {
		c.mu.Unlock()
		return false, errBusy
	}
	c.under[tx] = under
	life, r := c.ctx, &parleyv1.PreparePartRequest{Node: c.node, Transaction: tx, Body: body, Life: c.life}
	c.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		life = context.WithValue(life, waitKey{}, time.Until(deadline))
	}
	go func() {
		defer close(under.over)
		under.vote, under.err = c.prepare(life, r)
		c.mu.Lock()
		if c.under[tx] == under { // not a later call
			delete(c.under, tx)
		}
		c.mu.Unlock()
	}()
	select {
	case <-under.over:
		return under.vote, under.err
	case <-ctx.Done():
		return false, errLate
	}
}

// prepare makes one call.
func (c *Client) prepare(ctx context.Context, r *parleyv1.PreparePartRequest) (bool, error) {
	answer, err := c.service.Prepare(ctx, r)
	switch {
	case err != nil:
		return false, fmt.Errorf("the participant: %w", err)
	case !answer.GetVote() && answer.GetWhy() != "":
		return false, errors.New(answer.GetWhy())
	}
	return answer.GetVote(), nil
}

// Again prepares a transaction that was prepared before a restart of the node.
func (c *Client) Again(tx string, body []byte) error {
	life, number := c.now()
	r := &parleyv1.PreparePartRequest{Node: c.node, Transaction: tx, Body: body, Again: true, Life: number}
	var answer *parleyv1.PreparePartResponse
	err := c.until(life, "Prepare", tx, func(ctx context.Context) (err error) {
		answer, err = c.service.Prepare(ctx, r)
		return err
	})
	if err == nil && !answer.GetVote() {
		err = fmt.Errorf("the participant says no: %s", answer.GetWhy())
	}
	return err
}

// Commit commits a part. It returns when the part is committed, or when the node ends.
func (c *Client) Commit(tx string) {
	life, _ := c.now()
	_ = c.until(life, "Commit", tx, func(ctx context.Context) error {
		_, err := c.service.Commit(ctx, &parleyv1.CommitPartRequest{Node: c.node, Transaction: tx})
		return err
	}) // it fails when the node ends
}

// Abort aborts a part, in the same way.
func (c *Client) Abort(tx string) {
	life, _ := c.now()
	_ = c.until(life, "Abort", tx, func(ctx context.Context) error {
		_, err := c.service.Abort(ctx, &parleyv1.AbortPartRequest{Node: c.node, Transaction: tx})
		return err
	})
}

// until retries a call until there is an answer, once Prepare is over.
func (c *Client) until(life context.Context, what, tx string, ask func(context.Context) error) error {
	c.mu.Lock()
	under := c.under[tx]
	c.mu.Unlock()
	if under != nil {
		<-under.over
	}
	for wait := patience; ; wait = min(2*wait, longest) {
		ctx, cancel := context.WithTimeout(life, attempt)
		err := ask(ctx)
		cancel()
		if err == nil || life.Err() != nil {
			return err
		}
		c.unanswered(what, tx, err)
		select {
		case <-time.After(wait):
		case <-life.Done():
			return err
		}
	}
}

// unanswered logs at most once a minute that the service does not answer.
func (c *Client) unanswered(what, tx string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.logged) >= time.Minute {
		c.logged = time.Now()
		c.log.Warn("participant does not answer; the call is repeated", "call", what, "tx", tx, "err", err)
	}
}
