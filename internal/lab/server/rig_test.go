package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"parley/internal/lab/server"
)

const (
	host   = "127.0.0.1:7411"
	origin = "http://" + host
)

// rig is a server and its clients in a bubble, connected by pipes.
type rig struct {
	t     *testing.T
	token string
	conns chan net.Conn
	calls *http.Client
}

// inBubble calls test with a server that answers by answer.
func inBubble(t *testing.T, answer func(context.Context, []byte, func([]byte)) []byte, test func(*rig)) {
	t.Helper()
	inBubbleWith(t, server.Options{Answer: answer}, test)
}

// inBubbleWith calls test with a server that has some of the options.
func inBubbleWith(t *testing.T, o server.Options, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, token: server.NewToken(), conns: make(chan net.Conn)}
		o.Page, o.Token, o.Hosts = pageWith("hello"), r.token, []string{host, "localhost:7411"}
		s := &http.Server{
			Handler:  server.New(o),
			ErrorLog: log.New(io.Discard, "", 0), // the panics of tests
		}
		transport := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return r.dial(), nil },
		}
		r.calls = &http.Client{Transport: transport}
		var work sync.WaitGroup
		work.Go(func() {
			if err := s.Serve(r); !errors.Is(err, http.ErrServerClosed) {
				t.Errorf("the server ended: %v", err)
			}
		})
		test(r)
		transport.CloseIdleConnections()
		s.Close()
		work.Wait()
		time.Sleep(time.Second) // virtual: the server's goroutines of refused connections linger
	})
}

// pageWith returns a page with one text in it.
func pageWith(text string) fstest.MapFS {
	return fstest.MapFS{
		"index.html":    {Data: []byte("<p>" + text)},
		"app.js":        {Data: []byte("import './vendor/x.js'")},
		"app.css":       {Data: []byte("p{}")},
		"vendor/x.js":   {Data: []byte("export default 1")},
		"vendor/y.wasm": {Data: []byte("\x00asm")},
	}
}

// Accept, Close and Addr make the rig a listener.
func (r *rig) Accept() (net.Conn, error) {
	c, ok := <-r.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (r *rig) Close() error {
	close(r.conns)
	return nil
}

func (r *rig) Addr() net.Addr { return &net.TCPAddr{} }

func (r *rig) dial() net.Conn {
	client, server := net.Pipe()
	r.conns <- server
	return client
}

// request returns a request to which the server has no objection.
func (r *rig) request(method, path, body string) *http.Request {
	q, err := http.NewRequestWithContext(r.t.Context(), method, origin+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == http.MethodPost {
		q.Header.Set("Origin", origin)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Cookie", "parley-lab-7411="+r.token)
	}
	return q
}

// do sends a request and returns the response with its body.
func (r *rig) do(q *http.Request) (*http.Response, string) {
	r.t.Helper()
	got, err := r.calls.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return got, string(b)
}

// raw sends text on a connection of its own.
func (r *rig) raw(text string) (net.Conn, *bufio.Reader) {
	c := r.dial()
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// echo answers with the question.
func echo(_ context.Context, question []byte, _ func([]byte)) []byte { return question }
