package cert

import (
	"crypto/tls"
	"fmt"
	"slices"
)

// Any as a name makes Dial accept any node of the cluster. It is for clients, which may call any node. A link between
// nodes always connects to a specific node.
const Any = "*"

// Accept returns a new configuration to accept connections of peers of the given kinds. The caller may
// complete the configuration (NextProtos) before its first use, and must not change it afterwards. A failed
// handshake returns a *Refusal, or an error that Explain converts to one.
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

// Dial returns a configuration to dial the node want of the cluster, or any node if the name of want is Any. The
// remarks of Accept about the configuration apply here, too.
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
	// Names of the cluster are not host names, so crypto/tls cannot check them, and without them it would not
	// check the rest. Check does all of it.
	c.InsecureSkipVerify = true
	// Present the certificate whichever authorities the server requests: the server can refuse it.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return self.held.Load(), nil }
	return c
}

// config returns the common configuration of both sides. Without tickets and a session cache, every connection
// presents its certificates.
func (t *Trust) config(verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Time: t.now, VerifyConnection: verify,
	}
}
