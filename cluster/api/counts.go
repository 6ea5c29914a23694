package api

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// counts are the metrics of clients' requests, and of refused clients.
type counts struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	failures *prometheus.CounterVec
	turned   *prometheus.CounterVec

	mu     sync.Mutex
	logged map[refusedFor]time.Time
}

func (c *counts) init(s *Server) {
	c.logged = make(map[refusedFor]time.Time)
	c.registry = prometheus.NewRegistry()
	c.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_api_requests_total",
		Help: "Finished requests of clients, by method and code. If a code other than ok rises, see " +
			"api_failures_total.",
	}, []string{"method", "code"})
	c.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "parley_api_seconds",
		Help: "Duration of requests whose answer is not a stream, in seconds, by method. If it rises, look at " +
			"the disk and at link_rtt_seconds.",
		Buckets: prometheus.ExponentialBuckets(0.000_1, 4, 10),
	}, []string{"method"})
	c.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_api_failures_total",
		Help: "Failed requests, by reason and outcome. If failures with outcome unknown rise, look at the links " +
			"and at view_suspected.",
	}, []string{"reason", "outcome"})
	c.turned = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_api_refused_total",
		Help: "Refused or closed connections of clients, by reason. If it rises, look for the clients in " +
			"the log.",
	}, []string{"reason"})
	c.registry.MustRegister(c.requests, c.seconds, c.failures, c.turned, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), figures{s})
}

// request counts a request that has ended.
func (c *counts) request(spec connect.Spec, err error, took time.Duration) {
	code := "ok"
	if err != nil {
		code = connect.CodeOf(err).String()
	}
	c.requests.WithLabelValues(spec.Procedure[1:], code).Inc()
	if spec.StreamType == connect.StreamTypeUnary {
		c.seconds.WithLabelValues(spec.Procedure[1:]).Observe(took.Seconds())
	}
}

// error counts a failure. The reasons are a small closed set.
func (c *counts) error(f *failure) {
	outcome := "nothing done"
	if f.outcome == unknown {
		outcome = "unknown"
	}
	c.failures.WithLabelValues(f.reason, outcome).Inc()
}

// refusedFor is the name in the certificate of a refused client, and the reason.
type refusedFor struct{ reason, who string }

// mostRefused is how many refused clients are logged by name in a minute. Further clients are logged once for each
// reason. There is a limit because anybody can show a certificate with any name.
const mostRefused = 64

// refused counts a refused connection, and reports whether to log it: once a minute for each reason and client.
func (c *counts) refused(reason, who string) bool {
	c.turned.WithLabelValues(reason).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.logged, func(_ refusedFor, last time.Time) bool { return now.Sub(last) >= time.Minute })
	one := refusedFor{reason, who}
	if _, said := c.logged[one]; !said && len(c.logged) >= mostRefused {
		one.who = ""
	}
	if _, said := c.logged[one]; said {
		return false
	}
	c.logged[one] = now
	return true
}

// answer writes lines of text.
func answer(w http.ResponseWriter, status int, lines []string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	for _, line := range lines {
		_, _ = w.Write([]byte(line + "\n")) // a disconnected client does not read the lines
	}
}
