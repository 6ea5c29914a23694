// Package cert says who is who in a cluster, and makes the connections that prove it.
//
// A cluster has an authority: a key that signs certificates and a list of those it has
// revoked. A certificate names one process by its one URI name,
//
//	parley://CLUSTER/node/NAME
//	parley://CLUSTER/client/NAME?rights=read,write,admin
//
// and nothing else in it counts: common names and host names identify nobody (host names
// are there for programs that look at nothing else, as curl does). A node may dial and
// accept, so its certificate is for both uses; a client only dials. What a client may do
// stands in its name's query; the three rights do not include each other.
//
// A node has a second key, its signer (Ed25519), for what protocols sign. It has no
// certificate: its public half is pinned in the configuration of all nodes, and it changes
// only with that configuration, while certificates are short-lived and replaced at any
// time. One key for both would let whoever ends a connection sign for the protocols.
//
// Trust is what a process holds of authorities and their lists. It can be replaced while
// connections live, and those that it no longer covers are closed (Watch). The whole check
// is made by hand in tls.Config.VerifyConnection, which crypto/tls calls on every
// connection, resumed ones too; resumption is off besides. Verification by host name is
// off (InsecureSkipVerify), for there is no host name in a URI name.
//
// To replace an authority, put the certificates of both into the nodes' ca.pem and both
// lists into their crl.pem, one after the other, give all nodes new certificates, and take
// the old ones out.
package cert

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Kind is what a certificate's owner is in its cluster.
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

// MarshalText writes a kind as its word.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the word of a kind.
func (k *Kind) UnmarshalText(b []byte) error {
	i := slices.Index(kinds, string(b))
	if i < int(Node) {
		return fmt.Errorf("kind %q: allowed are node and client", b)
	}
	*k = Kind(i)
	return nil
}

// Rights are what a client may do, as bits. Nodes have none: they are no clients.
type Rights uint8

// The rights. None includes another.
const (
	Read Rights = 1 << iota
	Write
	Admin
)

var rights = []string{"read", "write", "admin"} // in the order of their bits

// Has tells whether all rights of want are among r.
func (r Rights) Has(want Rights) bool { return r&want == want }

// String writes rights as they stand in names: in order, with commas.
func (r Rights) String() string {
	var out []string
	for i, s := range rights {
		if r.Has(1 << i) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ",")
}

// MarshalText writes rights as String does.
func (r Rights) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads rights, or nothing.
func (r *Rights) UnmarshalText(b []byte) (err error) {
	*r = 0
	if len(b) > 0 {
		*r, err = ParseRights(string(b))
	}
	return err
}

// ParseRights reads one or more rights with commas between them, in any order.
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

// Identity is who the owner of a certificate is. Two are the same if they are equal.
type Identity struct {
	Cluster string
	Kind    Kind
	Name    string
	Rights  Rights // of clients
}

// String is the URI name.
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

// CheckName tells what is wrong with a name of a cluster, a node or a client: such a name
// is that of a file and of a part of a URI too.
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

// Parse returns whom a certificate names. It must have exactly one URI name of the two
// forms; the error is a *Refusal. Parse does not ask who signed: that is Trust's.
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

// parseURI reads a name. It must be written exactly as String writes it, so that nobody
// has two names, or rights in an order of his own.
func parseURI(u *url.URL) (Identity, bool) {
	kind, name, ok := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	id := Identity{Cluster: u.Host, Name: name}
	if !ok || id.Kind.UnmarshalText([]byte(kind)) != nil || CheckName(id.Cluster) != nil || CheckName(name) != nil {
		return Identity{}, false
	}
	if list, ok := strings.CutPrefix(u.RawQuery, "rights="); ok && id.Kind == Client {
		id.Rights, _ = ParseRights(list) // what cannot be read is not written alike below
	}
	return id, id.String() == u.String() && (id.Kind == Node || id.Rights != 0)
}

// authorityName is the URI name of a cluster's authority, which tells what cluster it is for.
func authorityName(cluster string) *url.URL {
	return &url.URL{Scheme: "parley", Host: cluster, Path: "/authority"}
}

// quoted is what a stranger wrote, fit for a line of a log.
func quoted(s string) string {
	if len(s) > 120 {
		s = s[:117] + "..."
	}
	return fmt.Sprintf("%q", s)
}
