package cert_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/cluster/cert"
)

// today is the time of all tests except those that advance it.
var today = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return today }

const year = 365 * 24 * time.Hour

// world is a cluster with an authority, and trust in it.
type world struct {
	t         *testing.T
	authority *cert.Authority
	trust     *cert.Trust
}

func newWorld(t *testing.T, cluster string) *world {
	t.Helper()
	return newWorldAt(t, cluster, clock)
}

func newWorldAt(t *testing.T, cluster string, now func() time.Time) *world {
	t.Helper()
	a, err := cert.NewAuthority(cluster, 10*year, now)
	fatal(t, err)
	trust, err := cert.NewTrust(a.Anchors(), now)
	fatal(t, err)
	return &world{t, a, trust}
}

func (w *world) node(name string) *cert.Issued {
	w.t.Helper()
	i, err := w.authority.IssueNode(name, []string{"localhost", "127.0.0.1"}, 24*time.Hour)
	fatal(w.t, err)
	return i
}

func (w *world) client(name string, r cert.Rights) *cert.Issued {
	w.t.Helper()
	i, err := w.authority.IssueClient(name, r, 24*time.Hour)
	fatal(w.t, err)
	return i
}

// sign signs a valid node certificate, modified by change.
func (w *world) sign(change func(*x509.Certificate)) tls.Certificate {
	w.t.Helper()
	t := &x509.Certificate{
		URIs: uris("parley://" + w.authority.Cluster() + "/node/b"), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		NotBefore:   today.Add(-time.Hour), NotAfter: today.Add(time.Hour), BasicConstraintsValid: true,
	}
	change(t)
	c, err := w.authority.Sign(t)
	fatal(w.t, err)
	return c
}

func (w *world) revoke(what string) {
	w.t.Helper()
	_, err := w.authority.Revoke(what)
	fatal(w.t, err)
	fatal(w.t, w.trust.Set(w.authority.Anchors()))
}

func (w *world) id(name string) cert.Identity {
	return cert.Identity{Cluster: w.authority.Cluster(), Kind: cert.Node, Name: name}
}

func uris(names ...string) []*url.URL {
	var out []*url.URL
	for _, n := range names {
		u, err := url.Parse(n)
		if err != nil {
			panic(err)
		}
		out = append(out, u)
	}
	return out
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dialer and server are peers that check nothing and present a given certificate.
func dialer(c tls.Certificate) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify:   true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil },
	}
}

func server(c tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c}, ClientAuth: tls.RequireAnyClientCert}
}

// pair is a connection after its handshake, or the errors of the two sides.
type pair struct {
	accepted, dialed       *tls.Conn
	acceptError, dialError error
}

func (p pair) close() {
	p.accepted.NetConn().Close()
	p.dialed.NetConn().Close()
}

// connect performs a handshake over a socket and sends one byte in each direction. In TLS 1.3 the dialer learns
// only from the byte that it was accepted.
func connect(t *testing.T, accept, dial *tls.Config) pair {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal(t, err)
	defer l.Close()
	d, err := net.Dial("tcp", l.Addr().String())
	fatal(t, err)
	a, err := l.Accept()
	fatal(t, err)
	return shake(tls.Server(a, accept), tls.Client(d, dial))
}

func shake(accepted, dialed *tls.Conn) pair {
	p := pair{accepted: accepted, dialed: dialed}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.acceptError = exchange(p.accepted)
	}()
	p.dialError = exchange(p.dialed)
	<-done
	return p
}

func exchange(c *tls.Conn) error {
	if err := c.Handshake(); err != nil {
		end(c)
		return err
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte{1})
		wrote <- err
	}()
	_, err := c.Read(make([]byte, 1))
	if err != nil {
		end(c)
	}
	if e := <-wrote; err == nil {
		err = e
	}
	return err
}

// end stops sending and reads until the other side closes: closing a socket with unread bytes would discard the
// alert that has the reason for the other side.
func end(c *tls.Conn) {
	if tcp, ok := c.NetConn().(*net.TCPConn); ok {
		tcp.CloseWrite()
		io.Copy(io.Discard, tcp)
	}
	c.NetConn().Close()
}

// refused requires an error with a reason that says what was found and what was expected.
func refused(t *testing.T, side string, err error, why cert.Reason, parts ...string) {
	t.Helper()
	err = cert.Explain(err)
	var r *cert.Refusal
	if !errors.As(err, &r) || r.Reason != why || !errors.Is(err, why) {
		t.Errorf("%s: %v; it is to be refused for: %s", side, err, why)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q lacks %q", side, err, part)
		}
	}
}

func accepted(t *testing.T, p pair) {
	t.Helper()
	if p.acceptError != nil || p.dialError != nil {
		t.Fatalf("accepting: %v; dialing: %v", p.acceptError, p.dialError)
	}
}
