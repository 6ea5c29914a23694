package memory_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/link/memory"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const ms = time.Millisecond

// two returns two connected hosts.
func two(t *testing.T, o memory.Options) (n *memory.Network, a, b *memory.Host, near, far net.Conn) {
	t.Helper()
	n = memory.New(o)
	a, b = n.Host("a"), n.Host("b")
	l, err := b.Listen(t.Context(), "tcp", ":7000")
	must(t, err)
	near, err = a.DialContext(t.Context(), "tcp", "b:7000")
	must(t, err)
	far, err = l.Accept()
	must(t, err)
	must(t, l.Close())
	return n, a, b, near, far
}

// took requires that do takes exactly the time want.
func took(t *testing.T, what string, want time.Duration, do func()) {
	t.Helper()
	begin := time.Now()
	do()
	if got := time.Since(begin); got != want {
		t.Errorf("%s takes %v, not %v", what, got, want)
	}
}

func write(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d of %d bytes are written: %v", n, len(text), err)
	}
}

func read(t *testing.T, c io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Errorf("read %q: %v", b, err)
	}
}

func failed(t *testing.T, what string, err, want error) {
	t.Helper()
	var op *net.OpError
	if !errors.Is(err, want) || !errors.Is(want, io.EOF) && !errors.As(err, &op) {
		t.Errorf("%s: %v, not %v", what, err, want)
	}
}

// Bytes arrive in order and after the latency, with the sender's address.
func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memory.New(memory.Options{Latency: 10 * ms})
		a, b := n.Host("a"), n.Host("b")
		l, err := b.Listen(t.Context(), "tcp", b.Addr(0))
		must(t, err)
		var near, far net.Conn
		took(t, "to connect", 20*ms, func() {
			near, err = a.DialContext(t.Context(), "tcp", l.Addr().String())
			must(t, err)
		})
		far, err = l.Accept()
		must(t, err)
		if near.LocalAddr().String() != far.RemoteAddr().String() || near.RemoteAddr().String() != l.Addr().String() {
			t.Errorf("from %v to %v, and there %v", near.LocalAddr(), near.RemoteAddr(), far.RemoteAddr())
		}
		if host, _, _ := net.SplitHostPort(near.LocalAddr().String()); host != "10.0.0.1" {
			t.Errorf("host a has address %s", host)
		}
		took(t, "to write", 0, func() { write(t, near, "one, ") })
		time.Sleep(4 * ms)
		write(t, near, "two")
		took(t, "to read the first", 6*ms, func() { read(t, far, "one, ") })
		took(t, "to read the second", 4*ms, func() { read(t, far, "two") })
		n.SetLatency(a, b, 30*ms)
		write(t, near, "slow")
		n.SetLatency(a, b, 0)
		write(t, near, "fast")
		took(t, "to read what may not overtake", 30*ms, func() { read(t, far, "slowfast") })
		write(t, far, "back")
		took(t, "the other direction", 10*ms, func() { read(t, near, "back") })
	})
}

// Write waits while the window is full, TryWrite does not, and a read makes room.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, _, near, far := two(t, memory.Options{Window: 10})
		try := near.(*memory.Conn)
		if k, err := try.TryWrite(make([]byte, 7)); k != 7 || err != nil {
			t.Errorf("%d of 7 are written: %v", k, err)
		}
		if k, err := try.TryWrite(make([]byte, 7)); k != 3 || err != nil {
			t.Errorf("3 of 7 fit, and %d are written: %v", k, err)
		}
		if err := near.SetWriteDeadline(time.Now().Add(5 * ms)); err != nil {
			t.Error(err)
		}
		took(t, "to write when nobody reads", 5*ms, func() {
			_, err := near.Write([]byte("x"))
			failed(t, "to write when nobody reads", err, os.ErrDeadlineExceeded)
		})
		_ = near.SetWriteDeadline(time.Time{})
		go func() {
			time.Sleep(7 * ms)
			_, _ = io.ReadFull(far, make([]byte, 10))
		}()
		took(t, "to write when somebody reads later", 7*ms, func() { write(t, near, "0123456789") })
		read(t, far, "0123456789")
	})
}

// The other end reads everything sent before the close. Writes to a closed end fail.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b, near, far := two(t, memory.Options{Latency: 10 * ms})
		write(t, near, "last words")
		write(t, far, "not heard")
		if err := near.Close(); err != nil {
			t.Error(err)
		}
		failed(t, "to close again", near.Close(), net.ErrClosed)
		_, err := near.Read(make([]byte, 1))
		failed(t, "to read", err, net.ErrClosed)
		_, err = near.Write([]byte("x"))
		failed(t, "to write", err, net.ErrClosed)
		write(t, far, "before it is known there")
		took(t, "the end", 10*ms, func() {
			read(t, far, "last words")
			_, err := far.Read(make([]byte, 1))
			failed(t, "the end", err, io.EOF)
		})
		_, err = far.Write([]byte("x"))
		failed(t, "to write to nobody", err, syscall.EPIPE)
		_, err = a.DialContext(t.Context(), "tcp", b.Addr(7000))
		failed(t, "to connect where nobody listens", err, syscall.ECONNREFUSED)
	})
}

// Waiting calls of Read, Write, and Accept fail when their own end is closed; deadlines end a Read.
func TestWaitersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _, near, far := two(t, memory.Options{Window: 1})
		write(t, near, "x")
		_ = far.SetReadDeadline(time.Now().Add(-1))
		_, err := far.Read(make([]byte, 1))
		failed(t, "to read after the deadline", err, os.ErrDeadlineExceeded)
		l, err := a.Listen(t.Context(), "tcp", ":1")
		must(t, err)
		time.AfterFunc(ms, func() { _, _ = near.Close(), l.Close() })
		ends := make(chan error)
		go func() { _, err := near.Read(make([]byte, 1)); ends <- err }()
		go func() { _, err := near.Write(make([]byte, 1)); ends <- err }()
		go func() { _, err := l.Accept(); ends <- err }()
		took(t, "all ends", ms, func() {
			for range 3 {
				failed(t, "one who waited", <-ends, net.ErrClosed)
			}
		})
	})
}

// Held bytes arrive after the release, and no connection can be made meanwhile.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, near, far := two(t, memory.Options{Latency: ms})
		if _, err := b.Listen(t.Context(), "tcp", ":9"); err != nil {
			t.Fatal(err)
		}
		n.Cut(a, b)
		write(t, near, "held")
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		took(t, "to give up", 50*ms, func() {
			_, err := a.DialContext(ctx, "tcp", "b:9")
			failed(t, "to connect over a cut", err, os.ErrDeadlineExceeded)
		})
		time.AfterFunc(100*ms, func() { n.Heal(a, b) })
		took(t, "to read", 100*ms, func() { read(t, far, "held") })
		if c, err := a.DialContext(t.Context(), "tcp", "b:9"); err != nil {
			t.Error(err)
		} else if err := c.Close(); err != nil {
			t.Error(err)
		}
		n.Hold(a, b)
		_ = near.Close()
		write(t, far, "of no use")
		took(t, "an end that is held", 30*ms, func() {
			_ = far.SetReadDeadline(time.Now().Add(30 * ms))
			_, err := far.Read(make([]byte, 1))
			failed(t, "an end that is held", err, os.ErrDeadlineExceeded)
		})
	})
}

// A broken connection loses bytes in flight, and both ends fail at once.
func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b, near, far := two(t, memory.Options{Latency: ms})
		write(t, near, "lost")
		n.Break(b, a)
		for _, c := range []net.Conn{near, far} {
			_, err := c.Read(make([]byte, 1))
			failed(t, "to read", err, syscall.ECONNRESET)
			_, err = c.Write([]byte("x"))
			failed(t, "to write", err, syscall.ECONNRESET)
		}
	})
}

// Packets arrive after the latency, are lost over a cut or without a socket, and show the sender.
func TestPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memory.New(memory.Options{Latency: 3 * ms})
		a, b := n.Host("a"), n.Host("b")
		open := func(h *memory.Host) *memory.Socket {
			c, err := h.ListenPacket(t.Context(), "udp", ":5")
			must(t, err)
			return c.(*memory.Socket)
		}
		s, r := open(a), open(b)
		to := netip.MustParseAddrPort(b.Addr(5))
		send := func(text string) {
			if k, err := s.WriteToUDPAddrPort([]byte(text), to); k != len(text) || err != nil {
				t.Errorf("%d bytes are sent: %v", k, err)
			}
		}
		n.Hold(a, b)
		send("lost")
		n.Release(a, b)
		for i := range byte(100) {
			send(string(i))
		}
		var got []byte
		took(t, "to arrive", 3*ms, func() {
			for range 100 {
				var one [8]byte
				k, from, err := r.ReadFromUDPAddrPort(one[:])
				if err != nil || from.String() != a.Addr(5) {
					t.Fatal(from, err)
				}
				got = append(got, one[:k]...)
			}
		})
		for i := range byte(100) {
			if !bytes.Equal(got[i:i+1], []byte{i}) {
				t.Fatalf("they come out of order: %v", got)
			}
		}
		if _, err := s.WriteTo([]byte("nobody"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 6}); err != nil {
			t.Error(err)
		}
		_ = r.SetReadDeadline(time.Now().Add(9 * ms))
		took(t, "nothing", 9*ms, func() {
			_, _, err := r.ReadFrom(make([]byte, 8))
			failed(t, "nothing", err, os.ErrDeadlineExceeded)
		})
		_ = r.Close()
		_, _, err := r.ReadFrom(make([]byte, 8))
		failed(t, "to read when it is closed", err, net.ErrClosed)
	})
}

// A port is used once, and names and addresses denote hosts.
func TestAddresses(t *testing.T) {
	n := memory.New(memory.Options{Latency: -1})
	a, b := n.Host("a"), n.Host("b")
	if n.Host("a") != a || b.Addr(7) != "10.0.0.2:7" {
		t.Errorf("the address of b is %s", b.Addr(7))
	}
	for _, address := range []string{"a:1", "10.0.0.1:2", "127.0.0.1:3", "localhost:4", ":5"} {
		if _, err := a.Listen(t.Context(), "tcp", address); err != nil {
			t.Error(err)
		}
	}
	for address, want := range map[string]error{
		"a:1": syscall.EADDRINUSE, "b:1": syscall.EADDRNOTAVAIL, "10.0.0.2:1": syscall.EADDRNOTAVAIL,
	} {
		if _, err := a.Listen(t.Context(), "tcp", address); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"c:1", "a", "a:x", "a:70000"} {
		if _, err := a.DialContext(t.Context(), "tcp", address); err == nil {
			t.Errorf("connected to %s", address)
		}
	}
	if _, err := a.DialContext(t.Context(), "udp", "a:1"); err == nil {
		t.Error("connected by another network")
	}
	if c, err := b.DialContext(t.Context(), "tcp", "a:5"); err != nil || c.RemoteAddr().String() != "10.0.0.1:5" {
		t.Error(c, err)
	}
}
