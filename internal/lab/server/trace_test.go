package server_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/internal/lab/engine"
	"parley/internal/lab/server"
)

// A trace file is received up to its limit, and only from the page itself, with the token.
func TestTraceIsKept(t *testing.T) {
	inBubble(t, echo, func(r *rig) {
		post := func(change func(*http.Request)) (int, string) {
			t.Helper()
			q := r.request("POST", "/trace", strings.Repeat("x", 3<<20))
			q.Header.Set("Content-Type", "application/jsonl")
			change(q)
			got, text := r.do(q)
			return got.StatusCode, text
		}
		if status, text := post(func(*http.Request) {}); status != 200 || text != `{"hash":"3145728"}` {
			t.Errorf("status %d: %s", status, text)
		}
		for want, change := range map[int]func(*http.Request){
			http.StatusUnauthorized:         func(q *http.Request) { q.Header.Del("Cookie") },
			http.StatusUnsupportedMediaType: func(q *http.Request) { q.Header.Set("Content-Type", "application/json") },
			http.StatusForbidden:            func(q *http.Request) { q.Header.Set("Origin", "http://example.org") },
			http.StatusMethodNotAllowed:     func(q *http.Request) { q.Method = "PUT" },
			http.StatusRequestEntityTooLarge: func(q *http.Request) {
				q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, engine.MaxTrace+1))), engine.MaxTrace+1
			},
		} {
			if status, text := post(change); status != want {
				t.Errorf("status %d: %s, want %d", status, text, want)
			}
		}
	})
}

// Clients that stall in the middle of their traces do not delay questions of others, and are refused in the end. Further
// traces are refused at once.
func TestStalledTraces(t *testing.T) {
	inBubble(t, echo, func(r *rig) {
		began := time.Now()
		var stalled []*bufio.Reader
		for range server.Uploads {
			c, answer := r.raw("POST /trace HTTP/1.1\r\nHost: " + host + "\r\nOrigin: " + origin +
				"\r\nContent-Type: application/jsonl\r\nCookie: parley-lab-7411=" + r.token + "\r\nContent-Length: 1000\r\n\r\n{")
			defer c.Close()
			stalled = append(stalled, answer)
		}
		synctest.Wait()
		if got, text := r.do(r.request("POST", "/ask", `"a"`)); got.StatusCode != 200 {
			t.Errorf("a question is answered by %d: %s", got.StatusCode, text)
		}
		q := r.request("POST", "/trace", "{}")
		q.Header.Set("Content-Type", "application/jsonl")
		if got, text := r.do(q); got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("another trace is answered by %d: %s", got.StatusCode, text)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("that took %v", took)
		}
		for _, answer := range stalled {
			got, err := http.ReadResponse(answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			if got.StatusCode != http.StatusRequestTimeout || time.Since(began) != server.Patience {
				t.Errorf("a stalled trace is answered by %d after %v", got.StatusCode, time.Since(began))
			}
		}
		synctest.Wait()
		q = r.request("POST", "/trace", "{}")
		q.Header.Set("Content-Type", "application/jsonl")
		if got, text := r.do(q); got.StatusCode != 200 {
			t.Errorf("a trace after them is answered by %d: %s", got.StatusCode, text)
		}
	})
}
