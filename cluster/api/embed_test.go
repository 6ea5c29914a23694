package api_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// another creates another API server for the first node. It is not served yet.
func (s *served) another(t *testing.T, limits api.Limits, around ...connect.Interceptor) *api.Server {
	t.Helper()
	server := api.New(api.Config{Node: s.nodes[0], Cluster: s.configs[0], Limits: limits, Interceptors: around})
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	return server
}

// embed serves a handler with a server of its own, which requests certificates without verifying them, or uses no
// TLS.
func (s *served) embed(t *testing.T, port uint16, secure bool, h http.Handler) (address string) {
	t.Helper()
	l := s.listen(t, 0, port)
	own := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	if secure {
		issued, err := s.authority.IssueNode("node1", []string{"localhost", "127.0.0.1"}, time.Hour/2)
		must(t, err)
		own.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{issued.TLS}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13,
		}
		go func() { _ = own.ServeTLS(l, "", "") }()
	} else {
		go func() { _ = own.Serve(l) }()
	}
	t.Cleanup(func() { _ = own.Close() })
	return l.Addr().String()
}

// caller returns a client of an address.
func (s *served) caller(t *testing.T, name, address string, r cert.Rights) *client.Client {
	t.Helper()
	return s.connect(t, "clients", client.Config{Self: s.certificate(t, name, r).Self(), Address: address})
}

// hello answers with the caller's name.
func hello(w http.ResponseWriter, r *http.Request) {
	who, known := api.Caller(r.Context())
	_, _ = fmt.Fprint(w, who.Name, known)
}

// In a foreign server, requests without a certificate of a client of the cluster are refused, whatever that
// server requests, and rights and limits apply.
func TestHandlerInAnotherServer(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		server := s.another(t, api.Limits{Streams: 1, Body: 1 << 10})
		mux := http.NewServeMux()
		mux.Handle("/", server.Handler())
		mux.HandleFunc("/hello", hello)
		address := s.embed(t, 7200, true, mux)
		other, err := cert.NewAuthority("test", time.Hour, nil)
		must(t, err)
		stranger, err := other.IssueClient("c", all, time.Minute)
		must(t, err)
		node, err := s.authority.IssueNode("node2", nil, time.Minute)
		must(t, err)
		for name, c := range map[string]*tls.Certificate{"none": nil, "another authority": &stranger.TLS, "a node": &node.TLS} {
			for _, h2 := range []bool{false, true} {
				status, text, err := post(t.Context(), s.raw(t, c, h2), "https://"+address+putPath, strings.NewReader(`{"table":"table"}`))
				if err != nil || status != http.StatusUnauthorized || !strings.Contains(text, "OUTCOME_NOTHING_DONE") {
					t.Errorf("%s: %d %s %v", name, status, text, err)
				}
			}
		}
		if status, text, err := post(t.Context(), s.raw(t, nil, true), "https://"+address+"/hello", nil); err != nil || text != "false" {
			t.Error(status, text, err)
		}
		plain := s.embed(t, 7201, false, mux)
		if status, text, err := post(t.Context(), s.raw(t, nil, false), "http://"+plain+putPath, strings.NewReader("{}")); err != nil ||
			status != http.StatusUnauthorized {
			t.Error(status, text, err)
		}
		c, reader := s.caller(t, "c", address, all), s.caller(t, "r", address, cert.Read)
		put := &parleyv1.PutRequest{Table: "table", Key: []byte("k"), Value: []byte("v")}
		if _, err := c.Table.Put(t.Context(), put); err != nil {
			t.Error(err)
		}
		if r, err := reader.Table.Get(t.Context(), &parleyv1.GetRequest{Table: "table", Key: []byte("k")}); err != nil ||
			string(r.GetValue()) != "v" {
			t.Error(r, err)
		}
		_, err = reader.Table.Put(t.Context(), put)
		demand(t, err, connect.CodePermissionDenied, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no right")
		put.Value = make([]byte, 1<<12)
		if _, err = c.Table.Put(t.Context(), put); connect.CodeOf(err) != connect.CodeResourceExhausted || client.Unknown(err) {
			t.Error(err)
		}
		sub, err := client.NewNodes(c).Subscribe(t.Context(), "total", 1)
		must(t, err)
		_, err = client.NewNodes(c).Subscribe(t.Context(), "total", 1)
		if client.Detail(err).GetReason() != "busy" {
			t.Error(err)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait() // so that no connection is in use when it is closed
	})
}

// In a foreign server, revocation ends a client's requests, and the end of the node ends streams and refuses
// requests.
func TestHandlerEnds(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		server := s.another(t, api.Limits{})
		address := s.embed(t, 7200, true, server.Handler())
		victim, other := s.caller(t, "victim", address, all), s.caller(t, "c", address, all)
		soon, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		cut := subscribed(soon, t, victim, "total")
		stays := subscribed(t.Context(), t, other, "total")
		if _, err := s.authority.Revoke("victim"); err != nil {
			t.Fatal(err)
		}
		must(t, s.trust.Set(s.authority.Anchors()))
		began := time.Now()
		for cut.Receive() {
			continue
		}
		if cut.Err() == nil || time.Since(began) > time.Second {
			t.Error(cut.Err(), time.Since(began))
		}
		_, err := victim.Admin.Health(t.Context(), &parleyv1.HealthRequest{})
		demand(t, err, connect.CodeUnauthenticated, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "not trusted")
		if !stays.Receive() {
			t.Error(stays.Err())
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
		for stays.Receive() {
			continue
		}
		demand(t, stays.Err(), connect.CodeUnavailable, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "closed")
		_, err = other.Table.Put(t.Context(), &parleyv1.PutRequest{Table: "table", Key: []byte("k")})
		demand(t, err, connect.CodeUnavailable, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "closed")
	})
}

// Another handler beside the API gets only requests of the cluster's clients, and knows the caller.
func TestServeWith(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		server, mux, l := s.another(t, api.Limits{}), http.NewServeMux(), s.listen(t, 0, 7200)
		mux.Handle("/", server.Handler())
		mux.HandleFunc("/hello", hello)
		go func() { _ = server.ServeWith(l, mux) }()
		address := l.Addr().String()
		for _, h2 := range []bool{false, true} {
			c := s.raw(t, &s.certificate(t, "carol", cert.Read).TLS, h2)
			if status, text, err := post(t.Context(), c, "https://"+address+"/hello", nil); err != nil || text != "caroltrue" {
				t.Error(status, text, err)
			}
			if status, text, err := post(t.Context(), c, "https://"+address+leavePath, strings.NewReader("{}")); err != nil ||
				status != http.StatusForbidden {
				t.Error(status, text, err)
			}
			if status, text, err := post(t.Context(), s.raw(t, nil, h2), "https://"+address+"/hello", nil); err == nil {
				t.Error(status, text)
			}
		}
	})
}

// Interceptors see the caller, and only permitted requests. A request that they refuse has no effect; if they
// fail after the node was asked the outcome is unknown, unless the method only reads.
func TestInterceptors(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		seen, before, after := "", func() error { return nil }, func() error { return nil }
		around := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				who, _ := api.Caller(ctx)
				seen += who.Name + " "
				if err := before(); err != nil {
					return nil, err
				}
				answer, err := next(ctx, r)
				if err == nil {
					err = after()
				}
				return answer, err
			}
		})
		address := s.embed(t, 7200, true, s.another(t, api.Limits{}, around).Handler())
		c, reader := s.caller(t, "c", address, all), s.caller(t, "r", address, cert.Read)
		put := &parleyv1.PutRequest{Table: "table", Key: []byte("k"), Value: []byte("v")}
		_, err := reader.Table.Put(t.Context(), put)
		demand(t, err, connect.CodePermissionDenied, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no right")
		if _, err := c.Table.Put(t.Context(), put); err != nil || seen != "c " {
			t.Errorf("%v, seen %q", err, seen)
		}
		nothing, unknown := parleyv1.Outcome_OUTCOME_NOTHING_DONE, parleyv1.Outcome_OUTCOME_UNKNOWN
		denied := func() error { return connect.NewError(connect.CodePermissionDenied, errors.New("not today")) }
		broken := func() error { panic("broken") }
		before = denied
		_, err = c.Table.Put(t.Context(), put)
		demand(t, err, connect.CodePermissionDenied, nothing, "interceptor")
		before = broken
		_, err = c.Table.Put(t.Context(), put)
		demand(t, err, connect.CodeUnknown, nothing, "interceptor")
		before, after = func() error { return nil }, denied
		_, err = c.Table.Put(t.Context(), put)
		demand(t, err, connect.CodePermissionDenied, unknown, "interceptor")
		_, err = c.Table.Get(t.Context(), &parleyv1.GetRequest{Table: "table", Key: []byte("k")})
		demand(t, err, connect.CodePermissionDenied, nothing, "interceptor")
		after = broken
		_, err = c.Table.Put(t.Context(), put)
		demand(t, err, connect.CodeUnknown, unknown, "interceptor")
		after = func() error { return nil }
		_, err = c.Table.Get(t.Context(), &parleyv1.GetRequest{Table: "table", Key: []byte("none")})
		demand(t, err, connect.CodeNotFound, nothing, "no value")
	})
}
