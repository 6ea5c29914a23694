package api

import (
	"io"
	"net"
	"testing"
)

// One connection above the limit of a listener for monitoring closes the oldest that is open; all others work, and a
// closed one makes room.
func TestWatchedLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &watched{Listener: inner, most: 2}
	defer func() { _ = l.Close() }()
	connect := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if server, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return client, server
	}
	works := func(client, server net.Conn) bool {
		if _, err := server.Write([]byte("x")); err != nil {
			return false
		}
		_, err := io.ReadFull(client, make([]byte, 1))
		return err == nil
	}
	first, firstServer := connect()
	second, secondServer := connect()
	third, thirdServer := connect()
	if _, err := first.Read(make([]byte, 1)); err == nil || works(first, firstServer) {
		t.Errorf("the oldest connection: got %v, want an error", err)
	}
	if !works(second, secondServer) || !works(third, thirdServer) {
		t.Error("a connection within the limit does not work")
	}
	if err := secondServer.Close(); err != nil {
		t.Fatal(err)
	}
	fourth, fourthServer := connect()
	if !works(third, thirdServer) || !works(fourth, fourthServer) || len(l.open) != 2 {
		t.Errorf("after one has been closed: %d are open, want 2", len(l.open))
	}
	_ = firstServer.Close() // a second time
	if len(l.open) != 2 {
		t.Errorf("%d are open, want 2", len(l.open))
	}
}
