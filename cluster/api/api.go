// Package api serves a node's clients: gRPC, gRPC-Web and JSON over HTTP, all from the same
// handlers, as the files under parley/v1 define it. They are the reference, with what each
// method needs of rights and what its errors mean; package parleyv1 is what is generated
// from them, and package client is for callers in Go.
//
// Clients are known by certificates of the cluster's authority (see package cert), and what
// they may do stands in these. All that a client can make a node hold is bounded: see
// [Limits]. A [Server] also has what watches a node: its health, and its figures for
// Prometheus.
//
// # Decisions
//
// A silent connection gives way to a new one. At the client port the oldest connection that has asked
// for nothing, of the address that has the most, is closed when there is no room. Motive: a limit that
// turns newcomers away lets whoever holds the places keep all others out. Cost: under a flood of
// connections from its own address a client that is slow to ask loses its connection too.
//
// Clients call nodes by Connect. The .proto files are the reference; every error says whether nothing
// was done or the outcome is unknown. Motive: one handler answers gRPC, gRPC-Web and curl. Cost:
// generated code in the tree, checked for drift, and two libraries.
package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

//go:generate go -C ../../tools run ./protogen -root ..

// Config is what a server needs.
type Config struct {
	Node *cluster.Node
	// Cluster is what the node has joined with.
	Cluster cluster.Config
	Limits  Limits
	// Interceptors are around all methods, the first outermost. What they do for a request is done when its client is
	// known (see Caller), has the right, and is within its limits. An error of one before the node was asked means that
	// nothing was done; an error of its own after that, that the outcome is unknown, unless the method only reads.
	Interceptors []connect.Interceptor
	// Left, if it is given, is called when a client has had the node leave the cluster: the
	// process has nothing to do any more. It must not block.
	Left func()
}

// Server is what a node's clients talk to.
type Server struct {
	c        Config
	log      *slog.Logger
	started  time.Time
	tables   map[string]*table
	members  members
	clients  clients
	counts   counts
	failures failures

	ctx  context.Context // ends streams
	stop context.CancelFunc

	mu      sync.Mutex
	closed  bool
	servers []*http.Server
}

// New returns the server of a node. It serves nobody yet.
func New(c Config) *Server {
	c.Limits = c.Limits.withDefaults()
	s := &Server{
		c: c, log: cmp.Or(c.Cluster.Log, slog.New(slog.DiscardHandler)), started: time.Now(),
		tables: make(map[string]*table), members: c.Cluster.Members,
	}
	s.clients.init(c.Limits)
	s.counts.init(s)
	s.failures = failures{c.Cluster.Name, &s.counts}
	for _, t := range c.Cluster.Tables {
		s.tables[t.Name] = newTable(c.Node.Table(t.Name), t)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Serve takes connections of clients until the server is closed.
func (s *Server) Serve(l net.Listener) error { return s.ServeWith(l, s.Handler()) }

// ServeWith is Serve with another handler, as an [http.ServeMux] that has [Server.Handler] at "/" and others beside
// it. All of them get requests only of clients that the cluster trusts (see [Caller]), on connections within
// [Limits]; rights, and the limits on requests, are kept by Server.Handler alone.
func (s *Server) ServeWith(l net.Listener, handler http.Handler) error {
	config := s.tls()
	config.NextProtos = []string{"h2", "http/1.1"}
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.c.Limits.Header,
		IdleTimeout:       s.c.Limits.Idle,
		MaxHeaderBytes:    16 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.c.Limits.Requests + 100, // so that who asks for too much is told
			SendPingTimeout:      s.c.Limits.Idle / 4, PingTimeout: s.c.Limits.Write,
		},
		ConnState: connState, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s.serve(h, &listener{Listener: l, s: s, config: config})
}

// ServeWatch serves those who watch the node, see [Server.Watch], until the server is
// closed.
func (s *Server) ServeWatch(l net.Listener) error {
	return s.serve(&http.Server{
		Handler: s.Watch(), ReadHeaderTimeout: s.c.Limits.Header, ReadTimeout: s.c.Limits.Read,
		WriteTimeout: 2 * s.c.Limits.Write, IdleTimeout: s.c.Limits.Idle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, l)
}

// Watch is what watches the node: /healthz, whether it lives; /readyz, whether it is ready
// for clients, and if not, why; and /metrics for Prometheus. It asks nobody who he is, and
// tells no names of clients and nothing of what is agreed on.
func (s *Server) Watch() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, []string{"ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := problems(s.c.Node.Status()); len(why) > 0 {
			answer(w, http.StatusServiceUnavailable, why)
			return
		}
		answer(w, http.StatusOK, []string{"ok"})
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.counts.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: s.c.Limits.Write,
	}))
	return mux
}

// serve runs an HTTP server until the server is closed.
func (s *Server) serve(h *http.Server, l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(errClosed, l.Close())
	}
	s.servers = append(s.servers, h)
	s.mu.Unlock()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

var errClosed = errors.New("the server is closed")

// Close takes no more requests, ends streams, and waits for the requests under way until
// the context ends.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	servers := s.servers
	s.mu.Unlock()
	s.stop()
	var errs []error
	for _, h := range servers {
		if err := h.Shutdown(ctx); err != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}

// Handler answers the requests of clients, at the paths that begin with "/parley.v1." and the name of a service. It
// is for [Server.ServeWith], and for servers of your own.
//
// In a server of your own it goes by the state of TLS of each request: the client must have proved a certificate of
// the cluster's authority for clients, with TLS 1.3, so the server's tls.Config must ask for certificates
// (Trust.Accept makes such a configuration; tls.RequestClientCert and above will do). The certificate is verified
// for each request, and a request ends when it is revoked. A request without one is refused as UNAUTHENTICATED, and
// nothing of it is read. Rights hold as ever, and of Limits all that are about requests. Those about connections
// (Strangers, OfAddress, AddressRate, AddressOnce, Connections, Header and Idle) are your server's to keep: set its
// ReadHeaderTimeout and IdleTimeout. Handlers between must let deadlines be set (see [http.ResponseController]).
// [Server.Close] ends streams and refuses what comes then, but waits only for servers of its own.
func (s *Server) Handler() http.Handler {
	around := []connect.Interceptor{interceptor(s.around)}
	if len(s.c.Interceptors) > 0 {
		around = slices.Concat([]connect.Interceptor{interceptor(guest{s}.guard)}, s.c.Interceptors, around)
	}
	options := []connect.HandlerOption{
		connect.WithRequestGate(s.gate),
		connect.WithInterceptors(around...),
		connect.WithCodec(codec{"json"}), connect.WithCodec(codec{"json; charset=utf-8"}),
		connect.WithReadMaxBytes(s.c.Limits.Body),
		connect.WithCompressMinBytes(64 << 10),
	}
	mux := http.NewServeMux()
	mux.Handle(parleyv1.NewAgreeServiceHandler(agreement{s: s}, options...))
	mux.Handle(parleyv1.NewGroupServiceHandler(groups{s: s}, options...))
	mux.Handle(parleyv1.NewTableServiceHandler(tables{s: s}, options...))
	mux.Handle(parleyv1.NewClockServiceHandler(clock{s: s}, options...))
	mux.Handle(parleyv1.NewCommitServiceHandler(commit{s: s}, options...))
	mux.Handle(parleyv1.NewAdminServiceHandler(admin{s: s}, options...))
	return s.outer(mux)
}
