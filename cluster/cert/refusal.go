package cert

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Reason says why a peer is refused. It is a short constant text, for counters. It is an error, so that
// errors.Is(err, cert.Revoked) works.
type Reason string

func (r Reason) Error() string { return string(r) }

// The reasons.
const (
	NoCertificate  Reason = "no certificate"
	SelfSigned     Reason = "self-signed"
	OtherAuthority Reason = "other authority"
	OtherCluster   Reason = "other cluster"
	TwoNames       Reason = "two URI names"
	CommonName     Reason = "common name only"
	NoName         Reason = "no name"
	BadName        Reason = "bad name"
	Expired        Reason = "expired"
	NotYetValid    Reason = "not yet valid"
	WrongUse       Reason = "wrong use"
	NotALeaf       Reason = "authority as peer"
	Revoked        Reason = "revoked"
	OldTLS         Reason = "TLS version"
	OtherPeer      Reason = "other peer"
	WrongKind      Reason = "wrong kind"
	Invalid        Reason = "invalid certificate"
	RefusedByPeer  Reason = "refused by the peer"
)

// Refusal says why a peer is refused: what was found, and what was expected. It quotes text that comes from the peer.
// During a handshake the peer has not yet proved that it has the key of its certificate. So a refusal says nothing
// about the process that the certificate names, because anybody can show a certificate.
type Refusal struct {
	Reason Reason
	Text   string
}

func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Text }

// Subject returns the peer's claimed name: the first quoted text.
func (r *Refusal) Subject() string {
	if name, err := strconv.QuotedPrefix(r.Text); err == nil {
		return name
	}
	return ""
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

func refuse(why Reason, form string, args ...any) *Refusal {
	return &Refusal{why, fmt.Sprintf(form, args...)}
}

// Explain converts errors of crypto/tls to a *Refusal: errors about certificates and versions that occur before our
// own check, and the alert with which the peer refuses us. It returns other errors unchanged. If the peer opened the
// connection, the alert comes with the handshake. If the peer accepted it, the alert comes with the first read.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	var known *Refusal
	if errors.As(err, &known) {
		return known
	}
	// crypto/tls exports no values for these errors. With an unknown text, the connection is still refused, and
	// the text is logged.
	text := err.Error()
	for _, c := range []struct {
		part, want string
		why        Reason
	}{
		{"client didn't provide a certificate", "one of this cluster was expected", NoCertificate},
		{"unsupported versions", "TLS 1.3 was expected", OldTLS},
		{"unsupported protocol version", "TLS 1.3 was expected", OldTLS},
		{"protocol version not supported", "TLS 1.3 was offered", OldTLS},
		{"failed to parse certificate", "one of this cluster was expected", Invalid},
	} {
		if strings.Contains(text, c.part) {
			return refuse(c.why, "%s: %s", quoted(text), c.want)
		}
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return refuse(RefusedByPeer, "%s: the peer's own log has the reason", quoted(text))
	}
	return err
}
