// Package cert defines the identities of the nodes and clients of a cluster, and makes authenticated connections.
//
// A cluster has an authority, which consists of a key that signs certificates, and of a revocation list. A
// certificate identifies one process by a URI name:
//
//	parley://CLUSTER/node/NAME
//	parley://CLUSTER/client/NAME?rights=read,write,admin
//
// Nothing else in the certificate identifies the process. A certificate also contains host names, but only for
// programs that do not check the URI name, such as curl. A node both opens and accepts connections, so its
// certificate is valid for both ends of a connection. A client's certificate is valid only for opening connections. A
// client's rights are in the query part of its URI name. Each right is separate: for example, admin does not include
// read.
//
// A node has a second key pair, its signer (Ed25519), for the signatures in protocols. The signer has no certificate.
// The configuration of all nodes contains the signer's public key, which changes only with the configuration.
// Certificates, in contrast, are short-lived and can be replaced at any time. If one key had both purposes, a proxy
// that terminates the node's TLS connections could also sign for the node in protocols.
//
// [Trust] holds the authorities that a process accepts, and their revocation lists. A program can replace them while
// connections are open. Then Trust closes the connections whose certificates are no longer valid (Watch). All checks
// are in tls.Config.VerifyConnection, which crypto/tls calls on every connection. TLS sessions are never resumed. The
// verification of host names is disabled (InsecureSkipVerify), because a URI name contains no host name.
//
// To replace an authority, take three steps. First, write the certificates of the old and the new authority, one
// after the other, into the ca.pem of each node. Write both revocation lists into its crl.pem. Second, give all
// nodes new certificates. Third, remove the certificate and the revocation list of the old authority.
package cert

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Kind is the kind of process that a certificate identifies.
type Kind uint8

// The kinds.
const (
	Node   Kind = iota + 1 // a member, which dials and accepts
	Client                 // a user of the client API, which dials
)

var kinds = []string{Node: "node", Client: "client"}

func (k Kind) String() string {
	if k > 0 && int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// MarshalText returns the name of a kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses the name of a kind.
func (k *Kind) UnmarshalText(b []byte) error {
	i := slices.Index(kinds, string(b))
	if i < int(Node) {
		return fmt.Errorf("kind %q: allowed are node and client", b)
	}
	*k = Kind(i)
	return nil
}

// Rights are the rights of a client, as bits. Nodes have no rights, because they are not clients.
type Rights uint8

// The rights. None includes another.
const (
	Read Rights = 1 << iota
	Write
	Admin
)

var rights = []string{"read", "write", "admin"} // in the order of their bits

// Has reports whether r includes all rights of want.
func (r Rights) Has(want Rights) bool { return r&want == want }

// String returns the rights as in names: in order, separated by commas.
func (r Rights) String() string {
	var out []string
	for i, s := range rights {
		if r.Has(1 << i) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ",")
}

// MarshalText returns the text of String.
func (r Rights) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses rights; an empty text means none.
func (r *Rights) UnmarshalText(b []byte) (err error) {
	*r = 0
	if len(b) > 0 {
		*r, err = ParseRights(string(b))
	}
	return err
}

// ParseRights parses one or more rights separated by commas, in any order.
func ParseRights(text string) (Rights, error) {
	var out Rights
	for word := range strings.SplitSeq(text, ",") {
		i := slices.Index(rights, word)
		if i < 0 {
			return 0, fmt.Errorf("%q: allowed are %s, with commas between them", text, strings.Join(rights, ", "))
		}
		out |= 1 << i
	}
	return out, nil
}

// Identity is the identity in a certificate. It can be compared with ==.
type Identity struct {
	Cluster string
	Kind    Kind
	Name    string
	Rights  Rights // of clients
}

// String returns the URI name.
func (id Identity) String() string {
	s := scheme + id.Cluster + "/" + id.Kind.String() + "/" + id.Name
	if id.Rights != 0 {
		s += "?rights=" + id.Rights.String()
	}
	return s
}

const scheme = "parley://"

// MaxName is the longest name of a cluster, a node or a client, in bytes.
const MaxName = 63

// CheckName returns an error if a name of a cluster, a node, or a client is invalid. Names are also used in file
// names and URIs.
func CheckName(name string) error {
	ok := name != "" && len(name) <= MaxName && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%s is no name: allowed are 1 to %d of a-z, 0-9 and -, with no - at the ends",
			quoted(name), MaxName)
	}
	return nil
}

// Parse returns the identity that a certificate names. The certificate must have exactly one URI name, of one of
// the two forms; otherwise the error is a *Refusal. Parse does not check the signature: Trust does.
func Parse(c *x509.Certificate) (Identity, error) {
	const want = "one URI name was expected, " + scheme + "CLUSTER/node/NAME or " + scheme + "CLUSTER/client/NAME"
	switch {
	case len(c.URIs) > 1:
		return Identity{}, refuse(TwoNames, "%d URI names, %s and %s first: %s", len(c.URIs), quoted(c.URIs[0].String()),
			quoted(c.URIs[1].String()), want)
	case len(c.URIs) == 0 && c.Subject.CommonName != "":
		return Identity{}, refuse(CommonName, "the common name is %s, and it counts for nothing: %s",
			quoted(c.Subject.CommonName), want)
	case len(c.URIs) == 0:
		return Identity{}, refuse(NoName, "the certificate has no URI name: %s", want)
	}
	id, ok := parseURI(c.URIs[0])
	if !ok {
		return Identity{}, refuse(BadName, "the URI name is %s: %s", quoted(c.URIs[0].String()), want)
	}
	return id, nil
}

// parseURI parses a name. It must be written exactly as String writes it, so that nobody has two names, or rights
// in another order.
func parseURI(u *url.URL) (Identity, bool) {
	kind, name, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	id := Identity{Cluster: u.Host, Name: name}
	if !ok || id.Kind.UnmarshalText([]byte(kind)) != nil || CheckName(id.Cluster) != nil || CheckName(name) != nil {
		return Identity{}, false
	}
	if list, ok := strings.CutPrefix(u.RawQuery, "rights="); ok && id.Kind == Client {
		id.Rights, _ = ParseRights(list) // what cannot be parsed is not written identically below
	}
	return id, id.String() == u.String() && (id.Kind == Node || id.Rights != 0)
}

// authorityName returns the URI name of a cluster's authority, which contains the cluster.
func authorityName(cluster string) *url.URL {
	return &url.URL{Scheme: "parley", Host: cluster, Path: "/authority"}
}

// quoted quotes text of a stranger for a line of a log.
func quoted(s string) string {
	if len(s) > 120 {
		s = s[:117] + "..."
	}
	return fmt.Sprintf("%q", s)
}
