package cert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Authority signs a cluster's certificates and its revocation list. NewAuthority makes one in memory; Create and
// Update work with one in a folder. It is not safe for concurrent use.
type Authority struct {
	cluster string
	now     func() time.Time
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	list    *x509.RevocationList
	records []Record
}

// Record is an authority's record of a certificate.
type Record struct {
	Serial  string    `json:"serial"` // 32 hexadecimal digits
	Kind    Kind      `json:"kind,omitzero"`
	Name    string    `json:"name,omitempty"`
	Rights  Rights    `json:"rights,omitzero"` // of a client
	Hosts   []string  `json:"hosts,omitempty"` // of a node
	From    time.Time `json:"from,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Revoked time.Time `json:"revoked,omitzero"`
}

// State returns the state of the certificate at a time, in words.
func (r Record) State(now time.Time) string {
	switch {
	case !r.Revoked.IsZero():
		return "revoked"
	case now.Before(r.From):
		return "not yet valid"
	case now.After(r.Until):
		return "expired"
	}
	return "valid"
}

// Issued is a new certificate with its keys.
type Issued struct {
	Record
	TLS    tls.Certificate
	Signer ed25519.PrivateKey // of a node
}

// Self returns the identity of the certificate.
func (i *Issued) Self() *Self {
	s, err := NewSelf(i.TLS)
	if err != nil {
		panic(err) // it has just been made
	}
	return s
}

// SignerKey returns the public half of the signer.
func (i *Issued) SignerKey() ed25519.PublicKey { return i.Signer.Public().(ed25519.PublicKey) }

// early is how long before their creation certificates become valid, because clocks may be behind.
const early = 5 * time.Minute

// NewAuthority creates the authority of a cluster, in memory. now is the wall clock; nil means the system's.
func NewAuthority(cluster string, valid time.Duration, now func() time.Time) (*Authority, error) {
	if err := CheckName(cluster); err != nil {
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{cluster: cluster, now: now, key: key}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of " + cluster}, URIs: []*url.URL{authorityName(cluster)},
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if err := a.date(t, valid); err != nil {
		return nil, err
	}
	if a.cert, err = a.sign(t, t, &key.PublicKey); err != nil {
		return nil, err
	}
	err = a.revoke(nil) // an empty list
	return a, err
}

// Cluster returns the authority's cluster.
func (a *Authority) Cluster() string { return a.cluster }

// Certificate returns the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Anchors returns the current anchors for trust in this authority.
func (a *Authority) Anchors() Anchors {
	return Anchors{[]*x509.Certificate{a.cert}, []*x509.RevocationList{a.list}}
}

// Records returns all certificates that the authority has issued, oldest first.
func (a *Authority) Records() []Record {
	out := slices.Clone(a.records)
	for i := range out {
		out[i].Revoked, _ = a.revoked(out[i].Serial)
	}
	return out
}

// revoked returns when a serial was added to the list.
func (a *Authority) revoked(serial string) (when time.Time, listed bool) {
	for _, e := range a.list.RevokedCertificateEntries {
		if fmt.Sprintf("%032x", e.SerialNumber) == serial {
			return e.RevocationTime, true
		}
	}
	return when, false
}

// IssueNode issues a certificate for a node, and creates a signer. The argument hosts has host names and addresses
// for programs that do not know URI names. To renew only the certificate, discard the new signer. The signer in the
// configuration stays valid.
func (a *Authority) IssueNode(name string, hosts []string, valid time.Duration) (*Issued, error) {
	t := &x509.Certificate{ExtKeyUsage: uses[Node]}
	for _, h := range hosts {
		if err := addHost(t, h); err != nil {
			return nil, err
		}
	}
	out, err := a.issue(t, Identity{a.cluster, Node, name, 0}, hosts, valid)
	if err != nil {
		return nil, err
	}
	_, out.Signer, err = ed25519.GenerateKey(rand.Reader)
	return out, err
}

// IssueClient issues a certificate for a client with at least one right.
func (a *Authority) IssueClient(name string, r Rights, valid time.Duration) (*Issued, error) {
	if r == 0 || r >= 1<<len(rights) {
		return nil, fmt.Errorf("rights %d: allowed are %s", r, strings.Join(rights, ", "))
	}
	return a.issue(&x509.Certificate{ExtKeyUsage: uses[Client]}, Identity{a.cluster, Client, name, r}, nil, valid)
}

func (a *Authority) issue(t *x509.Certificate, id Identity, hosts []string, valid time.Duration) (*Issued, error) {
	if err := CheckName(id.Name); err != nil {
		return nil, err
	}
	u, err := url.Parse(id.String())
	if err != nil {
		return nil, err
	}
	t.URIs, t.KeyUsage, t.BasicConstraintsValid = []*url.URL{u}, x509.KeyUsageDigitalSignature, true
	if err := a.date(t, valid); err != nil {
		return nil, err
	}
	if t.NotAfter.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("valid until %s: the authority itself is valid until %s",
			moment(t.NotAfter), moment(a.cert.NotAfter))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := a.sign(t, a.cert, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	r := Record{
		Serial: Serial(leaf), Kind: id.Kind, Name: id.Name, Rights: id.Rights, Hosts: hosts,
		From: leaf.NotBefore, Until: leaf.NotAfter,
	}
	a.records = append(a.records, r)
	return &Issued{Record: r, TLS: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}, nil
}

// addHost adds a host name or an address.
func addHost(t *x509.Certificate, host string) error {
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
		return nil
	}
	for label := range strings.SplitSeq(strings.ToLower(host), ".") {
		if CheckName(label) != nil {
			return fmt.Errorf("%s is neither a host name nor an address", quoted(host))
		}
	}
	t.DNSNames = append(t.DNSNames, host)
	return nil
}

// CheckHost returns an error if a host name or address is invalid.
func CheckHost(host string) error { return addHost(new(x509.Certificate), host) }

// MinValid and MaxValid are the limits of a certificate's validity.
const (
	MinValid = time.Minute
	MaxValid = 100 * 365 * 24 * time.Hour
)

// date sets the validity of a certificate. Certificates have a resolution of 1 s.
func (a *Authority) date(t *x509.Certificate, valid time.Duration) error {
	if valid < MinValid || valid > MaxValid {
		return fmt.Errorf("valid for %v: allowed are 1 minute to 100 years", valid)
	}
	now := a.now().UTC().Truncate(time.Second)
	t.NotBefore, t.NotAfter = now.Add(-early), now.Add(valid)
	return nil
}

// sign signs a template as a certificate with a new serial.
func (a *Authority) sign(t, parent *x509.Certificate, public *ecdsa.PublicKey) (*x509.Certificate, error) {
	serial := make([]byte, 16)
	if _, err := rand.Read(serial); err != nil {
		return nil, err
	}
	serial[0] = serial[0]&0x7f | 0x40 // positive, with all digits
	t.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Revoke revokes certificates and returns their records. The argument what is NAME, node/NAME, client/NAME, or a
// serial. With a name, Revoke revokes all certificates of this name that are or will be valid. NAME alone is allowed
// if only a node or only a client has this name. The record of an unknown serial has no name.
func (a *Authority) Revoke(what string) ([]Record, error) {
	found, err := a.find(what)
	if err != nil {
		return nil, err
	}
	now := a.now().UTC().Truncate(time.Second)
	var entries []x509.RevocationListEntry
	for i := range found {
		found[i].Revoked = now
		n, _ := new(big.Int).SetString(found[i].Serial, 16)
		entries = append(entries, x509.RevocationListEntry{SerialNumber: n, RevocationTime: now})
	}
	return found, a.revoke(entries)
}

// find returns the matching certificates that are not revoked.
func (a *Authority) find(what string) ([]Record, error) {
	kind, name, given := strings.Cut(what, "/")
	if !given {
		name = what
	}
	var named, found []Record
	of := make(map[Kind]bool)
	for _, r := range a.Records() {
		if r.Serial != what && (r.Name != name || given && r.Kind.String() != kind) {
			continue
		}
		named = append(named, r)
		if r.Revoked.IsZero() && (r.Serial == what || !a.now().After(r.Until)) {
			found = append(found, r)
			of[r.Kind] = true
		}
	}
	switch {
	case len(of) == 2:
		return nil, fmt.Errorf("%s is both a node and a client: allowed are node/%s and client/%s", name, name, name)
	case len(found) > 0:
		return found, nil
	case len(named) > 0:
		return nil, fmt.Errorf("the certificate of %s is %s already", quoted(what), named[len(named)-1].State(a.now()))
	}
	if isSerial(what) {
		if _, listed := a.revoked(what); listed {
			return nil, fmt.Errorf("the certificate of %s is revoked already", quoted(what))
		}
		return []Record{{Serial: what}}, nil
	}
	return nil, fmt.Errorf("no certificate of %s was issued: a NAME, node/NAME, client/NAME or a serial was expected",
		quoted(what))
}

// isSerial reports whether a text is a serial as displayed.
func isSerial(text string) bool {
	n, ok := new(big.Int).SetString(text, 16)
	return ok && n.Sign() > 0 && len(text) == 32 && fmt.Sprintf("%032x", n) == text
}

// revoke signs a new list with additional entries.
func (a *Authority) revoke(more []x509.RevocationListEntry) error {
	t := &x509.RevocationList{
		// The list is valid until there is a newer one: a cluster must not stop because nobody wrote a list. But
		// the format requires a date.
		Number: big.NewInt(1), ThisUpdate: a.now().UTC().Truncate(time.Second), NextUpdate: a.cert.NotAfter,
	}
	if a.list != nil {
		t.Number = new(big.Int).Add(a.list.Number, t.Number)
		t.RevokedCertificateEntries = slices.Concat(a.list.RevokedCertificateEntries, more)
	}
	if t.NextUpdate.Before(t.ThisUpdate) {
		return errors.New("the authority has expired: a new one was expected")
	}
	der, err := x509.CreateRevocationList(rand.Reader, t, a.cert, a.key)
	if err != nil {
		return err
	}
	a.list, err = x509.ParseRevocationList(der)
	return err
}
