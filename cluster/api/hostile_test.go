package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cluster/api"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/cluster/cert"
)

// raw returns an HTTP client with a certificate, or none. It trusts everybody, as an attacker may.
func (s *served) raw(t *testing.T, c *tls.Certificate, h2 bool) *http.Client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if c != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }
	}
	tr := &http.Transport{
		TLSClientConfig: config, DialContext: s.dial, ForceAttemptHTTP2: h2, Protocols: new(http.Protocols),
	}
	tr.Protocols.SetHTTP1(!h2)
	tr.Protocols.SetHTTP2(h2)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

const (
	statusPath = "/parley.v1.AdminService/Status"
	putPath    = "/parley.v1.TableService/Put"
	leavePath  = "/parley.v1.AdminService/Leave"
)

// post sends JSON, and returns the status and the body.
func post(ctx context.Context, c *http.Client, url string, body io.Reader) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	return do(c, r)
}

// do sends a request, and returns the status and the body.
func do(c *http.Client, r *http.Request) (int, string, error) {
	answer, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(b), err
}

// watcher returns an HTTP client for monitoring.
func (s *served) watcher(t *testing.T) *http.Client {
	tr := &http.Transport{DialContext: s.dial}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// refused reads a metric of the first node.
func (s *served) refused(t *testing.T, reason string) string {
	t.Helper()
	r, err := s.watcher(t).Get(s.watch + "/metrics")
	must(t, err)
	defer func() { _ = r.Body.Close() }()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), `parley_api_refused_total{reason="`+reason+`"} `); ok {
			return n
		}
	}
	return "0"
}

// A caller without a certificate of a client of this cluster gets no answer, and is counted.
func TestStrangers(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		url := "https://" + s.addresses[0] + statusPath
		other, err := cert.NewAuthority("test", time.Hour, nil)
		must(t, err)
		issue := func(a *cert.Authority, node bool, valid time.Duration) *tls.Certificate {
			var issued *cert.Issued
			var err error
			if node {
				issued, err = a.IssueNode("node1", []string{"127.0.0.1"}, valid)
			} else {
				issued, err = a.IssueClient("c", all, valid)
			}
			must(t, err)
			return &issued.TLS
		}
		revoked := issue(s.authority, false, time.Hour/2)
		if _, err := s.authority.Revoke("client/c"); err != nil {
			t.Fatal(err)
		}
		must(t, s.trust.Set(s.authority.Anchors()))
		for name, c := range map[string]struct {
			certificate *tls.Certificate
			reason      cert.Reason
		}{
			"none":              {nil, ""},
			"a node":            {issue(s.authority, true, time.Hour/2), cert.WrongKind},
			"another authority": {issue(other, false, time.Hour/2), cert.OtherAuthority},
			"revoked":           {revoked, cert.Revoked},
		} {
			for _, h2 := range []bool{false, true} {
				status, body, err := post(t.Context(), s.raw(t, c.certificate, h2), url, strings.NewReader("{}"))
				if err == nil {
					t.Errorf("%s: %d %s", name, status, body)
				}
			}
			if c.reason != "" && s.refused(t, string(c.reason)) != "2" {
				t.Errorf("%s: %s times %s", name, s.refused(t, string(c.reason)), c.reason)
			}
		}
		good := issue(s.authority, false, time.Hour/2)
		for _, h2 := range []bool{false, true} {
			if status, body, err := post(t.Context(), s.raw(t, good, h2), url, strings.NewReader("{}")); err != nil || status != 200 {
				t.Error(status, body, err)
			}
		}
	})
}

// A client without the right is refused, and the body of the request is not read.
func TestNoRight(t *testing.T) {
	byProtocol(t, func(t *testing.T, s *served, _ string, options []connect.ClientOption) {
		ctx := t.Context()
		reader, writer := s.client(t, 0, cert.Read, options...), s.client(t, 0, cert.Write, options...)
		admin := s.client(t, 0, cert.Admin, options...)
		check := func(err error) {
			t.Helper()
			demand(t, err, connect.CodePermissionDenied, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no right")
		}
		_, err := reader.Table.Put(ctx, &parleyv1.PutRequest{Table: "table", Key: []byte("x")})
		check(err)
		_, err = writer.Admin.Leave(ctx, &parleyv1.LeaveRequest{})
		check(err)
		_, err = writer.Admin.Status(ctx, &parleyv1.StatusRequest{})
		check(err)
		_, err = admin.Table.Get(ctx, &parleyv1.GetRequest{Table: "table", Key: []byte("x")})
		check(err)
		stream, err := writer.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: "total"})
		if err == nil {
			stream.Receive()
			err = stream.Err()
		}
		check(err)
	})
	// An endless body is not waited for.
	four(t, func(t *testing.T, s *served) {
		c := s.raw(t, &s.certificate(t, "r", cert.Read).TLS, false)
		status, body, err := post(t.Context(), c, "https://"+s.addresses[0]+leavePath, endless{})
		if err == nil && (status != http.StatusForbidden || !strings.Contains(body, "permission_denied")) {
			t.Error(status, body)
		}
	})
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte(" "), len(b))), nil }

// Bodies that are too long, also when compressed, and bodies that are no request.
func TestBodies(t *testing.T) {
	inBubble(t, 1, api.Limits{Body: 10 << 10, Read: 200 * time.Millisecond}, func(t *testing.T, s *served) {
		url := "https://" + s.addresses[0] + putPath
		self := s.certificate(t, "c", all)
		var bomb bytes.Buffer
		z := gzip.NewWriter(&bomb)
		_, _ = io.CopyN(z, endless{}, 4<<20)
		_ = z.Close()
		if bomb.Len() > 9<<10 {
			t.Fatal(bomb.Len())
		}
		for _, h2 := range []bool{false, true} {
			c := s.raw(t, &self.TLS, h2)
			for name, body := range map[string]io.Reader{
				"long": bytes.NewReader(make([]byte, 11<<10)), "endless": endless{},
			} {
				status, text, err := post(t.Context(), c, url, body)
				late := status == http.StatusGatewayTimeout // it was not read in time
				if err == nil && !late && (status != http.StatusTooManyRequests || !strings.Contains(text, "resource_exhausted")) {
					t.Errorf("%s, HTTP/2: %v: %d %s", name, h2, status, text)
				}
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(bomb.Bytes()))
			must(t, err)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Content-Encoding", "gzip")
			if status, text, err := do(c, r); err != nil || status != http.StatusTooManyRequests {
				t.Error(status, text, err)
			}
			for _, body := range []string{"{", "[]", `{"table":7}`, `{"tabel":"x"}`, `{"key":"%"}`, `{}{}`, "\x00\xff"} {
				status, text, err := post(t.Context(), c, url, strings.NewReader(body))
				if err != nil || status != http.StatusBadRequest {
					t.Errorf("%q: %d %s %v", body, status, text, err)
				}
			}
			// A body that does not arrive is not waited for.
			slow, stuck := io.Pipe()
			if status, text, err := post(t.Context(), c, url, slow); err == nil && status == 200 {
				t.Error(status, text)
			}
			_ = stuck.Close()
			for path, want := range map[string]int{"/": 404, "/parley.v1.TableService/Nothing": 404, "/healthz": 404} {
				if status, text, err := post(t.Context(), c, "https://"+s.addresses[0]+path, strings.NewReader("{}")); status != want {
					t.Error(path, status, text, err)
				}
			}
			// Methods that change something cannot be called with GET, nor by a form.
			r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, url+"?encoding=json&message={}", http.NoBody)
			must(t, err)
			if status, text, err := do(c, r); err != nil || status != http.StatusMethodNotAllowed {
				t.Error(status, text, err)
			}
			r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
			must(t, err)
			r.Header.Set("Content-Type", "text/plain")
			if status, text, err := do(c, r); err != nil || status != http.StatusUnsupportedMediaType {
				t.Error(status, text, err)
			}
		}
	})
}

// Connections that send no header or no request are closed. Strangers above the limit are refused, and clients
// are still served.
func TestSilentConnections(t *testing.T) {
	inBubble(t, 1, api.Limits{Header: 500 * time.Millisecond, Strangers: 8}, func(t *testing.T, s *served) {
		self := s.certificate(t, "c", all)
		c := s.raw(t, &self.TLS, true)
		url := "https://" + s.addresses[0] + statusPath
		if status, _, err := post(t.Context(), c, url, strings.NewReader("{}")); err != nil || status != 200 {
			t.Fatal(status, err)
		}
		var conns []net.Conn
		for range 30 {
			conn, err := s.dial(t.Context(), "tcp", s.addresses[0])
			must(t, err)
			conns = append(conns, conn)
		}
		if status, _, err := post(t.Context(), c, url, strings.NewReader("{}")); err != nil || status != 200 {
			t.Error(status, err)
		}
		for _, conn := range conns {
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
				t.Fatal("a silent connection is kept")
			}
			_ = conn.Close()
		}
		if s.refused(t, "crowd") == "0" {
			t.Error("nobody was turned away")
		}
		await(t, "a new connection", func() bool {
			status, _, err := post(t.Context(), s.raw(t, &self.TLS, false), url, strings.NewReader("{}"))
			return err == nil && status == 200
		})
	})
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// A client that does not read its subscription is cut off, by the retained history or by the write deadline.
func TestSlowReader(t *testing.T) {
	inBubble(t, 1, api.Limits{Write: 300 * time.Millisecond}, func(t *testing.T, s *served) {
		payload := make([]byte, 40<<10)
		_, _ = rand.Read(payload)
		for _, group := range []string{"short", "total"} {
			c, other := s.client(t, 0, all), s.client(t, 0, all)
			stream := subscribed(t.Context(), t, c, group)
			for range 400 { // 16 MB, much more than connections buffer
				_, err := other.Group.Broadcast(t.Context(), &parleyv1.BroadcastRequest{Group: group, Payload: payload})
				must(t, err)
			}
			time.Sleep(time.Second) // the client does not read
			n := 0
			for stream.Receive() {
				n++
			}
			if stream.Err() == nil || n >= 400 {
				t.Errorf("%s: %d deliveries, %v", group, n, stream.Err())
			}
			// Other requests are served.
			if _, err := other.Table.Put(t.Context(), &parleyv1.PutRequest{Table: "table", Key: []byte("x")}); err != nil {
				t.Error(err)
			}
		}
	})
}

// A client has at most its limits of requests and streams at a time, on any number of connections.
func TestTooMuch(t *testing.T) {
	inBubble(t, 1, api.Limits{Streams: 3, Requests: 5, Connections: 4}, func(t *testing.T, s *served) {
		c := s.client(t, 0, all)
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			subscribed(ctx, t, c, "total")
		}
		stream, err := c.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: "total"})
		if err == nil {
			stream.Receive()
			err = stream.Err()
		}
		demand(t, err, connect.CodeResourceExhausted, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "busy")
		for range 2 {
			go func() {
				for ctx.Err() == nil { // the opener itself may exceed the limit
					_, _ = c.Group.Fetch(ctx, &parleyv1.FetchRequest{Group: "total", Wait: durationpb.New(time.Minute)})
				}
			}()
		}
		busy := func() error {
			_, err := c.Admin.Health(t.Context(), &parleyv1.HealthRequest{})
			return err
		}
		await(t, "no more requests than there may be", func() bool { return busy() != nil })
		// Another client has limits of its own.
		other := s.from(t, "clients", s.certificate(t, "d", all))
		if _, err := other.Admin.Health(t.Context(), &parleyv1.HealthRequest{}); err != nil {
			t.Error(err)
		}
		var many []*client.Client
		for range 6 {
			many = append(many, s.client(t, 0, all))
		}
		failed := 0
		for _, c := range many {
			if _, err := c.Admin.Health(t.Context(), &parleyv1.HealthRequest{}); err != nil && client.Detail(err) == nil {
				failed++
			} else if err == nil {
				t.Error("more requests than there may be")
			}
		}
		if failed != 3 {
			t.Errorf("%d of 7 connections were refused: 4 may be, %s", failed, s.refused(t, "connections"))
		}
		// Finished requests no longer count.
		cancel()
		await(t, "what has ended is not counted", func() bool { return busy() == nil })
	})
}

// Revocation ends a client's requests.
func TestRevokedLive(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		victim := s.from(t, "clients", s.certificate(t, "victim", all))
		other := s.client(t, 0, all)
		stream := subscribed(t.Context(), t, victim, "total")
		untouched := subscribed(t.Context(), t, other, "total")
		if _, err := s.authority.Revoke("victim"); err != nil {
			t.Fatal(err)
		}
		must(t, s.trust.Set(s.authority.Anchors()))
		for stream.Receive() {
			if stream.Msg().GetDelivery() != nil {
				t.Error(stream.Msg())
			}
		}
		if stream.Err() == nil {
			t.Error("the stream ended as if all were well")
		}
		if _, err := victim.Admin.Health(t.Context(), &parleyv1.HealthRequest{}); err == nil {
			t.Error("a revoked client is served")
		}
		_, err := other.Group.Broadcast(t.Context(), &parleyv1.BroadcastRequest{Group: "total", Payload: []byte("x")})
		if err != nil || !untouched.Receive() {
			t.Error(err, untouched.Err())
		}
	})
}

// An idle stream outlives the write deadline.
func TestIdleStream(t *testing.T) {
	inBubble(t, 1, api.Limits{Write: 50 * time.Millisecond}, func(t *testing.T, s *served) {
		c := s.client(t, 0, all)
		stream := subscribed(t.Context(), t, c, "total")
		time.Sleep(200 * time.Millisecond)
		_, err := c.Group.Broadcast(t.Context(), &parleyv1.BroadcastRequest{Group: "total", Payload: []byte("x")})
		if err != nil || !stream.Receive() {
			t.Error(err, stream.Err())
		}
	})
}

// When the server is closed, streams end with the reason.
func TestClose(t *testing.T) {
	inBubble(t, 1, api.Limits{}, func(t *testing.T, s *served) {
		c := s.client(t, 0, all)
		stream := subscribed(t.Context(), t, c, "total")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		closed := make(chan error, 1)
		go func() { closed <- s.servers[0].Close(ctx) }()
		for stream.Receive() {
			continue
		}
		demand(t, stream.Err(), connect.CodeUnavailable, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "closed")
		c.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if _, err := c.Admin.Health(t.Context(), &parleyv1.HealthRequest{}); err == nil || client.Unknown(err) {
			t.Error(err)
		}
	})
}

// Monitoring shows health and metrics, and nothing else.
func TestWatch(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		get := func(path string) (int, string) {
			r, err := s.watcher(t).Get(s.watch + path)
			must(t, err)
			defer func() { _ = r.Body.Close() }()
			b, err := io.ReadAll(r.Body)
			must(t, err)
			return r.StatusCode, string(b)
		}
		if status, text := get("/healthz"); status != 200 || text != "ok\n" {
			t.Error(status, text)
		}
		await(t, "the node is ready", func() bool {
			status, text := get("/readyz")
			if status != 200 && status != http.StatusServiceUnavailable {
				t.Fatal(status, text)
			}
			return status == 200 && text == "ok\n"
		})
		time.Sleep(5 * time.Second) // of virtual time, in which nodes measure each other
		_, err := s.client(t, 0, all).Table.Get(t.Context(), &parleyv1.GetRequest{Table: "table", Key: []byte("none")})
		demand(t, err, connect.CodeNotFound, parleyv1.Outcome_OUTCOME_NOTHING_DONE, "no value")
		status, text := get("/metrics")
		for _, want := range []string{
			`parley_info{cluster="test",node="node1"} 1`, `parley_ready 1`, `parley_link_connected{peer="node2"} 1`,
			`parley_view_in{name="group/total"} 1`, `parley_table_position{table="table"}`, `parley_clock_synchronized 1`,
			`parley_link_rtt_seconds{peer="node3",quantile="0.5"}`, `parley_clock_skew_seconds{peer="node4"}`, "go_goroutines ",
			`parley_api_requests_total{code="not_found",method="parley.v1.TableService/Get"}`,
			`parley_api_failures_total{outcome="nothing done",reason="no value"}`,
		} {
			if status != 200 || !strings.Contains(text, want) {
				t.Errorf("%d, without %s", status, want)
			}
		}
		for _, path := range []string{"/", "/debug/pprof/", statusPath} {
			if status, text := get(path); status != 404 {
				t.Error(path, status, text)
			}
		}
	})
}

// A JSON client gets errors as JSON, with a readable detail.
func TestErrorAsJSON(t *testing.T) {
	four(t, func(t *testing.T, s *served) {
		c := s.raw(t, &s.certificate(t, "c", all).TLS, true)
		status, text, err := post(t.Context(), c, "https://"+s.addresses[0]+putPath, strings.NewReader(`{"table":"no"}`))
		if err != nil || status != http.StatusNotFound {
			t.Fatal(status, text, err)
		}
		var e struct {
			Code, Message string
			Details       []struct {
				Type  string
				Debug struct{ Outcome, Reason, Node string }
			}
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Code != "not_found" || len(e.Details) != 1 {
			t.Fatal(text, err)
		}
		if d := e.Details[0].Debug; d.Outcome != "OUTCOME_NOTHING_DONE" || d.Reason != "no table" || d.Node != "node1" {
			t.Error(fmt.Sprint(d), text)
		}
	})
}
