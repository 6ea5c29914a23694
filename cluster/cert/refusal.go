package cert

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Reason is why a peer is refused, in short and always the same words: to count by. It is
// an error, so that errors.Is(err, cert.Revoked) asks for one.
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

// Refusal is why a peer is refused: what was found, and what was expected. What a peer
// wrote himself stands in quotes. While a handshake goes on it is not yet proved that the
// peer has the key of the certificate that he shows, so nothing about the process that the
// certificate names follows from a refusal: anybody can show a certificate.
type Refusal struct {
	Reason Reason
	Text   string
}

func (r *Refusal) Error() string { return string(r.Reason) + ": " + r.Text }

// Subject is whom the refusal is about, as he calls himself: what stands in quotes first.
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

// Explain makes a refusal of the errors of crypto/tls that are about certificates and
// versions but never reach our own check, and of the alert by which the peer says that he
// refuses us. Other errors are returned as they are. The peer's alert comes with the
// handshake if he dialed, and with the first read if he accepted.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	var known *Refusal
	if errors.As(err, &known) {
		return known
	}
	// crypto/tls has no values for these errors. A wording that is not known here leaves the
	// connection refused, with its own words in the log.
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
