package cert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Anchors are the basis of trust: the authorities of one cluster, and the revocation list of each authority. A
// missing list is an error, because losing a file must not make revoked certificates valid again. Lists do not
// expire: the newest known list is valid.
type Anchors struct {
	Authorities []*x509.Certificate
	Lists       []*x509.RevocationList
}

// anchors are validated Anchors. They are immutable.
type anchors struct {
	cluster string
	pool    *x509.CertPool
	all     []*x509.Certificate
	numbers map[string]*big.Int             // by authority: number of its list
	revoked map[string]map[string]time.Time // by authority, by serial: time of revocation
}

// Trust decides with which peers a process communicates. It is safe for concurrent use. Its anchors can be replaced
// while connections are open.
type Trust struct {
	now  func() time.Time
	dir  string // from which it was read, or empty
	held atomic.Pointer[anchors]

	mu      sync.Mutex // held during changes
	watches map[*watch]bool
}

// NewTrust returns trust in certificates that the authorities sign. now is the wall clock; nil means the
// system's.
func NewTrust(a Anchors, now func() time.Time) (*Trust, error) {
	if now == nil {
		now = time.Now
	}
	checked, err := a.check()
	if err != nil {
		return nil, err
	}
	t := &Trust{now: now, watches: make(map[*watch]bool)}
	t.held.Store(checked)
	return t, nil
}

// Cluster returns the cluster of the authorities. It never changes.
func (t *Trust) Cluster() string { return t.held.Load().cluster }

// Set replaces the anchors, and checks all watched connections. After an error nothing has changed. An authority of
// another cluster is an error. A list that is older than the list in use is also an error, because it may lack later
// revocations.
func (t *Trust) Set(a Anchors) error {
	checked, err := a.check()
	if err != nil {
		return err
	}
	t.mu.Lock()
	before := t.held.Load()
	if checked.cluster != before.cluster {
		err = fmt.Errorf("an authority of cluster %s: one of cluster %s was expected", checked.cluster, before.cluster)
	}
	for key, number := range checked.numbers {
		if old := before.numbers[key]; old != nil && number.Cmp(old) < 0 {
			err = fmt.Errorf("revocation list number %v: it is older than number %v, which is in use", number, old)
		}
	}
	var watches []*watch
	if err == nil {
		t.held.Store(checked)
		watches = slices.Collect(maps.Keys(t.watches))
	}
	t.mu.Unlock()
	for _, w := range watches {
		w.look()
	}
	return err
}

// Watch watches a live connection. As soon as the peer would be refused, because trust changed or the certificate
// expired, Watch calls end with the reason. It calls end once, on a goroutine that must not be blocked. If the
// connection is not trusted at the call, end is called at once. The returned function ends the watch. The function
// end may still be running then.
func (t *Trust) Watch(state tls.ConnectionState, end func(why error)) (stop func()) {
	w := &watch{trust: t, state: state, end: end}
	t.mu.Lock()
	t.watches[w] = true // before the first look, so that no change is missed
	t.mu.Unlock()
	w.look()
	return func() { w.finish() }
}

// watch is one live connection.
type watch struct {
	trust *Trust
	state tls.ConnectionState
	end   func(error)

	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// look checks the connection now, and again when its certificate expires by the clock now.
func (w *watch) look() {
	if _, why := w.trust.Check(w.state); why != nil {
		if w.finish() {
			w.end(why)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	left := w.state.PeerCertificates[0].NotAfter.Sub(w.trust.now())
	// The certificate is valid through its last moment. Timers do not notice changes of the wall clock, so check
	// at least once an hour.
	w.timer = time.AfterFunc(min(left, time.Hour)+time.Second, w.look)
}

// finish ends the watch, and reports whether it had not ended before.
func (w *watch) finish() (first bool) {
	w.mu.Lock()
	first, w.ended = !w.ended, true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.trust.mu.Lock()
	defer w.trust.mu.Unlock()
	delete(w.trust.watches, w)
	return first
}

// Check returns the identity of the other side of a connection, or a *Refusal. VerifyConnection calls it; it
// can also be called later for live connections.
func (t *Trust) Check(state tls.ConnectionState) (Identity, error) {
	if state.Version < tls.VersionTLS13 {
		return Identity{}, refuse(OldTLS, "%s: TLS 1.3 was expected", tls.VersionName(state.Version))
	}
	if len(state.PeerCertificates) == 0 {
		return Identity{}, refuse(NoCertificate, "one of cluster %s was expected", t.Cluster())
	}
	return t.Verify(state.PeerCertificates[0])
}

// Verify returns the identity in a certificate, or a *Refusal. An authority of the cluster itself must have signed
// it. There are no intermediate authorities. The certificate must be valid now, and must not be revoked. It must not
// belong to an authority. It must name one process of this cluster, and have the uses of its kind.
func (t *Trust) Verify(leaf *x509.Certificate) (Identity, error) {
	a, now := t.held.Load(), t.now()
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: a.pool, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, // the check of the leaf below is stricter
	})
	if err != nil {
		return Identity{}, a.invalid(leaf, err, now)
	}
	if leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return Identity{}, refuse(NotALeaf, "%s may sign certificates: that of a node or a client was expected", name(leaf))
	}
	for _, chain := range chains {
		if since, ok := a.revoked[keyOf(chain[len(chain)-1])][leaf.SerialNumber.String()]; ok {
			return Identity{}, refuse(Revoked, "%s, serial %s, was revoked on %s: another one was expected",
				name(leaf), Serial(leaf), moment(since))
		}
	}
	id, err := Parse(leaf)
	if err != nil {
		return Identity{}, err
	}
	if id.Cluster != a.cluster {
		return Identity{}, refuse(OtherCluster, "%s is of cluster %s: one of cluster %s was expected",
			id, id.Cluster, a.cluster)
	}
	if err := rightUse(leaf, id.Kind); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// uses are the uses that a certificate of a kind must have. A node's must have both, whichever node dials: with
// one of them it would work only with half of the cluster.
var uses = map[Kind][]x509.ExtKeyUsage{
	Node:   {x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	Client: {x509.ExtKeyUsageClientAuth},
}

func rightUse(leaf *x509.Certificate, kind Kind) error {
	for _, use := range uses[kind] {
		if slices.Contains(leaf.ExtKeyUsage, use) {
			continue
		}
		want := "client and server authentication"
		if kind == Client {
			want = "client authentication"
		}
		return refuse(WrongUse, "%s is for %s: %s was expected of a %s", name(leaf), useOf(leaf), want, kind)
	}
	return nil
}

// useOf describes the uses of a certificate.
func useOf(leaf *x509.Certificate) string {
	client := slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	server := slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	switch {
	case client && server:
		return "client and server authentication"
	case client:
		return "client authentication only"
	case server:
		return "server authentication only"
	}
	return "neither client nor server authentication"
}

// invalid explains why a certificate is invalid.
func (a *anchors) invalid(leaf *x509.Certificate, err error, now time.Time) *Refusal {
	if e := (x509.CertificateInvalidError{}); errors.As(err, &e) && e.Reason == x509.Expired && outOfTime(leaf, now) {
		return untimely(leaf, name(leaf), now)
	}
	for _, c := range a.all {
		if outOfTime(c, now) && leaf.CheckSignatureFrom(c) == nil {
			return untimely(c, "the authority that signed "+name(leaf), now)
		}
	}
	if !errors.As(err, new(x509.UnknownAuthorityError)) {
		return refuse(Invalid, "%s: %s: a certificate by the authority of cluster %s was expected",
			name(leaf), quoted(err.Error()), a.cluster)
	}
	if bytes.Equal(leaf.RawIssuer, leaf.RawSubject) && leaf.CheckSignature(leaf.SignatureAlgorithm,
		leaf.RawTBSCertificate, leaf.Signature) == nil {
		return refuse(SelfSigned, "%s signed itself: a certificate by the authority of cluster %s was expected",
			name(leaf), a.cluster)
	}
	return refuse(OtherAuthority, "%s is not signed by the authority of cluster %s, as was expected",
		name(leaf), a.cluster)
}

func outOfTime(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || now.After(c.NotAfter)
}

// untimely returns the refusal of a certificate that is not valid at this time.
func untimely(c *x509.Certificate, who string, now time.Time) *Refusal {
	if now.Before(c.NotBefore) {
		return refuse(NotYetValid, "%s is valid from %s on, and it is %s: one that is valid now was expected",
			who, moment(c.NotBefore), moment(now))
	}
	return refuse(Expired, "%s was valid until %s, and it is %s: one that is valid now was expected",
		who, moment(c.NotAfter), moment(now))
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// name returns the name that a certificate claims, true or not.
func name(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return quoted(c.URIs[0].String())
	case c.Subject.CommonName != "":
		return "the certificate of " + quoted(c.Subject.CommonName)
	}
	return "a certificate without a name"
}

// Serial returns a certificate's number as it is displayed.
func Serial(c *x509.Certificate) string { return fmt.Sprintf("%032x", c.SerialNumber) }

// Revoked reports whether an authority of the cluster has revoked a certificate, given its serial as [Serial]
// writes it.
func (t *Trust) Revoked(serial string) bool {
	number, ok := new(big.Int).SetString(serial, 16)
	if !ok {
		return false
	}
	for _, revoked := range t.held.Load().revoked {
		if _, ok := revoked[number.String()]; ok {
			return true
		}
	}
	return false
}

// keyOf identifies an authority by its key, because revocations are by the signing key.
func keyOf(c *x509.Certificate) string { return string(c.RawSubjectPublicKeyInfo) }

// check validates Anchors.
func (a Anchors) check() (*anchors, error) {
	if len(a.Authorities) == 0 {
		return nil, errors.New("no authority: at least one was expected")
	}
	out := &anchors{
		pool: x509.NewCertPool(), all: a.Authorities,
		numbers: make(map[string]*big.Int), revoked: make(map[string]map[string]time.Time),
	}
	for _, c := range a.Authorities {
		cluster, err := clusterOf(c)
		if err != nil {
			return nil, err
		}
		if out.cluster != "" && out.cluster != cluster {
			return nil, fmt.Errorf("authorities of two clusters, %s and %s: one cluster was expected", out.cluster, cluster)
		}
		out.cluster = cluster
		out.pool.AddCert(c)
	}
	for _, list := range a.Lists {
		if err := out.add(list); err != nil {
			return nil, err
		}
	}
	for _, c := range a.Authorities {
		if out.revoked[keyOf(c)] == nil {
			return nil, fmt.Errorf("no revocation list of the authority with serial %s: one of each was expected", Serial(c))
		}
	}
	return out, nil
}

// add adds a list. Of two lists of one authority the newer one counts.
func (a *anchors) add(list *x509.RevocationList) error {
	i := slices.IndexFunc(a.all, func(c *x509.Certificate) bool { return list.CheckSignatureFrom(c) == nil })
	if i < 0 || list.Number == nil {
		return errors.New("a revocation list that none of the authorities in use has signed")
	}
	key := keyOf(a.all[i])
	if old := a.numbers[key]; old != nil && list.Number.Cmp(old) < 0 {
		return nil
	}
	a.numbers[key], a.revoked[key] = list.Number, make(map[string]time.Time)
	for _, e := range list.RevokedCertificateEntries {
		a.revoked[key][e.SerialNumber.String()] = e.RevocationTime
	}
	return nil
}

// clusterOf returns the cluster of an authority, or an error if the certificate is not an authority's.
func clusterOf(c *x509.Certificate) (string, error) {
	const sign = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if !c.BasicConstraintsValid || !c.IsCA || c.KeyUsage&sign != sign || len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) > 0 {
		return "", fmt.Errorf("%s is no authority: one that signs certificates and revocation lists was expected", name(c))
	}
	if len(c.URIs) == 1 && CheckName(c.URIs[0].Host) == nil && *c.URIs[0] == *authorityName(c.URIs[0].Host) {
		return c.URIs[0].Host, nil
	}
	return "", fmt.Errorf("%s is not an authority's name: %sCLUSTER/authority was expected", name(c), scheme)
}
