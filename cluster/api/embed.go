package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/cert"
)

// Caller returns the client whose request a context belongs to, for interceptors and for other handlers behind
// [Server.ServeWith]. It returns false if there is none.
func Caller(ctx context.Context) (cert.Identity, bool) {
	if c := callOf(ctx); c != nil {
		return c.who, true
	}
	if own, _ := ctx.Value(connKey{}).(*conn); own != nil {
		return own.client()
	}
	return cert.Identity{}, false
}

// guest is the server as seen by foreign HTTP servers and interceptors.
type guest struct{ *Server }

// admit authenticates a request on a connection that the server has not accepted itself, by the TLS state alone.
// The context ends when the client is no longer trusted, or when the returned function is called.
func (s guest) admit(r *http.Request, c *call) (context.Context, context.CancelFunc, error) {
	if s.ctx.Err() != nil {
		return nil, nil, refuse(connect.CodeUnavailable, "closed", "the node is stopping: ask another one")
	}
	if r.TLS == nil || !r.TLS.HandshakeComplete || len(r.TLS.PeerCertificates) == 0 {
		s.counts.refused(string(cert.NoCertificate), "")
		return nil, nil, refuse(connect.CodeUnauthenticated, "no certificate", "a certificate of a client of cluster %s was "+
			"expected", s.c.Cluster.Trust.Cluster())
	}
	if err := s.tls().VerifyConnection(*r.TLS); err != nil { // which counts it
		return nil, nil, refuse(connect.CodeUnauthenticated, "not trusted", "%w", err)
	}
	who, err := cert.Parse(r.TLS.PeerCertificates[0])
	if err != nil {
		return nil, nil, refuse(connect.CodeUnauthenticated, "not trusted", "%w", err)
	}
	if s.clients.tired(who.Name) {
		return nil, nil, refuse(connect.CodeResourceExhausted, "busy",
			"client %s cancels too many requests: slow down", who.Name)
	}
	if err := errors.Join(c.on.SetReadDeadline(time.Time{}), c.on.SetWriteDeadline(time.Time{})); err != nil {
		return nil, nil, fmt.Errorf("the HTTP server does not let handlers set deadlines: %w", err)
	}
	c.who = who
	ctx, cancel := context.WithCancel(r.Context())
	stop := s.c.Cluster.Trust.Watch(*r.TLS, func(why error) {
		s.refused(why)
		cancel()
	})
	return ctx, func() { stop(); cancel() }, nil
}

// guard runs around the embedder's interceptors, which run around ours, and adds the outcome of the request to
// their errors. Until the node was asked, the request had no effect; after that, an error that is not the node's
// leaves the outcome unknown.
func (s guest) guard(ctx context.Context, spec connect.Spec, handle func(context.Context) error) (err error) {
	c, began := callOf(ctx), time.Now()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("interceptor panicked; the request fails", "method", spec.Procedure, "err", p, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("an interceptor panicked: %v", p)
		}
		if err == nil || ours(err) {
			return
		}
		f := &failure{connect.CodeOf(err), unknown, "interceptor", err}
		if told, ok := errors.AsType[*connect.Error](err); ok {
			f.err = errors.New(told.Message())
		}
		if !c.asked || onlyReads(spec.Procedure) {
			f.outcome = nothing
		}
		s.counts.error(f)
		err = f.wire(s.failures.node)
		if !c.asked {
			s.counts.request(spec, err, time.Since(began))
			c.due()
		}
	}()
	return handle(ctx)
}

// ours reports whether an error already has the outcome of the request.
func ours(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	return ok && slices.ContainsFunc(e.Details(), func(d *connect.ErrorDetail) bool {
		return d.Type() == "parley.v1.ErrorDetail"
	})
}
