package server_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/internal/lab/engine"
)

// A trace file is read as it arrives, up to its limit, and only from the page itself, with the token.
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
