package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/cert"
)

// call is one request.
type call struct {
	s      *Server
	who    cert.Identity
	on     *http.ResponseController
	begun  bool
	stream bool
	asked  bool // the node was asked
}

type callKey struct{}

// callOf returns the request to which a context belongs.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// outer authenticates each request, sets its deadline, and releases its limits at the end.
func (s *Server) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, on: http.NewResponseController(w)}
		own, _ := r.Context().Value(connKey{}).(*conn)
		ctx, end := r.Context(), context.CancelFunc(func() {})
		if own == nil {
			var err error
			if ctx, end, err = (guest{s}).admit(r, c); err != nil {
				_ = connect.NewErrorWriter().Write(w, r, s.failures.told(err, true)) // a disconnected client does not read it
				return
			}
		} else if who, known := own.client(); known {
			c.who = who
		} else {
			panic(http.ErrAbortHandler) // no longer trusted
		}
		defer end()
		defer func() {
			if c.begun {
				s.clients.end(c.who.Name, c.stream)
			}
			if r.Context().Err() != nil && s.clients.took(c.who.Name) {
				if s.counts.refused("resets", c.who.Name) {
					s.log.Warn("client cancels too many requests; its connection is closed", "client", c.who.Name)
				}
				if own != nil {
					_ = own.Close()
				}
			}
		}()
		_ = c.on.SetReadDeadline(time.Now().Add(s.c.Limits.Read)) // never fails for HTTP
		r.Body = http.MaxBytesReader(w, r.Body, int64(s.c.Limits.Body)+1<<10)
		if r.ContentLength > int64(s.c.Limits.Body)+1<<10 {
			s.tooLong(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callKey{}, c)))
	})
}

// tooLong refuses a request by its declared length. The library would refuse it, too, but without the detail that
// it had no effect.
func (s *Server) tooLong(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // otherwise the answer may be lost with the connection
	err := refuse(connect.CodeResourceExhausted, "too large", "a request of %d bytes: at most %d are allowed",
		r.ContentLength, s.c.Limits.Body)
	_ = connect.NewErrorWriter().Write(w, r, s.failures.told(err, true)) // a disconnected client does not read it
}

// gate checks the header of a request: whether the client has the right, and whether there is room. The body has
// not been read yet.
func (s *Server) gate(ctx context.Context, spec connect.Spec, _ connect.Peer, _ http.Header) (context.Context, error) {
	c := callOf(ctx)
	if err := c.may(rights[spec.Procedure], spec.Procedure); err != nil {
		return nil, s.failures.told(err, true)
	}
	c.stream = spec.StreamType != connect.StreamTypeUnary
	if err := s.clients.begin(c.who.Name, c.stream); err != nil {
		return nil, s.failures.told(err, true)
	}
	c.begun = true
	return nil, nil
}

// may returns an error if the client lacks a right.
func (c *call) may(need cert.Rights, what string) error {
	if need == 0 || !c.who.Rights.Has(need) {
		return refuse(connect.CodePermissionDenied, "no right", "client %s has rights %s: %s needs %s",
			c.who.Name, c.who.Rights, what, need)
	}
	return nil
}

// due sets the deadline for the client to read the next message.
func (c *call) due() {
	_ = c.on.SetWriteDeadline(time.Now().Add(c.s.c.Limits.Write)) // for HTTP/2; see conn.Write
}

// send sends one of several messages, with a deadline.
func (c *call) send(send func() error) error {
	c.due()
	err := send()
	_ = c.on.SetWriteDeadline(time.Time{}) // otherwise an idle stream would end at the deadline
	return err
}

// interceptor runs handle around every method, unary or streaming.
type interceptor func(ctx context.Context, spec connect.Spec, handle func(context.Context) error) error

// WrapUnary wraps unary methods.
func (i interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (answer connect.AnyResponse, err error) {
		err = i(ctx, r.Spec(), func(ctx context.Context) error {
			answer, err = next(ctx, r)
			return err
		})
		return answer, err
	}
}

// WrapStreamingHandler wraps streaming methods.
func (i interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		return i(ctx, c.Spec(), func(ctx context.Context) error { return next(ctx, c) })
	}
}

// WrapStreamingClient does nothing: it is for clients.
func (interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// untilClosed runs the handler of a stream, which ends when the server is closed.
func (s *Server) untilClosed(ctx context.Context, handle func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := handle(ctx)
	if err != nil && s.ctx.Err() != nil {
		err = refuse(connect.CodeUnavailable, "closed", "the node ends")
	}
	return err
}

// around runs a handler. The request has been read, so the read deadline is lifted: the handler may run as long
// as the client waits.
func (s *Server) around(ctx context.Context, spec connect.Spec, handle func(context.Context) error) (err error) {
	c, reads := callOf(ctx), onlyReads(spec.Procedure)
	c.asked = true
	_ = c.on.SetReadDeadline(time.Time{})
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("request panicked; it fails as internal", "method", spec.Procedure, "err", p, "stack",
				string(debug.Stack()))
			err = fmt.Errorf("the request broke: %v", p)
		}
		err = s.failures.told(err, reads)
		s.counts.request(spec, err, time.Since(began))
		c.due()
	}()
	if c.stream {
		return s.untilClosed(ctx, handle)
	}
	return handle(ctx)
}
