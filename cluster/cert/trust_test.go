package cert_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/cert"
)

// signedBy returns a certificate signed by another key.
func signedBy(t *testing.T, parent tls.Certificate, c *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	c.SerialNumber = big.NewInt(7)
	der, err := x509.CreateCertificate(rand.Reader, c, parent.Leaf, &key.PublicKey, parent.PrivateKey)
	fatal(t, err)
	leaf, err := x509.ParseCertificate(der)
	fatal(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// selfSigned returns a self-signed certificate of node b of cluster bank.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), URIs: uris("parley://bank/node/b"),
		NotBefore: today.Add(-time.Hour), NotAfter: today.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	fatal(t, err)
	leaf, err := x509.ParseCertificate(der)
	fatal(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Revocation closes the live connections of the revoked certificate, and no others.
func TestRevocationClosesLiveConnections(t *testing.T) {
	w := newWorld(t, "bank")
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	live := make(map[string]pair)
	ended := make(map[string]error)
	for name, peer := range map[string]*cert.Issued{"b": b, "c": c} {
		p := connect(t, w.trust.Accept(a.Self(), cert.Node), w.trust.Dial(peer.Self(), w.id("a")))
		t.Cleanup(p.close)
		accepted(t, p)
		live[name] = p
		t.Cleanup(w.trust.Watch(p.accepted.ConnectionState(), func(why error) {
			ended[name] = why
			p.accepted.NetConn().Close()
		}))
	}
	if len(ended) > 0 {
		t.Fatalf("ended before anything happened: %v", ended)
	}
	w.revoke("b")
	refused(t, "b", ended["b"], cert.Revoked)
	if ended["b"] == nil {
		return
	}
	if _, err := live["b"].dialed.Read(make([]byte, 1)); err == nil {
		t.Error("the connection of b lives on")
	}
	go live["c"].accepted.Write([]byte{2})
	if _, err := live["c"].dialed.Read(make([]byte, 1)); err != nil || ended["c"] != nil {
		t.Errorf("the connection of c is concerned: %v, %v", err, ended["c"])
	}
	// Each is notified once.
	delete(ended, "b")
	w.revoke("c")
	if ended["b"] != nil || ended["c"] == nil {
		t.Errorf("after the second revocation: %v", ended)
	}
}

// Removing an authority closes all connections with its certificates. A connection whose peer is revoked between
// the handshake and the watch is ended by the watch.
func TestWatchMissesNothing(t *testing.T) {
	w := newWorld(t, "bank")
	p := connect(t, w.trust.Accept(w.node("a").Self(), cert.Node), w.trust.Dial(w.node("b").Self(), w.id("a")))
	defer p.close()
	accepted(t, p)
	var why error
	stop := w.trust.Watch(p.accepted.ConnectionState(), func(err error) { why = err })
	stop()
	fatal(t, w.trust.Set(newWorld(t, "bank").authority.Anchors()))
	if why != nil {
		t.Errorf("ended after the watch was stopped: %v", why)
	}
	w.trust.Watch(p.accepted.ConnectionState(), func(err error) { why = err })
	refused(t, "watching", why, cert.OtherAuthority)
}

// Trust may change at the moment when a watch begins.
func TestWatchDuringChanges(t *testing.T) {
	w := newWorld(t, "bank")
	p := connect(t, w.trust.Accept(w.node("a").Self(), cert.Node), w.trust.Dial(w.node("b").Self(), w.id("a")))
	defer p.close()
	accepted(t, p)
	other := newWorld(t, "bank").authority.Anchors()
	fatal(t, w.trust.Set(other))
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := w.trust.Set(other); err != nil {
					t.Error(err)
				}
			}
		}
	})
	const watches = 400
	var ended atomic.Int64
	for range watches {
		w.trust.Watch(p.accepted.ConnectionState(), func(error) { ended.Add(1) })()
	}
	close(stop)
	changes.Wait()
	if ended.Load() != watches {
		t.Errorf("of %d connections %d were ended", watches, ended.Load())
	}
}

// A live connection ends when the certificate of its peer expires, not before.
func TestExpiryClosesLiveConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldAt(t, "bank", time.Now)
		a, d := net.Pipe() // sockets would block the virtual time of this test
		p := shake(tls.Server(a, w.trust.Accept(w.node("a").Self(), cert.Node)),
			tls.Client(d, w.trust.Dial(w.node("b").Self(), w.id("a"))))
		defer p.close()
		accepted(t, p)
		ended := make(chan error, 1)
		defer w.trust.Watch(p.accepted.ConnectionState(), func(err error) { ended <- err })()
		time.Sleep(24*time.Hour - time.Second)
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatalf("ended early: %v", <-ended)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(ended) == 0 {
			t.Fatal("the connection lives on")
		}
		refused(t, "watching", <-ended, cert.Expired)
	})
}

// The old and the new certificate of a node are valid at the same time. Connections with the old one stay open,
// new ones use the new one, and nothing is restarted.
func TestRotation(t *testing.T) {
	w := newWorld(t, "bank")
	a, b, newer := w.node("a").Self(), w.node("b").Self(), w.node("b")
	accept, dial := w.trust.Accept(a, cert.Node), w.trust.Dial(b, w.id("a"))
	reverse := w.trust.Dial(a, w.id("b"))
	acceptB := w.trust.Accept(b, cert.Node)
	before := connect(t, accept, dial)
	defer before.close()
	accepted(t, before)
	old := b.Certificate().SerialNumber
	var ended error
	defer w.trust.Watch(before.accepted.ConnectionState(), func(why error) { ended = why })()

	fatal(t, b.Set(newer.TLS))
	fatal(t, w.trust.Set(w.authority.Anchors()))
	after, back := connect(t, accept, dial), connect(t, acceptB, reverse)
	defer after.close()
	defer back.close()
	accepted(t, after)
	accepted(t, back)
	for name, c := range map[string]struct {
		conn *tls.Conn
		want *big.Int
	}{"before": {before.accepted, old}, "after": {after.accepted, newer.TLS.Leaf.SerialNumber}, "back": {back.dialed, newer.TLS.Leaf.SerialNumber}} {
		state := c.conn.ConnectionState()
		if got := state.PeerCertificates[0].SerialNumber; got.Cmp(c.want) != 0 {
			t.Errorf("%s: serial %x; it is %x", name, got, c.want)
		}
		if _, err := w.trust.Check(state); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Set(w.node("c").TLS); err == nil || !strings.Contains(err.Error(), "one of parley://bank/node/b was expected") {
		t.Errorf("a node became another one: %v", err)
	}
	if b.Certificate() != newer.TLS.Leaf {
		t.Error("the certificate in use was changed by an error")
	}
	if ended != nil {
		t.Errorf("rotation ended a connection: %v", ended)
	}
	// Revoking the old one by its serial keeps the new one.
	w.revoke(cert.Serial(before.accepted.ConnectionState().PeerCertificates[0]))
	refused(t, "the old one", ended, cert.Revoked)
	if _, err := w.trust.Check(after.accepted.ConnectionState()); err != nil {
		t.Errorf("the new one: %v", err)
	}
}

// Replacing an authority: while both are trusted, certificates of both are valid.
func TestTwoAuthorities(t *testing.T) {
	w, next := newWorld(t, "bank"), newWorld(t, "bank")
	a, b := w.node("a").Self(), next.node("b").Self()
	both := cert.Anchors{
		Authorities: append(w.authority.Anchors().Authorities, next.authority.Certificate()),
		Lists:       append(w.authority.Anchors().Lists, next.authority.Anchors().Lists...),
	}
	fatal(t, w.trust.Set(both))
	p := connect(t, w.trust.Accept(a, cert.Node), w.trust.Dial(b, w.id("a")))
	defer p.close()
	accepted(t, p)
	fatal(t, w.trust.Set(next.authority.Anchors()))
	_, err := w.trust.Check(p.dialed.ConnectionState())
	refused(t, "the old one", err, cert.OtherAuthority)
	if _, err := w.trust.Check(p.accepted.ConnectionState()); err != nil {
		t.Errorf("the new one: %v", err)
	}
}

// The validity of the authority counts, too.
func TestExpiredAuthority(t *testing.T) {
	now := today
	w := newWorldAt(t, "bank", func() time.Time { return now })
	c := w.sign(func(c *x509.Certificate) { c.NotAfter = today.Add(20 * year) })
	now = today.Add(11 * year)
	_, err := w.trust.Verify(c.Leaf)
	refused(t, "after", err, cert.Expired, `the authority that signed "parley://bank/node/b" was valid until 2040-04-28`)
	now = today.Add(-30 * time.Minute) // before the authority is valid, but not before the certificate is
	_, err = w.trust.Verify(c.Leaf)
	refused(t, "before", err, cert.NotYetValid, `the authority that signed "parley://bank/node/b" is valid from 2030-05-01`)
}

// Invalid anchors are an error, and change nothing.
func TestBadAnchors(t *testing.T) {
	w, other := newWorld(t, "bank"), newWorld(t, "post")
	first, own := w.authority.Anchors(), w.authority.Certificate()
	b := w.node("b")
	w.revoke("b")
	node := w.node("c").TLS.Leaf
	for name, c := range map[string]struct {
		anchors cert.Anchors
		want    string
	}{
		"nothing":          {cert.Anchors{}, "no authority: at least one was expected"},
		"no list":          {cert.Anchors{Authorities: first.Authorities}, "no revocation list of the authority with serial " + cert.Serial(own)},
		"an older list":    {first, "revocation list number 1: it is older than number 2, which is in use"},
		"another cluster":  {other.authority.Anchors(), "an authority of cluster post: one of cluster bank was expected"},
		"a node":           {cert.Anchors{Authorities: []*x509.Certificate{node}}, `"parley://bank/node/c" is no authority`},
		"a foreign list":   {cert.Anchors{Authorities: first.Authorities, Lists: other.authority.Anchors().Lists}, "none of the authorities in use has signed"},
		"two clusters":     {cert.Anchors{Authorities: []*x509.Certificate{own, other.authority.Certificate()}}, "authorities of two clusters, bank and post"},
		"an odd authority": {cert.Anchors{Authorities: []*x509.Certificate{oddAuthority(w)}}, `"parley://bank/node/b" is not an authority's name`},
	} {
		if err := w.trust.Set(c.anchors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; it is %q", name, err, c.want)
		}
		if _, err := w.trust.Verify(b.TLS.Leaf); err == nil {
			t.Fatalf("%s: the revoked certificate is good again", name)
		}
	}
	// Of two lists of one authority the newer one counts, in any order.
	now := w.authority.Anchors()
	now.Lists = append(now.Lists, first.Lists...)
	fatal(t, w.trust.Set(now))
	if _, err := w.trust.Verify(b.TLS.Leaf); err == nil {
		t.Error("the older of two lists holds")
	}
}

// oddAuthority may sign, but has the name of a node.
func oddAuthority(w *world) *x509.Certificate {
	return w.sign(func(c *x509.Certificate) {
		c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, nil
	}).Leaf
}

// A configuration that would admit anybody, or nobody, is a bug of the program.
func TestConfigurationsOfTheProgram(t *testing.T) {
	w := newWorld(t, "bank")
	a, alice := w.node("a").Self(), w.client("alice", cert.Read).Self()
	for name, do := range map[string]func(){
		"to accept nobody":        func() { w.trust.Accept(a) },
		"a client that accepts":   func() { w.trust.Accept(alice, cert.Node) },
		"to dial nobody":          func() { w.trust.Dial(a, cert.Identity{}) },
		"to dial no name":         func() { w.trust.Dial(a, w.id("")) },
		"to dial a client":        func() { w.trust.Dial(a, alice.Identity()) },
		"to dial another cluster": func() { w.trust.Dial(a, cert.Identity{Cluster: "post", Kind: cert.Node, Name: "a"}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is no panic", name)
				}
			}()
			do()
		}()
	}
}

// Programs that do not know URI names check host names, and must present a certificate.
func TestHostNames(t *testing.T) {
	w := newWorld(t, "bank")
	roots := x509.NewCertPool()
	roots.AddCert(w.authority.Certificate())
	for host, good := range map[string]bool{"localhost": true, "127.0.0.1": true, "example.org": false} {
		dial := &tls.Config{
			RootCAs: roots, ServerName: host, Time: clock,
			Certificates: []tls.Certificate{w.client("alice", cert.Read).TLS},
		}
		p := connect(t, w.trust.Accept(w.node("a").Self(), cert.Client), dial)
		if got := p.acceptError == nil && p.dialError == nil; got != good {
			t.Errorf("%s: %v, %v", host, p.acceptError, p.dialError)
		}
		p.close()
	}
}

// Trust and certificates change while connections come and go, over real sockets. Revoked peers end up without a
// connection.
func TestConcurrentChanges(t *testing.T) {
	w := newWorldAt(t, "bank", time.Now)
	a, b, spare := w.node("a").Self(), w.node("b").Self(), w.node("b")
	anchors := w.authority.Anchors()
	l, err := tls.Listen("tcp", "127.0.0.1:0", w.trust.Accept(a, cert.Node))
	fatal(t, err)
	dial := w.trust.Dial(b, w.id("a"))
	var live, watched, ended atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				conn := c.(*tls.Conn)
				if conn.Handshake() != nil {
					end(conn)
					return
				}
				live.Add(1)
				defer live.Add(-1)
				defer w.trust.Watch(conn.ConnectionState(), func(error) {
					ended.Add(1)
					c.Close()
				})()
				watched.Add(1)
				c.Write([]byte{1})
				c.Read(make([]byte, 1)) // until it is closed
			})
		}
	})
	var changes sync.WaitGroup
	for worker := range 4 {
		changes.Go(func() {
			for range 20 {
				if worker == 0 {
					if err := errors.Join(b.Set(spare.TLS), w.trust.Set(anchors)); err != nil {
						t.Error(err)
					}
					continue
				}
				c, err := tls.Dial("tcp", l.Addr().String(), dial)
				if err == nil {
					c.Read(make([]byte, 1))
					all.Go(func() { c.Read(make([]byte, 1)); c.Close() })
				}
			}
		})
	}
	changes.Wait()
	w.revoke("b")
	if watched.Load() != 60 || ended.Load() != 60 {
		t.Fatalf("%d connections, of which %d were ended; there are 60", watched.Load(), ended.Load())
	}
	c, err := tls.Dial("tcp", l.Addr().String(), dial)
	fatal(t, err) // the refusal comes with the first read
	_, err = c.Read(make([]byte, 1))
	refused(t, "dialing", err, cert.RefusedByPeer)
	c.Close()
	l.Close()
	all.Wait()
	if live.Load() != 0 {
		t.Errorf("%d connections live on", live.Load())
	}
}
