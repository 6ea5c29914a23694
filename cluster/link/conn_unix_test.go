//go:build unix

package link

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// full is a connection that has been written to until the socket took no more, the other
// end, and what was written.
func full(t *testing.T) (c *conn, there net.Conn, sent []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = nc.Close(), there.Close() })
	if c = newConn(nc); !c.setFree() {
		t.Fatal("it always waits")
	}
	piece := make([]byte, 7000)
	for i := 0; !c.behind.Load(); i++ {
		for k := range piece {
			piece[k] = byte(i + k)
		}
		if _, err := c.Write(piece); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, piece...)
	}
	return c, there, sent
}

// What the socket does not take is kept, and comes in order when it is drained: what is
// written meanwhile does not overtake it, though the socket would take that.
func TestSpill(t *testing.T) {
	c, there, sent := full(t)
	sent = append(sent, "meanwhile, and after"...)
	got := make([]byte, len(sent))
	half := len(sent) / 2
	if _, err := io.ReadFull(there, got[:half]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("meanwhile, ")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := io.ReadFull(there, got[half:])
		done <- err
	}()
	const patience = 200 * time.Millisecond
	if err := c.drain(patience); err != nil || c.behind.Load() {
		t.Fatal(err)
	}
	time.Sleep(patience) // which is over then, and holds for nobody else
	if _, err := c.Write([]byte("and after")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("other bytes came: %v", err)
	}
}

// No more is kept than a block makes, and nobody waits for ever for a peer who does not read.
func TestSpillIsBounded(t *testing.T) {
	c, _, _ := full(t)
	for {
		var err error
		for err == nil {
			_, err = c.Write(make([]byte, 1000))
		}
		if err != errSpill || len(c.spill) > maxSpill {
			t.Fatalf("%v, with %d bytes kept", err, len(c.spill))
		}
		if err = c.drain(50 * time.Millisecond); err == nil {
			continue // the system has made its buffers larger
		}
		if broken(err).Reason != Stuck {
			t.Errorf("drained into a peer who does not read: %v", err)
		}
		return
	}
}
