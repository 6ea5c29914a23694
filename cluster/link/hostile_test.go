package link_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/link"
)

// besieged returns three nodes, of which 1 and 2 are connected; the test plays node 0.
func besieged(t *testing.T, change func(c *link.Config)) *system {
	s := newSystem(t, 3, change)
	s.start(1, 2)
	s.connected(1, 2)
	return s
}

// goOn checks that nodes 1 and 2 have not been disturbed.
func (s *system) goOn() {
	s.t.Helper()
	n := s.host[2].count("frame 1/9 on")
	if !s.mesh[1].Send(2, link.Bulk, 9, nil, []byte("on")) {
		s.t.Fatal("the others are not connected any more")
	}
	s.mesh[1].Flush(2)
	await(s.t, "a frame of the others", func() bool { return s.host[2].count("frame 1/9 on") > n })
	if p := s.peer(1, 2); p.Connections != 1 {
		s.t.Errorf("the others had %d connections", p.Connections)
	}
}

const frameLimit = 100_000

// Frames that no correct peer sends: each ends its connection, counted for its reason, and no other connection;
// and the peer gets the reason.
func TestHostileFrames(t *testing.T) {
	length := func(n uint32, more ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), more...) }
	const longest = 64<<10 + 1020
	halves := append(frame(part, append([]byte{7}, make([]byte, 50_000)...)...), frame(bulk, make([]byte, frameLimit-50_000)...)...)
	one := append(frame(part, append([]byte{7}, make([]byte, 50_000)...)...), frame(bulk, make([]byte, frameLimit-50_000+1)...)...)
	over := append(frame(part, make([]byte, 60_000)...), frame(part, make([]byte, 40_006)...)...)
	for _, c := range []struct {
		what string
		send []byte
		why  link.Reason // 0: accepted
	}{
		{"length 0", length(0), link.EmptyFrame},
		{"length max", frame(bulk, append([]byte{7}, make([]byte, longest-2)...)...), 0},
		{"length max+1", length(longest+1, bulk), link.LongFrame},
		{"length 2^32-1", length(1<<32-1, bulk), link.LongFrame},
		{"frame of the limit, in parts", halves, 0},
		{"frame of the limit and one, in parts", one, link.LongFrame},
		{"frame over the limit, in parts", over, link.LongFrame},
		{"empty part", frame(part), link.EmptyFrame},
		{"type 0", frame(0), link.UnknownType},
		{"type 8", frame(8, 1), link.UnknownType},
		{"type 255", frame(255, 1, 2, 3), link.UnknownType},
		{"second hello", helloFrame("test", 1, 1, 1, 0), link.SecondHello},
		{"data without a channel", frame(bulk), link.Malformed},
		{"channel in a longer form", frame(urgent, 0x80, 0), link.Malformed},
		{"channel of 33 bits", frame(urgent, 0x80, 0x80, 0x80, 0x80, 0x10), link.Malformed},
		{"channel cut off", frame(bulk, 0x80), link.Malformed},
		{"ping of 7 bytes", frame(ping, make([]byte, 7)...), link.Malformed},
		{"ping of 8 bytes", frame(ping, make([]byte, 8)...), 0},
		{"pong of 9 bytes", frame(pong, make([]byte, 9)...), link.Malformed},
		{"pong without ping", frame(pong, make([]byte, 8)...), link.BadPong},
		{"bye of 2 bytes", frame(bye, 1, 2), link.Malformed},
	} {
		bubble(t, c.what, func(t *testing.T) {
			s := besieged(t, func(c *link.Config) { c.Limits.Frame = frameLimit })
			w := s.intruder(0, 1)
			w.send(c.send)
			if c.why == 0 {
				w.send(frame(urgent, 5, 'o', 'k'))
				s.host[1].await(t, "frame 0/5 ok")
				if p := s.peer(1, 0); len(p.Refused) != 0 || !p.Connected {
					t.Errorf("refused: %v", p.Refused)
				}
			} else {
				if got := w.told(); got != c.why {
					t.Errorf("the peer is told %q, not %q", got, c.why)
				}
				s.host[1].await(t, "down 0 "+c.why.String())
				if p := s.peer(1, 0); len(p.Refused) != 1 || p.Refused[c.why] != 1 {
					t.Errorf("counted %v", p.Refused)
				}
			}
			s.goOn()
		})
	}
}

// A connection ends within a frame.
func TestTruncatedFrames(t *testing.T) {
	for what, b := range map[string][]byte{
		"in the length": {0, 0}, "behind the length": {0, 0, 0, 9}, "in the frame": {0, 0, 0, 9, bulk, 7, 1},
		"behind a part": frame(part, 7, 1, 2),
	} {
		bubble(t, what, func(t *testing.T) {
			s := besieged(t, nil)
			w := s.intruder(0, 1)
			w.send(append(frame(urgent, 5, 'o', 'k'), b...))
			s.host[1].await(t, "frame 0/5 ok")
			_ = w.Close()
			s.host[1].await(t, "down 0 frame cut off")
			s.refused(1, 0, link.Truncated)
			s.goOn()
		})
	}
}

// Frames in place of a hello that are invalid or not of this cluster.
func TestHostileHello(t *testing.T) {
	good, disk := helloFrame("test", 1, 1, 1, 0), make([]byte, 24)
	for _, c := range []struct {
		what string
		send []byte
		why  link.Reason // 0: accepted
	}{
		{"good", good, 0},
		{"data before hello", frame(bulk, 7, 1), link.NoHello},
		{"ping before hello", frame(ping, make([]byte, 8)...), link.NoHello},
		{"length 0", make([]byte, 4), link.EmptyFrame},
		{"length 1025", append([]byte{0, 0, 4, 1, hello}, make([]byte, 1024)...), link.LongFrame},
		{"length 2^32-1", []byte{255, 255, 255, 255, hello}, link.LongFrame},
		{"length 2^32-1 of data", []byte{255, 255, 255, 255, bulk}, link.NoHello},
		{"too short", frame(hello, good[5:40]...), link.BadHello},
		{"name cut off", frame(hello, good[5:len(good)-1]...), link.BadHello},
		{"trailing bytes", helloFrame("test", 1, 1, 1, 0, 'x'), link.BadHello},
		{"of the disk", helloFrame("test", 1, 2, 1, 0, disk...), 0},
		{"nothing of the disk", helloFrame("test", 1, 2, 1, 0), link.BadHello},
		{"of the disk, cut off", helloFrame("test", 1, 2, 1, 0, disk[1:]...), link.BadHello},
		{"of the disk, and trailing bytes", helloFrame("test", 1, 2, 1, 0, append(disk[:24:24], 'x')...), link.BadHello},
		{"trailing bytes of a later version", helloFrame("test", 1, 3, 1, 0, append(disk[:24:24], 'x')...), 0},
		{"versions upside down", helloFrame("test", 2, 1, 1, 0), link.BadHello},
		{"version after ours", helloFrame("test", 3, 4, 1, 0, disk...), link.OtherVersion},
		{"version before ours", helloFrame("test", 0, 0, 1, 0), link.OtherVersion},
		{"version N-1 too", helloFrame("test", 0, 1, 1, 0), 0},
		{"other cluster", helloFrame("tests", 1, 1, 1, 0), link.OtherCluster},
		{"no cluster", helloFrame("", 1, 1, 1, 0), link.OtherCluster},
		{"other configuration", helloFrame("test", 1, 1, 1, 1), link.OtherConfig},
	} {
		bubble(t, c.what, func(t *testing.T) {
			s := besieged(t, nil)
			w := s.wire(0, 1)
			w.send(c.send)
			kind, b := w.next()
			switch {
			case c.why == 0 && kind != hello:
				t.Errorf("answered by a frame of type %d", kind)
			case c.why != 0 && (kind != bye || !bytes.Equal(b, []byte{byte(c.why)})):
				t.Errorf("answered by a frame of type %d: %v", kind, b)
			}
			if c.why != 0 {
				s.refused(1, 0, c.why)
				if got := s.host[1].count("up 0.1"); got != 0 {
					t.Error("he was let in")
				}
			} else {
				s.host[1].await(t, "up 0.1")
			}
			s.goOn()
		})
	}
}

// A hello that ends early closes the connection.
func TestTruncatedHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, nil)
		w := s.wire(0, 1)
		w.send(helloFrame("test", 1, 1, 1, 0)[:30])
		_ = w.Close()
		s.refused(1, 0, link.Truncated)
		s.goOn()
	})
}

// Connections that certificate and hello do not make a peer of this side.
func TestHostilePeers(t *testing.T) {
	for _, c := range []struct {
		what     string
		id, at   int
		stranger bool
	}{
		{"no node of the cluster", 3, 1, true},
		{"our own name", 1, 1, true},
		{"one who has to be dialed", 2, 1, true},
	} {
		bubble(t, c.what, func(t *testing.T) {
			s := besieged(t, nil)
			w := s.wire(c.id, c.at)
			if got := w.told(); got != link.OtherPeer {
				t.Errorf("told %q", got)
			}
			s.refused(c.at, -1, link.OtherPeer)
			s.goOn()
		})
	}
}

// The address of one peer belongs to another one: the dialing node detects it.
func TestAnotherPeerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, 3, nil)
		s.config[0].Peers = []string{s.addrs[0], s.addrs[2], s.addrs[1]}
		s.start(0, 1, 2)
		s.refused(0, 1, link.OtherPeer)
		s.refused(0, 2, link.OtherPeer)
		s.connected(1, 2)
		s.goOn()
		if got := s.host[0].all(); got != "" {
			t.Errorf("node 0 saw\n%s", got)
		}
	})
}

// Handshakes that are not TLS 1.3 with a certificate of this cluster.
func TestHostileHandshakes(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, c *tls.Config){
		"no certificate": func(_ *testing.T, c *tls.Config) { c.GetClientCertificate = nil },
		"other authority": func(t *testing.T, c *tls.Config) {
			c.GetClientCertificate = newAuthority(t).node(t, 0).Dial(1).GetClientCertificate
		},
		"TLS 1.2": func(_ *testing.T, c *tls.Config) { c.MinVersion, c.MaxVersion = 0, tls.VersionTLS12 },
	} {
		bubble(t, what, func(t *testing.T) {
			s := besieged(t, nil)
			config := s.ca.node(t, 0).Dial(1)
			change(t, config)
			c := tls.Client(s.dial(1), config)
			err := c.Handshake()
			if err == nil {
				defer c.Close()
				_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
				if n, err := c.Read(make([]byte, 100)); err == nil && n != 6 { // a bye at most
					t.Errorf("%d bytes came", n)
				}
			}
			s.refused(1, -1, link.Handshake)
			s.goOn()
		})
	}
	bubble(t, "no TLS", func(t *testing.T) {
		s := besieged(t, nil)
		c := s.dial(1)
		defer c.Close()
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		s.refused(1, -1, link.Handshake)
		s.goOn()
	})
}

// All byes with unknown reasons count as one, so that they do not fill the log.
func TestUnknownByesAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := besieged(t, func(c *link.Config) {
			if c.Self == 1 {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
			}
		})
		for i, why := range []byte{0, byte(link.FutureLife) + 1, 255} {
			s.intruder(0, 1).send(frame(bye, why))
			await(t, "the bye", func() bool { return s.host[1].count("down 0 refused by the peer") == i+1 })
			s.wire(0, 1).send(frame(bye, why)) // before hello
			await(t, "the other bye", func() bool { return s.peer(1, 0).Refused[link.ToldOff] == uint64(2*i+2) })
		}
		s.stop(1)
		if n := strings.Count(log.String(), "peer=0"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &log)
		}
	})
}

// A node refuses a peer, and the peer gets the reason, so that its own log informs the operator.
func TestRefusedPeerIsNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, 2, func(c *link.Config) { c.Hello.Config[31] = byte(c.Self) })
		s.start(0, 1)
		s.refused(1, 0, link.OtherConfig)
		s.refused(0, 1, link.ToldOff)
		if s.host[0].all()+s.host[1].all() != "" {
			t.Errorf("there was a connection: %s", s.host[0].all())
		}
	})
}

// Versions N and N-1 communicate with the highest common version; N and N-2 do not.
func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ min0, max0, min1, max1, want uint16 }{
			{1, 1, 1, 1, 1}, {1, 2, 1, 1, 1}, {1, 1, 1, 2, 1}, {1, 2, 2, 3, 2}, {2, 3, 1, 2, 2}, {1, 2, 1, 2, 2}, {1, 1, 2, 3, 0}, {3, 4, 1, 2, 0},
		} {
			s := newSystem(t, 2, func(l *link.Config) {
				l.Hello.Min, l.Hello.Max = c.min0, c.max0
				if l.Self == 1 {
					l.Hello.Min, l.Hello.Max = c.min1, c.max1
				}
			})
			s.start(0, 1)
			if c.want == 0 {
				s.refused(1, 0, link.OtherVersion)
			} else {
				s.connected(0, 1)
				if a, b := s.peer(0, 1).Version, s.peer(1, 0).Version; a != c.want || b != c.want {
					t.Errorf("%+v: versions %d and %d", c, a, b)
				}
			}
			s.stop(0)
			s.stop(1)
		}
	})
}

// Duplicate connections: a live connection wins against a second one of the same incarnation, and is replaced by
// one of a newer incarnation; an older incarnation is always refused.
func TestDuplicateConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := besieged(t, nil)
		try := func(incarnation uint64) (wire, link.Reason) {
			w := s.wire(0, 1)
			w.send(helloFrame("test", 1, 1, incarnation, 0))
			kind, b := w.next()
			if kind == bye {
				return w, link.Reason(b[0])
			}
			return w, 0
		}
		first, why := try(5)
		if why != 0 {
			t.Fatal(why)
		}
		if _, why := try(5); why != link.Duplicate {
			t.Errorf("a second connection of the same life: %v", why)
		}
		if _, why := try(4); why != link.OldLife {
			t.Errorf("a second connection of an older life: %v", why)
		}
		first.send(frame(urgent, 5, 'a'))
		s.host[1].await(t, "frame 0/5 a")
		second, why := try(6)
		if why != 0 {
			t.Errorf("a connection of a newer life: %v", why)
		}
		if why := first.told(); why != link.Replaced {
			t.Errorf("the first is told %v", why)
		}
		second.send(frame(urgent, 5, 'b'))
		s.host[1].await(t, "frame 0/5 b")
		_ = second.Close()
		s.host[1].await(t, "down 0 connection broken")
		if _, why := try(5); why != link.OldLife {
			t.Errorf("an older life, after the newer has gone: %v", why)
		}
		await(t, "the same life, after its connection has gone", func() bool { _, why := try(6); return why == 0 })
		await(t, "the last one to be up", func() bool { return s.host[1].count("up 0.6") == 2 })
		want := "up 0.5\nframe 0/5 a\ndown 0 replaced by a newer incarnation\nup 0.6\nframe 0/5 b\ndown 0 connection broken\nup 0.6"
		if got := s.host[1].withoutOf(2); got != want {
			t.Errorf("node 1 saw\n%s\nnot\n%s", got, want)
		}
		s.goOn()
	})
}

// withoutOf returns all events except those of a peer.
func (h *host) withoutOf(id parley.ID) string {
	var out [][]byte
	for l := range bytes.Lines([]byte(h.all())) {
		if !bytes.Contains(l, []byte(" "+id.String()+".")) {
			out = append(out, bytes.TrimSpace(l))
		}
	}
	return string(bytes.Join(out, []byte("\n")))
}
