package live

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// listening is a node that a relay leads to.
type listening struct {
	net.Listener
	t *testing.T
}

func listen(t *testing.T) listening {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return listening{l, t}
}

// accept returns the next connection.
func (l listening) accept() net.Conn {
	l.t.Helper()
	c, err := l.Accept()
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	return c
}

// dial connects to a relay.
func dial(t *testing.T, r *relay) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func newServing(t *testing.T, to listening) *relay {
	t.Helper()
	r, err := newRelay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.serve(to.Addr().String())
	t.Cleanup(func() { r.close() })
	return r
}

// passes demands that a text arrives.
func passes(t *testing.T, from, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(from, text); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(to, b); err != nil || string(b) != text {
		t.Fatalf("got %q, %v, want %q", b, err, text)
	}
}

// A relay carries data both ways. While it is cut, nothing arrives and nothing is closed; afterwards, everything
// arrives that was sent meanwhile.
func TestRelayCut(t *testing.T) {
	l := listen(t)
	r := newServing(t, l)
	near := dial(t, r)
	far := l.accept()
	passes(t, near, far, "there")
	passes(t, far, near, "and back")
	r.cut(true)
	r.cut(true) // which changes nothing
	for _, c := range []net.Conn{near, far} {
		if _, err := io.WriteString(c, "held"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []net.Conn{near, far} { // a relay that is not cut carries this within microseconds
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := c.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("through a cut relay came %d bytes, %v", n, err)
		}
		_ = c.SetReadDeadline(time.Time{})
	}
	r.cut(false)
	for _, c := range []net.Conn{near, far} {
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "held" {
			t.Errorf("after mending: %q, %v", b, err)
		}
	}
	passes(t, near, far, "again")
}

// A connection that is made while the relay is cut reaches nobody. It ends when the relay is mended, so that the node
// connects again.
func TestRelayConnectsAfterMending(t *testing.T) {
	l := listen(t)
	r := newServing(t, l)
	r.cut(true)
	near := dial(t, r)
	if _, err := io.WriteString(near, "hello"); err != nil {
		t.Fatal(err)
	}
	r.cut(false)
	if b, err := io.ReadAll(near); len(b) > 0 { // the end, or a reset
		t.Errorf("after mending: %q, %v, want the end", b, err)
	}
	near = dial(t, r)
	passes(t, near, l.accept(), "hello")
}

// If one end closes its connection, the other end notices. A relay that is closed ends its connections, even if it is
// cut.
func TestRelayEnds(t *testing.T) {
	l := listen(t)
	r := newServing(t, l)
	near := dial(t, r)
	far := l.accept()
	near.Close()
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the other end read %v", err)
	}
	near = dial(t, r)
	far = l.accept()
	r.cut(true)
	if _, err := io.WriteString(near, "held"); err != nil {
		t.Fatal(err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, far); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the other end: %v", err) // a reset ends it, too
	}
	if _, err := net.Dial("tcp", r.address()); err == nil {
		t.Error("a closed relay accepts a connection")
	}
}

// A relay has a limited number of connections.
func TestRelayLimit(t *testing.T) {
	l := listen(t)
	r := newServing(t, l)
	r.cut(true)
	var all []net.Conn
	for range mostConns {
		all = append(all, dial(t, r))
	}
	one := dial(t, r)
	if b, err := io.ReadAll(one); len(b) > 0 {
		t.Errorf("one more connection read %q, %v, want the end", b, err)
	}
	for _, c := range all {
		c.Close()
	}
}
