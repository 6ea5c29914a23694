package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
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

// guest is a request on a connection that the server has not accepted itself: all that is known of its client is
// the state of TLS.
type guest struct{ s *Server }

// admit makes the request that of its client, or tells why not. The context ends when the client is not trusted any
// more, and by the function that is returned.
func (g guest) admit(r *http.Request, c *call) (context.Context, context.CancelFunc, error) {
	if g.s.ctx.Err() != nil {
		return nil, nil, refuse(connect.CodeUnavailable, "closed", "the node ends")
	}
	if r.TLS == nil || !r.TLS.HandshakeComplete || len(r.TLS.PeerCertificates) == 0 {
		g.s.counts.refused(string(cert.NoCertificate), "")
		return nil, nil, refuse(connect.CodeUnauthenticated, "no certificate", "a certificate of a client of cluster %s was "+
			"expected", g.s.c.Cluster.Trust.Cluster())
	}
	if err := g.s.tls().VerifyConnection(*r.TLS); err != nil { // which counts it
		return nil, nil, refuse(connect.CodeUnauthenticated, "not trusted", "%w", err)
	}
	who, err := cert.Parse(r.TLS.PeerCertificates[0])
	if err != nil {
		return nil, nil, refuse(connect.CodeUnauthenticated, "not trusted", "%w", err)
	}
	if g.s.clients.tired(who.Name) {
		return nil, nil, refuse(connect.CodeResourceExhausted, "busy", "client %s takes back too many requests", who.Name)
	}
	if err := errors.Join(c.on.SetReadDeadline(time.Time{}), c.on.SetWriteDeadline(time.Time{})); err != nil {
		return nil, nil, fmt.Errorf("the server around the node lets no handler set deadlines: %w", err)
	}
	c.who = who
	ctx, cancel := context.WithCancel(r.Context())
	stop := g.s.c.Cluster.Trust.Watch(*r.TLS, func(why error) {
		g.s.refused(why)
		cancel()
	})
	return ctx, func() { stop(); cancel() }, nil
}

// refuse answers a request that is not admitted.
func (g guest) refuse(w http.ResponseWriter, r *http.Request, err error) {
	_ = connect.NewErrorWriter().Write(w, r, g.s.failures.told(err, true)) // who has gone does not read it
}

// guard is around the interceptors of who embeds the server, which are around ours: it has their errors say what
// became of the request.
type guard struct{ s *Server }

// WrapUnary is around those that answer once.
func (g guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (answer connect.AnyResponse, err error) {
		err = g.around(ctx, r.Spec(), func() error {
			answer, err = next(ctx, r)
			return err
		})
		return answer, err
	}
}

// WrapStreamingHandler is around those that stream.
func (g guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		return g.around(ctx, c.Spec(), func() error { return next(ctx, c) })
	}
}

// WrapStreamingClient is for clients.
func (guard) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// around runs the interceptors. Until the node was asked nothing was done; after that, an error that is none of the
// node leaves it unknown.
func (g guard) around(ctx context.Context, spec connect.Spec, handle func() error) (err error) {
	c, began := callOf(ctx), time.Now()
	defer func() {
		if p := recover(); p != nil {
			g.s.log.Error("an interceptor broke", "method", spec.Procedure, "why", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("an interceptor broke: %v", p)
		}
		if err == nil || g.ours(err) {
			return
		}
		f := &failure{connect.CodeOf(err), unknown, "interceptor", err}
		if told, ok := errors.AsType[*connect.Error](err); ok {
			f.err = errors.New(told.Message())
		}
		if !c.asked || onlyReads(spec.Procedure) {
			f.outcome = nothing
		}
		g.s.counts.error(f)
		err = f.wire(g.s.failures.node)
		if !c.asked {
			g.s.counts.request(spec, err, time.Since(began))
			c.due()
		}
	}()
	return handle()
}

// ours tells whether an error says already what became of the request.
func (guard) ours(err error) bool {
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return false
	}
	for _, d := range e.Details() {
		if d.Type() == "parley.v1.ErrorDetail" {
			return true
		}
	}
	return false
}
