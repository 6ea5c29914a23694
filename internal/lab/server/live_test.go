package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"parley/internal/lab/server"
)

// fakeLive is a cluster that carries out requests by functions.
type fakeLive struct {
	do    func(ctx context.Context, request []byte) []byte
	watch func(ctx context.Context, request []byte, emit func([]byte) error) error
}

func (f fakeLive) Do(ctx context.Context, request []byte) []byte { return f.do(ctx, request) }

func (f fakeLive) Watch(ctx context.Context, request []byte, emit func([]byte) error) error {
	return f.watch(ctx, request, emit)
}

// wrong is the error of a request that is wrong.
type wrong struct{ error }

func (wrong) BadRequest() bool { return true }

// What acts on a cluster, or shows it, is refused to everybody but the page; a server without a cluster has neither.
func TestLiveRefusals(t *testing.T) {
	reached := false
	live := fakeLive{
		do: func(_ context.Context, q []byte) []byte { reached = true; return q },
		watch: func(_ context.Context, q []byte, emit func([]byte) error) error {
			reached = true
			return emit(q)
		},
	}
	set := func(key, value string) func(*http.Request) { return func(q *http.Request) { q.Header.Set(key, value) } }
	for _, path := range []string{"/live/do", "/live/watch"} {
		for _, c := range []struct {
			name   string
			change func(*http.Request)
			body   string
			status int
		}{
			{"the page", nil, "{}", 200},
			{"no token", set("Cookie", ""), "{}", 401},
			{"wrong token", set("Cookie", "parley-lab-7411=x"), "{}", 401},
			{"other origin", set("Origin", "http://127.0.0.1:8000"), "{}", 403},
			{"other site", set("Sec-Fetch-Site", "cross-site"), "{}", 403},
			{"no origin", func(q *http.Request) { q.Header.Del("Origin") }, "{}", 403},
			{"rebound name", func(q *http.Request) { q.Host = "evil.example:7411" }, "{}", 403},
			{"form", set("Content-Type", "text/plain"), "{}", 415},
			{"not posted", func(q *http.Request) { q.Method = "GET" }, "", 405},
			{"large", nil, strings.Repeat(" ", 4<<10+1), 413},
		} {
			inBubbleWith(t, server.Options{Answer: echo, Live: live}, func(r *rig) {
				q := r.request("POST", path, c.body)
				if c.change != nil {
					c.change(q)
				}
				reached = false
				if got, text := r.do(q); got.StatusCode != c.status || reached != (c.status == 200) {
					t.Errorf("%s, %s: status %d, want %d, reached the cluster: %v: %s", path, c.name, got.StatusCode, c.status,
						reached, text)
				}
			})
		}
		inBubble(t, echo, func(r *rig) {
			if got, _ := r.do(r.request("POST", path, "{}")); got.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s without a cluster: status %d", path, got.StatusCode)
			}
		})
	}
}

// A flood of requests is refused, and the cluster gets only some of them at the same time.
func TestLiveFlood(t *testing.T) {
	release := make(chan struct{})
	live := fakeLive{do: func(context.Context, []byte) []byte {
		<-release
		return []byte(`{"said":"done"}`)
	}}
	inBubbleWith(t, server.Options{Answer: echo, Live: live}, func(r *rig) {
		release = make(chan struct{}) // in the bubble
		var acts sync.WaitGroup
		for range server.Acts {
			acts.Go(func() {
				if got, text := r.do(r.request("POST", "/live/do", "{}")); got.StatusCode != 200 || text != "{\"said\":\"done\"}\n" {
					t.Errorf("one of the first: status %d: %s", got.StatusCode, text)
				}
			})
		}
		synctest.Wait()
		got, text := r.do(r.request("POST", "/live/do", "{}"))
		if got.StatusCode != 503 || text != "Refused: 16 requests are in progress already: try again later.\n" {
			t.Errorf("one more: status %d: %s", got.StatusCode, text)
		}
		close(release)
		acts.Wait()
		if got, _ := r.do(r.request("POST", "/live/do", "{}")); got.StatusCode != 200 {
			t.Errorf("afterwards: status %d", got.StatusCode)
		}
	})
}

// States arrive as they are emitted. If the client closes the request, its context ends.
func TestLiveWatch(t *testing.T) {
	next := make(chan string)
	ended := false
	live := fakeLive{watch: func(ctx context.Context, q []byte, emit func([]byte) error) error {
		if string(q) == "no" {
			return errors.New("8 pages are watching already")
		}
		if string(q) == "wrong" {
			return fmt.Errorf("a page: %w", wrong{errors.New("a width of -5")})
		}
		for {
			select {
			case state := <-next:
				if err := emit([]byte(state)); err != nil {
					return err
				}
			case <-ctx.Done():
				ended = true
				return nil
			}
		}
	}}
	inBubbleWith(t, server.Options{Answer: echo, Live: live}, func(r *rig) {
		next = make(chan string)
		ctx, cancel := context.WithCancel(r.t.Context())
		go func() { next <- `{"running":false}` }()
		got, err := r.calls.Do(r.request("POST", "/live/watch", "{}").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(got.Body)
		for _, want := range []string{`{"running":false}`, `{"running":true}`} {
			if line, err := lines.ReadString('\n'); line != `{"state":`+want+"}\n" {
				t.Errorf("got %q, %v, want %s", line, err, want)
			}
			if want == `{"running":false}` {
				next <- `{"running":true}`
			}
		}
		if kind := got.Header.Get("Content-Type"); kind != "application/x-ndjson" {
			t.Errorf("the states are %s", kind)
		}
		cancel()
		_, _ = io.Copy(io.Discard, got.Body)
		got.Body.Close()
		synctest.Wait()
		if !ended {
			t.Error("the context has not ended")
		}
		if got, text := r.do(r.request("POST", "/live/watch", "no")); got.StatusCode != 503 ||
			text != "Refused: 8 pages are watching already.\n" {
			t.Errorf("refused: status %d: %s", got.StatusCode, text)
		}
		if got, text := r.do(r.request("POST", "/live/watch", "wrong")); got.StatusCode != 400 ||
			text != "Refused: a page: a width of -5.\n" {
			t.Errorf("wrong: status %d: %s", got.StatusCode, text)
		}
	})
}
