// Package api serves a node's clients. The same handlers serve gRPC, gRPC-Web, and JSON over HTTP. The files under
// parley/v1 define the API, and say which right each method needs, and what its errors mean. Package parleyv1 is
// generated from these files. Package client is for callers in Go.
//
// Clients authenticate with certificates of the cluster's authority (see package cert). A certificate also contains
// the client's rights. Every resource that a client can occupy is limited (see [Limits]). A [Server] also serves the
// node's health, and its metrics for Prometheus.
//
// # Decisions
//
// When the port for clients has its maximum number of connections, a new connection replaces a silent one. A
// connection is silent if it has sent no request. The server finds the address with the most silent connections, and
// closes the oldest of these. Motive: if the port refused new connections, an attacker could open the maximum number
// and so lock out all clients. Cost: a client that has the same address as an attacker may lose its connection before
// it sends its request.
//
// The server and the Go client use the library Connect, and the .proto files are the reference. Every error says
// either that the request had no effect, or that its outcome is unknown. Motive: one handler answers gRPC, gRPC-Web,
// and curl. Cost: the module needs two libraries, and its repository contains generated code.
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

// Config configures a server.
type Config struct {
	Node *cluster.Node
	// Cluster is the configuration with which the node has joined.
	Cluster cluster.Config
	Limits  Limits
	// Interceptors run around all methods. The first interceptor is the outermost. They run when the client is
	// authenticated (see Caller), has the right, and is within its limits. If an interceptor returns an error before
	// it has called the node, the request has no effect. If it returns its own error after that, the outcome is
	// unknown, unless the method only reads.
	Interceptors []connect.Interceptor
	// Left, if set, is called when a client has made the node leave the cluster, so that the process can exit. It
	// must not block.
	Left func()
}

// Server serves a node's clients.
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

// New returns the server of a node. It serves no connections until Serve or Handler is used.
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

// Serve accepts connections of clients until the server is closed.
func (s *Server) Serve(l net.Listener) error { return s.ServeWith(l, s.Handler()) }

// ServeWith does what Serve does, but with another handler. For example, the handler can be an [http.ServeMux] that
// has [Server.Handler] at "/", and further handlers. The handlers get only requests of clients that the cluster
// trusts (see [Caller]), on connections within [Limits]. Only Server.Handler checks rights and the limits on
// requests.
func (s *Server) ServeWith(l net.Listener, handler http.Handler) error {
	config := s.tls()
	config.NextProtos = []string{"h2", "http/1.1"}
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: s.c.Limits.Header,
		IdleTimeout:       s.c.Limits.Idle,
		MaxHeaderBytes:    16 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.c.Limits.Requests + 100, // so that a client above its limit gets an error
			SendPingTimeout:      s.c.Limits.Idle / 4, PingTimeout: s.c.Limits.Write,
		},
		ConnState: connState, ConnContext: withConn,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s.serve(h, &listener{Listener: l, s: s, config: config})
}

// ServeWatch serves monitoring, see [Server.Watch], until the server is closed.
func (s *Server) ServeWatch(l net.Listener) error {
	return s.serve(&http.Server{
		Handler: s.Watch(), ReadHeaderTimeout: s.c.Limits.Header, ReadTimeout: s.c.Limits.Read,
		WriteTimeout: 2 * s.c.Limits.Write, IdleTimeout: s.c.Limits.Idle, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}, &watched{Listener: l, most: s.c.Limits.Watchers})
}

// Watch returns the handler for monitoring. The path /healthz says that the process runs. The path /readyz says
// whether the node is ready for clients, and if not, why. The path /metrics is for Prometheus. The handler needs no
// authentication. It does not reveal names of clients or agreed values.
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

// Close refuses new requests, ends streams, and waits for the requests in flight until ctx ends.
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

// Handler returns the handler of clients' requests, at the paths that begin with "/parley.v1." and the name of a
// service. It is for [Server.ServeWith], and for servers of your own.
//
// In a server of your own, the handler relies on the TLS state of each request. The client must have presented a
// client certificate of the cluster's authority, with TLS 1.3. So the server's tls.Config must request certificates.
// Trust.Accept returns such a configuration; tls.RequestClientCert and stricter modes also work. The handler verifies
// the certificate for each request, and ends a request when its certificate is revoked. It refuses a request without
// a certificate as UNAUTHENTICATED, and does not read its body. The handler also checks rights and the Limits on
// requests. The limits on connections (Strangers, OfAddress, AddressRate, AddressOnce, Connections, Header, and Idle)
// are your server's responsibility: set its ReadHeaderTimeout and IdleTimeout. Handlers between your server and this
// handler must allow setting deadlines (see [http.ResponseController]). [Server.Close] ends streams and refuses later
// requests, but waits only for servers that Serve or ServeWith started.
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
