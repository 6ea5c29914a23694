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

// Caller is the client whose request a context is of: of an interceptor, or of another handler behind
// [Server.ServeWith].
func Caller(ctx context.Context) (cert.Identity, bool) {
	if c := callOf(ctx); c != nil {
		return c.who, true
	}
	if own, _ := ctx.Value(connKey{}).(*conn); own != nil {
		return own.client()
	}
	return cert.Identity{}, false
}

// guest is the server for requests and interceptors that are not its own.
type guest struct{ *Server }

// admit makes a request on a connection that the server has not accepted itself a request of its client, or tells why
// not: all that is known of the client is the state of TLS. The context ends when the client is not trusted any
// more, and by the function that is returned.
func (s guest) admit(r *http.Request, c *call) (context.Context, context.CancelFunc, error) {
	if s.ctx.Err() != nil {
		return nil, nil, refuse(connect.CodeUnavailable, "closed", "the node ends")
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
		return nil, nil, refuse(connect.CodeResourceExhausted, "busy", "client %s takes back too many requests", who.Name)
	}
	if err := errors.Join(c.on.SetReadDeadline(time.Time{}), c.on.SetWriteDeadline(time.Time{})); err != nil {
		return nil, nil, fmt.Errorf("the server around the node lets no handler set deadlines: %w", err)
	}
	c.who = who
	ctx, cancel := context.WithCancel(r.Context())
	stop := s.c.Cluster.Trust.Watch(*r.TLS, func(why error) {
		s.refused(why)
		cancel()
	})
	return ctx, func() { stop(); cancel() }, nil
}

// guard is around the interceptors of who embeds the server, which are around ours, and has their errors say what
// became of the request. Until the node was asked nothing was done; after that, an error that is not the node's leaves
// it unknown.
func (s guest) guard(ctx context.Context, spec connect.Spec, handle func(context.Context) error) (err error) {
	c, began := callOf(ctx), time.Now()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("an interceptor broke", "method", spec.Procedure, "why", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("an interceptor broke: %v", p)
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

// ours tells whether an error says already what became of the request.
func ours(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	return ok && slices.ContainsFunc(e.Details(), func(d *connect.ErrorDetail) bool {
		return d.Type() == "parley.v1.ErrorDetail"
	})
}
