package cert_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"parley/cluster/cert"
)

// The control for the following tests: valid certificates are accepted on both sides, and each side learns the
// other's identity.
func TestAccepted(t *testing.T) {
	w := newWorld(t, "bank")
	a, b := w.node("a"), w.node("b")
	p := connect(t, w.trust.Accept(a.Self(), cert.Node), w.trust.Dial(b.Self(), w.id("a")))
	defer p.close()
	accepted(t, p)
	for side, c := range map[string]struct {
		conn *tls.Conn
		want cert.Identity
	}{"accepting": {p.accepted, w.id("b")}, "dialing": {p.dialed, w.id("a")}} {
		state := c.conn.ConnectionState()
		if got, err := w.trust.Check(state); got != c.want || err != nil || state.Version != tls.VersionTLS13 {
			t.Errorf("%s: %v, %v, version %x; it is %v", side, got, err, state.Version, c.want)
		}
	}
	// The unmodified template of the following tests is valid.
	same := w.sign(func(*x509.Certificate) {})
	p = connect(t, w.trust.Accept(a.Self(), cert.Node), dialer(same))
	defer p.close()
	accepted(t, p)
	p = connect(t, server(same), w.trust.Dial(a.Self(), w.id("b")))
	defer p.close()
	accepted(t, p)
}

// Each hostile certificate is refused for its own reason, both when its owner dials and when it is dialed.
func TestHostileCertificates(t *testing.T) {
	w, twin, other := newWorld(t, "bank"), newWorld(t, "bank"), newWorld(t, "post")
	revoked := w.node("b")
	w.revoke(revoked.Serial)
	// A signature by a node's key is invalid, even with the node's certificate in the chain.
	byNode := w.sign(func(*x509.Certificate) {})
	forged := signedBy(t, byNode, &x509.Certificate{
		URIs: uris("parley://bank/node/b"), NotBefore: today.Add(-time.Hour), NotAfter: today.Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	forged.Certificate = append(forged.Certificate, byNode.Certificate[0])
	for name, c := range map[string]struct {
		shown tls.Certificate
		why   cert.Reason
		text  string
	}{
		"self-signed": {selfSigned(t), cert.SelfSigned, `"parley://bank/node/b" signed itself: a certificate by the authority of cluster bank was expected`},
		"other CA": {
			twin.sign(func(*x509.Certificate) {}), cert.OtherAuthority,
			`"parley://bank/node/b" is not signed by the authority of cluster bank, as was expected`,
		},
		"other CA and cluster": {other.node("b").TLS, cert.OtherAuthority, "post/node/b"},
		"signed by a node":     {forged, cert.OtherAuthority, "as was expected"},
		"right CA, wrong cluster": {
			w.sign(func(c *x509.Certificate) { c.URIs = uris("parley://post/node/b") }), cert.OtherCluster,
			"parley://post/node/b is of cluster post: one of cluster bank was expected",
		},
		"two URI names": {
			w.sign(func(c *x509.Certificate) { c.URIs = uris("parley://bank/node/b", "parley://bank/node/a") }), cert.TwoNames,
			`2 URI names, "parley://bank/node/b" and "parley://bank/node/a" first: one URI name was expected`,
		},
		"the same URI name twice": {
			w.sign(func(c *x509.Certificate) { c.URIs = uris("parley://bank/node/b", "parley://bank/node/b") }), cert.TwoNames,
			"one URI name was expected",
		},
		"CN only": {
			w.sign(func(c *x509.Certificate) { c.URIs, c.Subject = nil, pkix.Name{CommonName: "b"} }), cert.CommonName,
			`the common name is "b", and it counts for nothing: one URI name was expected`,
		},
		"CN is the URI name": {
			w.sign(func(c *x509.Certificate) { c.URIs, c.Subject = nil, pkix.Name{CommonName: "parley://bank/node/b"} }),
			cert.CommonName, "one URI name was expected",
		},
		"host name only": {
			w.sign(func(c *x509.Certificate) { c.URIs, c.DNSNames = nil, []string{"b"} }), cert.NoName,
			"no URI name: one URI name was expected",
		},
		"name of another form": {
			w.sign(func(c *x509.Certificate) { c.URIs = uris("spiffe://bank/node/b") }), cert.BadName,
			`"spiffe://bank/node/b": one URI name was expected, parley://CLUSTER/node/NAME or`,
		},
		"expired": {
			w.sign(func(c *x509.Certificate) { c.NotAfter = today.Add(-time.Second) }), cert.Expired,
			"was valid until 2030-05-01 11:59:59 UTC, and it is 2030-05-01 12:00:00 UTC: one that is valid now was expected",
		},
		"not yet valid": {
			w.sign(func(c *x509.Certificate) { c.NotBefore = today.Add(time.Second) }), cert.NotYetValid,
			"is valid from 2030-05-01 12:00:01 UTC on, and it is 2030-05-01 12:00:00 UTC: one that is valid now was expected",
		},
		"server-only EKU": {
			w.sign(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), cert.WrongUse,
			"is for server authentication only: client and server authentication was expected of a node",
		},
		"client-only EKU": {
			w.sign(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), cert.WrongUse,
			"is for client authentication only: client and server authentication was expected of a node",
		},
		"no EKU":  {w.sign(func(c *x509.Certificate) { c.ExtKeyUsage = nil }), cert.WrongUse, "neither client nor server authentication"},
		"any EKU": {w.sign(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }), cert.WrongUse, "neither"},
		"CA certificate as leaf": {
			w.authority.Own(), cert.NotALeaf, `"parley://bank/authority" may sign certificates: that of a node or a client was expected`,
		},
		"a node that may sign": {
			w.sign(func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, x509.KeyUsageCertSign }), cert.NotALeaf, "may sign certificates",
		},
		"revoked": {
			revoked.TLS, cert.Revoked,
			`"parley://bank/node/b", serial ` + revoked.Serial + ", was revoked on 2030-05-01 12:00:00 UTC: another one was expected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			self := w.node("a").Self()
			p := connect(t, w.trust.Accept(self, cert.Node), dialer(c.shown))
			defer p.close()
			refused(t, "accepting", p.acceptError, c.why, c.text)
			refused(t, "the peer that dialed", p.dialError, cert.RefusedByPeer, "bad certificate")

			p = connect(t, server(c.shown), w.trust.Dial(self, w.id("b")))
			defer p.close()
			refused(t, "dialing", p.dialError, c.why, c.text)
			refused(t, "the peer that was dialed", p.acceptError, cert.RefusedByPeer, "bad certificate")
		})
	}
}

// With an unknown critical extension, the meaning of a certificate is unknown.
func TestUnknownCriticalExtension(t *testing.T) {
	w := newWorld(t, "bank")
	odd := w.sign(func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: []int{1, 2, 3, 4}, Critical: true, Value: []byte{5, 0}}}
	})
	p := connect(t, w.trust.Accept(w.node("a").Self(), cert.Node), dialer(odd))
	defer p.close()
	refused(t, "accepting", p.acceptError, cert.Invalid, "authority of cluster bank was expected")
}

func TestNoCertificate(t *testing.T) {
	w := newWorld(t, "bank")
	self := w.node("a").Self()
	p := connect(t, w.trust.Accept(self, cert.Node), &tls.Config{InsecureSkipVerify: true})
	defer p.close()
	refused(t, "accepting", p.acceptError, cert.NoCertificate, "one of this cluster was expected")
	// A server without a certificate cannot even answer.
	p = connect(t, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }},
		w.trust.Dial(self, w.id("b")))
	defer p.close()
	refused(t, "dialing", p.dialError, cert.RefusedByPeer)
	// The check itself also works without crypto/tls before it.
	_, err := w.trust.Check(tls.ConnectionState{Version: tls.VersionTLS13})
	refused(t, "checking", err, cert.NoCertificate, "one of cluster bank was expected")
}

func TestTLS12(t *testing.T) {
	w := newWorld(t, "bank")
	self, b := w.node("a").Self(), w.node("b").TLS
	old := dialer(b)
	old.MaxVersion = tls.VersionTLS12
	p := connect(t, w.trust.Accept(self, cert.Node), old)
	defer p.close()
	refused(t, "accepting", p.acceptError, cert.OldTLS, "TLS 1.3 was expected")

	old = server(b)
	old.MaxVersion = tls.VersionTLS12
	p = connect(t, old, w.trust.Dial(self, w.id("b")))
	defer p.close()
	refused(t, "dialing", p.dialError, cert.OldTLS, "TLS 1.3 was offered")

	_, err := w.trust.Check(tls.ConnectionState{Version: tls.VersionTLS12, PeerCertificates: []*x509.Certificate{b.Leaf}})
	refused(t, "checking", err, cert.OldTLS, "TLS 1.2: TLS 1.3 was expected")
}

// A client is not a node: it cannot join the mesh, and no node dials it.
func TestClientIsNoNode(t *testing.T) {
	w := newWorld(t, "bank")
	a, alice := w.node("a"), w.client("alice", cert.Read|cert.Admin)
	p := connect(t, w.trust.Accept(a.Self(), cert.Node), w.trust.Dial(alice.Self(), w.id("a")))
	defer p.close()
	refused(t, "accepting", p.acceptError, cert.WrongKind, "parley://bank/client/alice?rights=read,admin is a client: a node was expected here")
	p = connect(t, server(alice.TLS), w.trust.Dial(a.Self(), w.id("alice")))
	defer p.close()
	refused(t, "dialing", p.dialError, cert.WrongKind, "is a client: a node was expected here")
	// Any does not admit it, either.
	p = connect(t, server(alice.TLS), w.trust.Dial(a.Self(), w.id(cert.Any)))
	defer p.close()
	refused(t, "dialing any", p.dialError, cert.WrongKind, "a node was expected here")
	// Where clients are accepted, they have their rights.
	p = connect(t, w.trust.Accept(a.Self(), cert.Client, cert.Node), w.trust.Dial(alice.Self(), w.id(cert.Any)))
	defer p.close()
	accepted(t, p)
	got, err := w.trust.Check(p.accepted.ConnectionState())
	want := cert.Identity{Cluster: "bank", Kind: cert.Client, Name: "alice", Rights: cert.Read | cert.Admin}
	if got != want || err != nil {
		t.Errorf("%v, %v; it is %v", got, err, want)
	}
	p = connect(t, w.trust.Accept(a.Self(), cert.Client), w.trust.Dial(w.node("b").Self(), w.id("a")))
	defer p.close()
	refused(t, "accepting clients", p.acceptError, cert.WrongKind, "is a node: a client was expected here")
}

// A dial of b does not accept another node, whose certificate is equally valid.
func TestOtherPeer(t *testing.T) {
	w := newWorld(t, "bank")
	p := connect(t, w.trust.Accept(w.node("c").Self(), cert.Node), w.trust.Dial(w.node("a").Self(), w.id("b")))
	defer p.close()
	refused(t, "dialing", p.dialError, cert.OtherPeer, "parley://bank/node/c answers: parley://bank/node/b was expected here")
}

// Tickets are off, so a second connection presents its certificate and is fully checked. With tickets on, the
// check is made as well: the same server with tickets shows that the first half of this test could fail.
func TestResumption(t *testing.T) {
	for name, tickets := range map[string]bool{"tickets off": false, "tickets on": true} {
		for _, gone := range []string{"revoked", "authority removed"} {
			t.Run(name+", "+gone, func(t *testing.T) {
				w := newWorld(t, "bank")
				accept, b := w.trust.Accept(w.node("a").Self(), cert.Node), w.node("b")
				if tickets {
					accept.SessionTicketsDisabled = false
				}
				dial := dialer(b.TLS)
				dial.ServerName = "a" // the key of remembered sessions
				dial.ClientSessionCache = tls.NewLRUClientSessionCache(8)
				for try := range 2 {
					p := connect(t, accept, dial)
					accepted(t, p)
					p.close()
					if got, want := p.accepted.ConnectionState().DidResume, tickets && try == 1; got != want {
						t.Fatalf("connection %d resumed: %t; it is %t", try, got, want)
					}
				}
				why := cert.Revoked
				if gone == "revoked" {
					w.revoke(b.Serial)
				} else {
					why = cert.OtherAuthority
					fatal(t, w.trust.Set(newWorld(t, "bank").authority.Anchors()))
				}
				p := connect(t, accept, dial)
				defer p.close()
				refused(t, "accepting", p.acceptError, why)
			})
		}
	}
}

// The same for the dialing side: its own configuration keeps no sessions, and with a cache a resumed connection
// is checked, too.
func TestResumptionDialing(t *testing.T) {
	for name, cached := range map[string]bool{"no cache": false, "a cache": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "bank")
			b := w.node("b")
			accept, dial := server(b.TLS), w.trust.Dial(w.node("a").Self(), w.id("b"))
			accept.Time = clock
			if cached {
				dial.ClientSessionCache = tls.NewLRUClientSessionCache(8)
				dial.ServerName = "b" // the key of remembered sessions
				dial.SessionTicketsDisabled = false
			}
			for try := range 2 {
				p := connect(t, accept, dial)
				accepted(t, p)
				p.close()
				if got, want := p.dialed.ConnectionState().DidResume, cached && try == 1; got != want {
					t.Fatalf("connection %d resumed: %t; it is %t", try, got, want)
				}
			}
			w.revoke("b")
			p := connect(t, accept, dial)
			defer p.close()
			refused(t, "dialing", p.dialError, cert.Revoked)
		})
	}
}
