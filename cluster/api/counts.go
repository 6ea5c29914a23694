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

// counts are the numbers of what clients asked for, and of those who were turned away.
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
		Name: "parley_api_requests_total", Help: "Requests of clients that have ended, by method and code.",
	}, []string{"method", "code"})
	c.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "parley_api_seconds", Help: "How long requests took that are answered once, by method.",
		Buckets: prometheus.ExponentialBuckets(0.000_1, 4, 10),
	}, []string{"method"})
	c.failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_api_failures_total", Help: "Requests that failed, by reason and by what became of them.",
	}, []string{"reason", "outcome"})
	c.turned = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_api_refused_total", Help: "Connections of clients that were refused or ended, by reason.",
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

// error counts a failure. Reasons are ours, and few.
func (c *counts) error(f *failure) {
	outcome := "nothing done"
	if f.outcome == unknown {
		outcome = "unknown"
	}
	c.failures.WithLabelValues(f.reason, outcome).Inc()
}

// refusedFor is who was refused, as he calls himself, and why.
type refusedFor struct{ reason, who string }

// mostRefused is how many who were refused are named in the log in a minute: anybody can
// show a certificate with any name. Beyond them each reason is named once.
const mostRefused = 64

// refused counts a connection that is refused, and tells whether to say so in the log:
// once a minute for each reason and client.
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
		_, _ = w.Write([]byte(line + "\n")) // who has gone does not read it
	}
}
