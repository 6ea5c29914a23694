package cert

import (
	"crypto/tls"
	"fmt"
	"slices"
)

// Any in place of a name lets Dial take any node of the cluster: for clients, to whom all
// nodes are alike. A link between nodes knows whom it dials.
const Any = "*"

// Accept returns a configuration to accept connections with, from peers of the given kinds.
// It is fresh: the caller may complete it (NextProtos) before its first use, and must not
// change it after. The handshake fails with a *Refusal, or what Explain makes one of.
func (t *Trust) Accept(self *Self, kinds ...Kind) *tls.Config {
	if len(kinds) == 0 || self.id.Kind != Node {
		panic("cert: a node accepts, and peers of some kind")
	}
	c := t.config(func(state tls.ConnectionState) error {
		id, err := t.Check(state)
		if err == nil && !slices.Contains(kinds, id.Kind) {
			return refuse(WrongKind, "%s is a %s: a %s was expected here", id, id.Kind, kinds[0])
		}
		return err
	})
	c.ClientAuth = tls.RequireAnyClientCert
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return self.held.Load(), nil }
	return c
}

// Dial returns a configuration to dial a node with: want, by cluster and name, or any node
// of the cluster if its name is Any. What Accept says of the configuration holds here too.
func (t *Trust) Dial(self *Self, want Identity) *tls.Config {
	named := want.Name == Any || CheckName(want.Name) == nil
	if want.Cluster != t.Cluster() || want.Kind != Node || want.Rights != 0 || !named {
		panic(fmt.Sprintf("cert: to dial %s: a node of cluster %s can be dialed", want, t.Cluster()))
	}
	c := t.config(func(state tls.ConnectionState) error {
		id, err := t.Check(state)
		switch {
		case err != nil:
			return err
		case id.Kind != Node:
			return refuse(WrongKind, "%s is a %s: a node was expected here", id, id.Kind)
		case id != want && want.Name != Any:
			return refuse(OtherPeer, "%s answers: %s was expected here", id, want)
		}
		return nil
	})
	// The names of the cluster are no host names, so crypto/tls cannot check them, and would
	// not check the rest without. Check does all of it.
	c.InsecureSkipVerify = true
	// Whatever authorities the server asks for, it may refuse the certificate itself.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return self.held.Load(), nil }
	return c
}

// config is what both sides have in common. There are no tickets, and no cache of sessions
// either, so that every connection shows its certificates.
func (t *Trust) config(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Time: t.now, VerifyConnection: verify,
	}
}
